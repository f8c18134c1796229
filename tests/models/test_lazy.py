"""Tensors made on demand: the same face as others, saved and hashed in one pass, a piece at a time."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forge import EXAMPLE
from zktrace.errors import MalformedModel
from zktrace.models import LazyTensor, ModelState, Tensor, model_digest, open_model, save_model, saving, state


def lazy(tensor: Tensor, size: int = 8) -> LazyTensor:
    """The same tensor, its bytes in pieces of `size`."""
    data = bytes(tensor.data)
    return LazyTensor(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        make=lambda: (data[at : at + size] for at in range(0, len(data), size)),
    )


def stored() -> ModelState:
    narrow = memoryview(np.array([0x3F80, 0xC000, 0x7FC1], dtype="<u2").tobytes())
    wide = Tensor(name="narrow", dtype="bfloat16", shape=(3, 1), data=narrow)
    return ModelState([*ModelState.from_arrays(EXAMPLE).tensors(), wide])


def test_a_lazy_tensor_has_the_face_of_the_tensor_it_stands_for() -> None:
    for tensor in stored().tensors():
        made = lazy(tensor)
        assert (made.name, made.dtype, made.shape) == (tensor.name, tensor.dtype, tensor.shape)
        assert made.nbytes == tensor.nbytes == len(tensor.data)
        assert made.data == tensor.data
        assert made.data.readonly
        assert made.array().dtype == tensor.array().dtype
        assert np.array_equal(made.array(), tensor.array(), equal_nan=True)
        assert not made.array().flags.writeable
        runs = [*made.runs(), np.empty(0, made.array().dtype)]
        assert np.array_equal(np.concatenate(runs), tensor.array().ravel(), equal_nan=True)


def test_a_state_of_lazy_tensors_is_the_state() -> None:
    both = ModelState(lazy(tensor) for tensor in stored().tensors())
    assert both == stored()
    assert both.nbytes == stored().nbytes
    assert model_digest(both) == model_digest(stored())
    other = [Tensor.from_array("mask", np.array([True, True, True]))]
    rest = [each for each in both.tensors() if each.name != "mask"]
    assert ModelState(other + rest) != stored()


@settings(deadline=None)
@given(size=st.sampled_from([8, 16, 24, 1 << 20]), made=st.sets(st.sampled_from(sorted(stored()))))
def test_saving_gives_the_same_file_and_the_digest(
    tmp_path_factory: pytest.TempPathFactory, size: int, made: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("lazy")
    mixed = ModelState(lazy(each, size) if each.name in made else each for each in stored().tensors())
    first = save_model(folder / "a", stored(), metadata={"k": "v"})
    assert save_model(folder / "b", mixed, metadata={"k": "v"}) == first == model_digest(stored())
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
    assert open_model(folder / "b") == stored()


def test_every_piece_is_made_once_when_a_state_is_saved(tmp_path: Path) -> None:
    calls: list[str] = []

    def counted(tensor: Tensor) -> LazyTensor:
        def make() -> Iterator[memoryview]:
            calls.append(tensor.name)
            yield tensor.data

        return LazyTensor(name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, make=make)

    save_model(tmp_path / "m", ModelState(map(counted, stored().tensors())))
    assert sorted(calls) == sorted(stored())


def test_large_pieces_are_hashed_in_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {name: rng.standard_normal(400_000, dtype=np.float32) for name in "ab"}
    whole = ModelState.from_arrays(arrays)
    made = ModelState(lazy(each, 1_500_000) for each in whole.tensors())
    assert save_model(tmp_path / "m", made) == model_digest(whole)
    assert open_model(tmp_path / "m") == whole


def test_a_stored_tensor_comes_in_pieces_of_whole_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "PIECE_BYTES", 16)
    tensor = Tensor.from_array("w", np.arange(7, dtype=np.float64))
    assert [len(piece) for piece in tensor.pieces()] == [16, 16, 16, 8]
    assert np.array_equal(np.concatenate(list(tensor.runs())), np.arange(7))
    assert model_digest(ModelState([tensor])) == model_digest(ModelState([lazy(tensor)]))


def test_saving_holds_a_few_pieces_and_not_the_state(tmp_path: Path) -> None:
    """A hundred tensors of 2 MiB in pieces of 1 MiB."""
    piece = 1 << 20

    def make() -> Iterator[np.ndarray]:
        for value in range(2):
            yield np.full(piece, value, dtype=np.uint8)

    tensors = [LazyTensor(name=f"t{at}", dtype="uint8", shape=(2 * piece,), make=make) for at in range(100)]
    tracemalloc.start()
    save_model(tmp_path / "m", ModelState(tensors))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (saving.AHEAD + saving.BEHIND + 3) * piece
    assert open_model(tmp_path / "m")["t99"].sum() == piece


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: [], "16 bytes too few"),
        (lambda: [bytes(8), bytes(4)], "4 bytes too few"),
        (lambda: [bytes(8), bytes(16)], "too many"),
        (lambda: [bytes(6), bytes(10)], "part of an element"),
        (lambda: [np.zeros((4, 4), np.float32)[:, 0]], "one after the other"),
    ],
)
def test_pieces_that_do_not_fit_are_refused_and_leave_no_file(
    tmp_path: Path, made: Callable[[], list[bytes]], reason: str
) -> None:
    tensor = LazyTensor(name="w", dtype="float32", shape=(2, 2), make=made)
    for use in (lambda: tensor.data, tensor.array, lambda: model_digest(ModelState([tensor]))):
        with pytest.raises(MalformedModel, match=reason):
            use()
    with pytest.raises(MalformedModel, match=reason):
        save_model(tmp_path / "m", ModelState([tensor]))
    assert list(tmp_path.iterdir()) == []


def test_a_lazy_tensor_keeps_the_rules_of_tensors() -> None:
    with pytest.raises(MalformedModel, match="neither 0 nor 1"):
        LazyTensor(name="w", dtype="bool", shape=(2,), make=lambda: [b"\x01\x02"]).array()
    for wrong in ({"name": ""}, {"dtype": "float8"}, {"shape": (-1,)}, {"shape": (1 << 62,)}):
        with pytest.raises(MalformedModel):
            LazyTensor(**{"name": "w", "dtype": "uint8", "shape": (1,), "make": list} | wrong)


@settings(deadline=None)
@given(chosen=st.lists(st.integers(0, 23), max_size=30))
def test_elements_are_picked_by_their_places(chosen: list[int]) -> None:
    places = np.array(chosen, dtype=np.int64)
    bits = memoryview(np.arange(0x3F80, 0x3F80 + 24, dtype="<u2").tobytes())
    narrow = Tensor(name="n", dtype="bfloat16", shape=(4, 6), data=bits)
    for tensor in (narrow, Tensor.from_array("w", EXAMPLE["conv.weight"])):
        expected = tensor.array().ravel()[places]
        for each in (tensor, lazy(tensor)):
            assert np.array_equal(each.at(places), expected)
            assert each.at(places).dtype == expected.dtype or not chosen


def test_showing_a_lazy_tensor_makes_nothing() -> None:
    def never() -> list[bytes]:
        raise AssertionError("made")

    tensor = LazyTensor(name="w", dtype="float16", shape=(2, 3), make=never)
    assert repr(tensor) == "LazyTensor('w', float16, (2, 3))"
    assert repr(ModelState([tensor])) == "ModelState(1 tensors, 12 bytes)"
