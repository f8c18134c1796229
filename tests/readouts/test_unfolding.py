"""Folded BatchNorm layers are made again: scales, shifts and filters, in the shared model's names."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

import zktrace
from attacks.lived import lived
from zktrace.attacks.fold import fold
from zktrace.attacks.scales import quantise_all
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.readouts.unfolding import unfolded

State = dict[str, NDArray[Any]]
STATISTICS = ("running_mean", "running_var")


@cache
def shared() -> ModelState:
    return ModelState.from_arrays(lived())


def marked(seed: int = 1) -> State:
    """As the shared model, with other scales and shifts."""
    rng = np.random.default_rng(seed)
    found = dict(lived())
    for name, array in found.items():
        if array.ndim == 1 and not name.endswith(STATISTICS):
            found[name] = (array + 0.03 * rng.standard_normal(array.shape)).astype(array.dtype)
    return found


def test_layers_come_back_with_their_marks() -> None:
    copy = marked()
    again = unfolded(fold(copy), shared(), list(copy))
    assert set(again) == {name for name in copy if not name.endswith("num_batches_tracked")}
    for name in again:
        assert again[name] == pytest.approx(copy[name], rel=1e-4, abs=1e-5), name


def test_which_layer_a_convolution_had_is_seen_not_read() -> None:
    """Names tell nothing: layers are called after their order in another alphabet."""
    names = sorted(name for name in shared() if name.endswith("running_var"))
    other = {f"{name.removesuffix('.running_var')}.": f"n{99 - at}." for at, name in enumerate(names)}

    def renamed(state: Any) -> State:
        found = {}
        for name, array in state.items():
            layer = f"{name.rpartition('.')[0]}."
            found[name.replace(layer, other[layer]) if layer in other else name] = array
        return found

    again = unfolded(fold(marked()), renamed(shared()), list(renamed(shared())))
    for name, array in renamed(marked()).items():
        if not name.endswith("num_batches_tracked"):
            assert again[name] == pytest.approx(array, rel=1e-4, abs=1e-5), name


def test_prefixes_and_absent_tensors() -> None:
    suspect = {f"net.{name}": array for name, array in fold(marked()).items()}
    again = unfolded(suspect, shared(), ["bn1.weight", "conv1.weight", "nothing", "conv1.bias"])
    assert list(again) == ["bn1.weight", "conv1.weight"]
    assert again["bn1.weight"] == pytest.approx(marked()["bn1.weight"], rel=1e-4)


@pytest.mark.parametrize(
    ("suspect", "words"),
    [
        (dict, "no filters"),
        (lived, "not folded"),
        (lambda: fold(lived(seed=9)), "folded into it"),
        (lambda: fold(marked()) | {"conv1.weight": np.full((8, 4, 7, 7), np.nan, np.float32)}, "finite"),
        (lambda: fold(marked()) | {"conv1.weight": np.zeros((8, 4, 7, 7), np.int64)}, "int64"),
        (lambda: fold(marked()) | {"conv1.weight": np.zeros((8, 4, 3, 3), np.float32)}, "for"),
        (lambda: fold(marked()) | {"conv1.weight": np.zeros((8, 4, 7, 7), np.float32)}, "folded into it"),
    ],
)
def test_what_cannot_be_unfolded_is_one_line(suspect: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        unfolded(suspect(), shared(), list(shared()))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bits", [0, 8])
def test_a_folded_copy_from_dispatch_to_judge(tmp_path: Path, bits: int) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="a federation", budget="1/10")
    for name in ("alpha", "bravo", "charlie"):
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    model = lived()
    home.release(model, carriers=("weight",))
    copy = dict(home.dispatch("bravo").arrays)
    suspect = fold(copy) if not bits else quantise_all(fold(copy), bits=bits)
    case = home.trace(suspect, budget="1/1000000")
    assert case.named == ("bravo",)
    assert case.case.look.alignment == "folded"
    found = zktrace.judge(case.evidence, head=home.head, suspect=suspect, shared=model)
    assert found.named == ("bravo",)
    assert any("aligned by folded" in line for step in found.steps for line in step.checked)
    assert home.trace(fold(model), budget="1/1000000").named == ()
    readable = home.trace(model, budget="1/1000000")
    assert "folded" not in {each.alignment for each in readable.case.investigation.looks}
