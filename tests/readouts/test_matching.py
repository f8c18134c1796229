"""A suspect's tensors are found again: renamed, prefixed, transposed, merged, split, edited."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.gguf_forge import gguf
from zktrace.errors import InputError
from zktrace.models import ModelState, open_model, save_model
from zktrace.readouts import likeness as how
from zktrace.readouts.likeness import Arrangement, Held, best_form, forms, likeness, norms, places
from zktrace.readouts.matching import Matched, matched
from zktrace.readouts.merging import Budget, split_into
from zktrace.readouts.naming import unwrapped

Arrays = dict[str, np.ndarray]


def network(seed: int = 0, layers: int = 3) -> Arrays:
    """A small transformer's tensors: square and oblong matrices, several of each shape."""
    rng = np.random.default_rng(seed)
    shapes = {"embed.weight": (96, 48), "conv.weight": (40, 20, 3, 3), "point.weight": (48, 24, 1, 1)}
    for at in range(layers):
        shapes |= {f"layers.{at}.{part}.weight": (48, 48) for part in "qkvo"}
        shapes |= {f"layers.{at}.up.weight": (128, 48), f"layers.{at}.down.weight": (48, 128)}
        shapes |= {f"layers.{at}.norm.weight": (48,)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def carried(arrays: Arrays) -> list[str]:
    return [name for name, array in arrays.items() if array.ndim > 1]


def edited(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy that was fine-tuned and quantised to five bits or so."""
    moved = array + 0.1 * array.std() * rng.standard_normal(array.shape).astype(array.dtype)
    step = np.abs(moved).max() / 16
    return (np.round(moved / step) * step).astype(array.dtype)


def check(found: Matched, wanted: Arrays, names: list[str]) -> None:
    """Everything was found, and is what it should be."""
    assert found.missing == ()
    assert list(found) == names
    for name in names:
        assert found[name].shape == wanted[name].shape
        assert likeness(found[name].ravel().astype(float), wanted[name].ravel().astype(float)) > 0.9, name
        assert np.array_equal(np.concatenate(list(found.runs(name))), found[name].ravel())


def test_what_goes_by_its_name_is_itself() -> None:
    shared = network()
    found = matched(shared, shared, carried(shared))
    check(found, shared, carried(shared))
    assert found.notes == ()
    assert all(np.shares_memory(found[name], shared[name]) for name in found)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    prefix=st.sampled_from(["", "module.", "model.", "a.b.", "_orig_mod.", "module.net."]),
    renamed=st.booleans(),
    turned=st.sampled_from(["none", "some", "all"]),
    kept=st.booleans(),
)
def test_a_renamed_prefixed_and_transposed_model_is_found_again(
    seed: int, prefix: str, renamed: bool, turned: str, kept: bool
) -> None:
    rng = np.random.default_rng(seed)
    shared = network(seed % 97)
    names = list(shared)
    others = [f"t{at}" for at in rng.permutation(len(names))] if renamed else names
    suspect = {}
    for name, other in zip(names, others, strict=True):
        array = shared[name] if kept else edited(shared[name], rng)
        turn = turned == "all" or (turned == "some" and rng.random() < 0.5)
        suspect[prefix + other] = np.ascontiguousarray(array.T) if turn else array
    order = rng.permutation(len(suspect))
    suspect = {list(suspect)[at]: suspect[list(suspect)[at]] for at in order}
    found = matched(ModelState.from_arrays(suspect), ModelState.from_arrays(shared), carried(shared))
    check(found, shared, carried(shared))
    assert bool(found.notes) == (renamed or prefix != "" or any("transposed" in note for note in found.notes))


def test_names_that_were_exchanged_are_set_right() -> None:
    shared = network()
    suspect = dict(shared)
    first, second = "layers.0.q.weight", "layers.2.o.weight"
    suspect[first], suspect[second] = shared[second], shared[first]
    found = matched(suspect, shared, carried(shared))
    check(found, shared, carried(shared))
    assert any("by content" in note for note in found.notes)


def test_what_is_not_alike_keeps_its_name_if_nothing_is_better() -> None:
    shared, stranger = network(), network(seed=5)
    found = matched(stranger, shared, carried(shared))
    assert found.missing == ()
    assert all(found[name] is not None and np.array_equal(found[name], stranger[name]) for name in found)


def test_a_stranger_without_names_matches_nothing() -> None:
    shared, stranger = network(), network(seed=5)
    suspect = {f"t{at}": array for at, array in enumerate(stranger.values())}
    names = [name for name in carried(shared) if name.startswith("layers")]
    assert matched(suspect, shared, names).missing == tuple(names)


def test_merged_and_split_matrices() -> None:
    shared = network()
    together, suspect = {}, {}
    for at in range(3):
        q, k, v = (shared[f"layers.{at}.{part}.weight"] for part in "qkv")
        together[f"layers.{at}.qkv.weight"] = np.concatenate([q, k[:24], v[24:]])
        suspect[f"h.{at}.attn"] = np.concatenate([q, k, v]).T if at else np.concatenate([q, k, v])
    names = [f"layers.{at}.{part}.weight" for at in range(3) for part in "qkv"]
    found = matched(suspect, shared, names)
    check(found, shared, names)
    assert sum("rows from 48" in note for note in found.notes) == 3
    parts = {
        f"layers.{at}.{part}": array
        for at in range(3)
        for part, array in zip(
            ("a", "b", "c"), np.split(together[f"layers.{at}.qkv.weight"], (48, 72)), strict=True
        )
    }
    check(matched(parts, together, list(together)), together, list(together))
    turned = {name: np.ascontiguousarray(array.T) for name, array in parts.items()}
    check(matched(turned, together, list(together)), together, list(together))
    del parts["layers.1.b"]
    assert matched(parts, together, list(together)).missing == ("layers.1.qkv.weight",)


def test_one_tensor_may_stand_for_two_names() -> None:
    shared = network()
    shared["head.weight"] = shared["embed.weight"].copy()
    suspect = {name: array for name, array in shared.items() if name != "head.weight"}
    check(matched(suspect, shared, carried(shared)), shared, carried(shared))


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_or_columns_in_another_order_are_found_by_the_sizes_of_the_others(axis: int) -> None:
    rng = np.random.default_rng(3)
    shared = network()
    names = [name for name in carried(shared) if name.startswith("layers")]
    suspect = {}
    for at, name in enumerate(names):
        array = edited(shared[name], rng)
        suspect[f"t{at}"] = np.take(array, rng.permutation(array.shape[axis]), axis=axis)
    found = matched(suspect, shared, names)
    assert found.missing == ()
    for at, name in enumerate(names):
        assert np.array_equal(found[name], suspect[f"t{at}"]), name


def test_the_only_one_left_of_its_size_is_taken() -> None:
    shared, stranger = network(), network(seed=4)
    found = matched({"other": stranger["conv.weight"]}, shared, ["conv.weight"])
    assert np.array_equal(found["conv.weight"], stranger["conv.weight"])
    assert "no other left" in found.notes[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda name: f"model.{name}", "prefix 'model.'"),
        (lambda name: name.removeprefix("layers."), "prefix ''"),
        (lambda name: name.replace("layers.", "transformer.h."), "prefix 'transformer.h.'"),
        (lambda name: name.replace(".weight", ".base_layer.weight"), "wrapper"),
        (lambda name: f"{name}_orig", "wrapper"),
    ],
)
def test_names_alone_will_do_where_content_says_little(change: Callable[[str], str], reason: str) -> None:
    shared = {name: array for name, array in network().items() if "norm" in name}
    suspect = {change(name): array + 1 for name, array in shared.items()}
    found = matched(suspect, shared, list(shared))
    assert found.missing == ()
    assert reason in found.notes[0]
    assert all(np.array_equal(found[name], shared[name] + 1) for name in shared)


def test_files_of_other_kinds_are_read_as_they_come(tmp_path: Path) -> None:
    """A GGUF file: other names, quantised, made on demand."""
    shared = {name: array for name, array in network().items() if array.shape == (48, 128)}
    tensors = {}
    for at, array in enumerate(shared.values()):
        blocks = array.reshape(-1, 32)
        scale = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype("<f2")
        q = np.round(blocks / scale.astype(np.float32)).astype(np.int8)
        tensors[f"blk.{at}.ffn_down"] = 8, array.shape, np.hstack([scale.view(np.int8), q]).tobytes()
    (tmp_path / "m").write_bytes(gguf(tensors))
    save_model(tmp_path / "shared", shared)
    found = matched(open_model(tmp_path / "m"), open_model(tmp_path / "shared"), list(shared))
    check(found, shared, list(shared))


def test_hostile_numbers_are_no_match_and_no_failure() -> None:
    shared = network(layers=1)
    for value in (np.nan, np.inf, -np.inf, 3e38, 0.0):
        suspect = {f"t{at}": np.full_like(array, value) for at, array in enumerate(shared.values())}
        found = matched(suspect, shared, [name for name in carried(shared) if name.startswith("layers")])
        assert set(found.missing) >= {f"layers.0.{part}.weight" for part in "qkvo"}


def test_the_content_of_many_tensors_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = network()
    suspect = {f"t{at}": array for at, array in enumerate(shared.values())}
    monkeypatch.setattr("zktrace.readouts.matching.MOST", 5)
    assert len(matched(suspect, shared, carried(shared))) < len(carried(shared)) / 2


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="no tensor 'x'"):
        matched({}, network(), ["x"])


def test_a_budget_ends_the_search() -> None:
    rng = np.random.default_rng(0)
    parts = {name: rng.standard_normal((16, 32)) for name in "ab"}
    whole = np.concatenate(list(parts.values()))
    shared, theirs = Held({"w": whole}, "w"), [Held(parts, name) for name in parts]
    assert [name for name, _ in split_into(shared, theirs, Budget())] == ["a", "b"]
    assert split_into(shared, theirs, Budget(left=1)) == []


# -- likeness


@pytest.mark.parametrize(
    ("stored", "wanted", "axes"),
    [
        ((4, 5), (4, 5), [(0, 1)]),
        ((5, 4), (4, 5), [(1, 0)]),
        ((4, 4), (4, 4), [(0, 1), (1, 0)]),
        ((4, 5), (4, 5, 1, 1), [(0, 1)]),
        ((5, 4), (4, 5, 1, 1), [(1, 0)]),
        ((1, 1, 5, 4), (4, 5), [(3, 2, 1, 0)]),
        ((4, 4, 1, 1), (4, 4), [(0, 1, 2, 3), (3, 2, 1, 0)]),
        ((3, 2, 5, 4), (4, 5, 3, 2), [(3, 2, 0, 1)]),
        ((3, 3, 5, 4), (4, 5, 3, 3), [(3, 2, 1, 0), (3, 2, 0, 1)]),
        ((2, 6), (12,), [(0, 1)]),
        ((2, 3, 4), (6, 4), [(0, 1, 2)]),
        ((7,), (7,), [(0,)]),
        ((), (), [()]),
        ((4, 5), (4, 6), []),
    ],
)
def test_forms(stored: tuple[int, ...], wanted: tuple[int, ...], axes: list[tuple[int, ...]]) -> None:
    assert [form.axes for form in forms(stored, wanted)] == axes
    array = np.arange(np.prod(stored, dtype=int)).reshape(stored)
    for form in forms(stored, wanted):
        assert form.of(array).shape == wanted
        chosen = places(array.size)[::-1]
        expected = form.of(array).ravel()[chosen]
        assert np.array_equal(Held({"w": array}, "w").at(chosen, form), expected)
        assert np.array_equal(Held(ModelState.from_arrays({"w": array}), "w").at(chosen, form), expected)


def test_places_are_even_and_in_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(how, "SAMPLE", 512)
    chosen = places(512 * 64)
    assert len(chosen) == 512
    assert np.array_equal(chosen, np.unique(chosen))
    assert chosen.max() < 512 * 64
    assert len(np.unique(chosen % 64)) == 64
    assert np.histogram(chosen, 16, (0, 512 * 64))[0].min() > 25
    assert np.array_equal(places(5), np.arange(5))


def test_norms_equal_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(how, "_PART", 20)
    array = np.random.default_rng(0).standard_normal((7, 3, 2))
    matrix = array.reshape(7, 6)
    plain, turned = forms((7, 3, 2), (7, 3, 2))[0], forms((7, 6), (6, 7))[0]
    for held in (Held({"w": array}, "w"), Held(ModelState.from_arrays({"w": array}), "w")):
        assert np.allclose(norms(held, plain, axis=0), np.linalg.norm(matrix, axis=1))
        assert np.allclose(norms(held, plain, axis=1), np.linalg.norm(matrix, axis=0))
    held = Held({"w": matrix}, "w")
    assert np.allclose(norms(held, turned, axis=0), np.linalg.norm(matrix.T, axis=1))
    assert np.allclose(norms(held, turned, axis=1), np.linalg.norm(matrix.T, axis=0))
    assert norms(Held({"w": array}, "w"), Arrangement(axes=(2, 1, 0), shape=(2, 3, 7)), axis=0) is None


def test_the_plain_form_is_kept_unless_another_is_alike() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 30, 30))
    shared, turned_one, stranger = (Held({"w": each}, "w") for each in (one, one.T, other))
    candidates = forms((30, 30), (30, 30))
    plain, turned = candidates
    assert best_form(candidates, shared, shared)[0] == plain
    assert best_form(candidates, turned_one, shared)[0] == turned
    assert best_form(candidates, stranger, shared)[0] == plain
    assert not turned.plain
    assert plain == Arrangement(axes=(0, 1), shape=(30, 30))


def test_strangers_are_not_alike_and_edited_copies_are() -> None:
    """The declared bound lies far from both: 200 tensors of each kind."""
    rng = np.random.default_rng(1)
    apart, near = [], []
    for _ in range(200):
        one, other = rng.standard_normal((2, 64, 16))
        held = Held({"one": one, "other": other, "copy": edited(one, rng)}, "one")
        apart.append(likeness(held.sample(), Held(held.model, "other").sample()))
        near.append(likeness(held.sample(), Held(held.model, "copy").sample()))
    assert max(apart) < 0.2 < how.ALIKE < 0.9 < min(near)


def test_wrappers_are_taken_out_of_names() -> None:
    assert unwrapped("module._orig_mod.layer.base_layer.weight") == "layer.weight"
    assert unwrapped("layer.parametrizations.weight.original") == "layer.weight"
    assert unwrapped("layer.weight_orig") == "layer.weight"
    assert unwrapped("layer.weight") == "layer.weight"
