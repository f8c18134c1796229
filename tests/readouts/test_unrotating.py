"""A rotated residual stream is turned back, also one whose heads and hidden units were disguised too."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

from attacks.small_transformers import language, vision
from zktrace.attacks.transformers import disguise
from zktrace.errors import InputError
from zktrace.readouts.realigning import realigned
from zktrace.readouts.unrotating import unrotated

State = dict[str, NDArray[Any]]
MARK = 0.01
NETWORKS = {"language": language(), "vision": vision(width=48)}


def changed(state: State, size: float, seed: int = 1) -> State:
    rng = np.random.default_rng(seed)
    return {
        name: (array + size * array.std() * rng.standard_normal(array.shape)).astype(array.dtype)
        if array.ndim > 1
        else array
        for name, array in state.items()
    }


def residuals(found: Any, shared: State) -> dict[str, float]:
    return {
        name: float(np.sqrt(np.mean((found[name] - shared[name]) ** 2)) / shared[name].std())
        for name in found
    }


def matrices(state: State) -> list[str]:
    return [name for name, array in state.items() if array.ndim > 1 and name != "cls"]


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("how", [("rotated",), ("permuted", "rescaled", "rotated")])
def test_the_mark_is_what_is_left(kind: str, how: tuple[str, ...]) -> None:
    shared = NETWORKS[kind]
    copy = changed(shared, MARK)
    suspect = disguise(copy, kind, np.random.default_rng(2), how=how)
    names = matrices(shared)
    assert min(residuals(realigned(suspect, shared, names), shared).values()) > 0.3
    found = unrotated(suspect, shared, names)
    assert list(found) == names
    assert max(residuals(found, shared).values()) < 1.3 * MARK
    for name in names:
        left, mark = found[name] - shared[name], copy[name] - shared[name]
        assert np.corrcoef(left.ravel(), mark.ravel())[0, 1] > 0.8, name


def test_one_row_of_the_stream_is_turned_with_it() -> None:
    shared = NETWORKS["vision"]
    suspect = disguise(changed(shared, MARK), "vision", np.random.default_rng(2), how=("rotated",))
    assert residuals(unrotated(suspect, shared, ["cls"]), shared)["cls"] < 2 * MARK


@pytest.mark.parametrize("kind", NETWORKS)
def test_trained_on_after_the_rotation(kind: str) -> None:
    shared = NETWORKS[kind]
    suspect = disguise(changed(shared, MARK), kind, np.random.default_rng(2), how=("permuted", "rotated"))
    found = unrotated(changed(suspect, 0.05, seed=4), shared, matrices(shared))
    assert max(residuals(found, shared).values()) < 0.09


def test_a_stream_that_was_not_rotated_stays() -> None:
    shared = NETWORKS["language"]
    copy = changed(shared, MARK)
    found = unrotated(copy, shared, matrices(shared))
    assert max(residuals(found, shared).values()) < 1.3 * MARK


@pytest.mark.parametrize(
    "suspect",
    [
        language(seed=9),
        {name: np.zeros_like(array) for name, array in language().items()},
        {name: np.full_like(array, np.nan) for name, array in language().items()},
        {name: np.ones((3, 3), np.float32) for name in language()},
        {},
    ],
)
def test_another_model_or_none_is_one_line(suspect: State) -> None:
    with pytest.raises(InputError, match="tells how its stream was turned") as caught:
        unrotated(suspect, language(), matrices(language()))
    assert "\n" not in str(caught.value)


def test_a_broken_tensor_is_an_error_where_it_is_read() -> None:
    shared = language()
    suspect = disguise(shared, "language", np.random.default_rng(2), how=("rotated",))
    suspect["blocks.0.mlp.up.weight"][0, 0] = np.inf
    found = unrotated(suspect, shared, matrices(shared))
    assert residuals({"embed.weight": found["embed.weight"]}, shared)["embed.weight"] < 0.01
    with pytest.raises(InputError, match="finite"):
        found["blocks.0.mlp.up.weight"]
