"""Tensors that were permuted, rescaled and turned in sign come back to where the shared model has them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.readouts.realigning import align_tensor, realigned
from zktrace.readouts.tensor_places import Balanced, balance, find_places, leading_signs, products

Array = NDArray[Any]
SHAPES = [
    (24, 3, 5, 5),
    (48, 32, 3, 3),
    (64, 48, 1, 1),
    (10, 96),
    (96, 10),
    (80, 64),
    (64, 1, 3, 3),
    (1, 17, 48),
]
MARK = 0.01


def drawn(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def marked(shared: Array, size: float = MARK, seed: int = 1) -> Array:
    return shared + np.float32(size) * drawn(shared.shape, seed)


def disguised(tensor: Array, *, spread: float = 1.0, seed: int = 2) -> Array:
    """Rows and columns permuted, scaled and turned in sign; leading axes of one are no rows."""
    rng = np.random.default_rng(seed)
    whole, tensor = tensor.shape, tensor.reshape(tensor.shape[1:] if len(tensor) == 1 else tensor.shape)
    made = tensor.astype(np.float64)
    for axis in (0, 1):
        size = tensor.shape[axis]
        factors = np.exp(spread * rng.standard_normal(size)) * rng.choice([-1.0, 1.0], size)
        made = made.take(rng.permutation(size), axis)
        made *= factors.reshape([-1 if each == axis else 1 for each in range(tensor.ndim)])
    return made.astype(np.float32).reshape(whole)


def coarse(tensor: Array, bits: int) -> Array:
    low, high = float(tensor.min()), float(tensor.max())
    step = (high - low) / (2**bits - 1)
    return (np.round((tensor - low) / step) * step + low).astype(np.float32)


def likeness(one: Array, other: Array) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_disguise_is_undone_and_the_mark_is_left(shape: tuple[int, ...]) -> None:
    shared = drawn(shape)
    copy = marked(shared)
    found = align_tensor(disguised(copy), shared)
    assert found.moved
    assert found.array.shape == shape
    assert found.residual < 1.1 * MARK
    assert likeness(found.array - shared, copy - shared) > 0.9
    assert found.array == pytest.approx(copy, abs=0.05)


@pytest.mark.parametrize("shape", SHAPES[1:6])
@pytest.mark.parametrize(
    ("after", "most"),
    [
        (lambda x: coarse(disguised(x, spread=0.5), 8), 0.25),
        (lambda x: coarse(disguised(x, spread=1e-9), 4), 0.25),
        (lambda x: disguised(marked(x, 0.04, seed=5)), 0.05),
        (lambda x: disguised(marked(x, 0.1, seed=5)), 0.11),
    ],
)
def test_quantised_or_trained_on(shape: tuple[int, ...], after: Any, most: float) -> None:
    """The residual is that of the change alone: the places were found."""
    shared = drawn(shape)
    assert align_tensor(after(marked(shared)), shared).residual < most


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [0.0, MARK, 0.3])
def test_what_was_not_disguised_is_left_alone(shape: tuple[int, ...], size: float) -> None:
    shared = drawn(shape)
    copy = marked(shared, size)
    found = align_tensor(copy, shared)
    assert not found.moved
    assert np.array_equal(found.array, copy)
    assert found.residual == pytest.approx(np.std(copy - shared) / shared.std(), rel=0.05, abs=1e-6)


def test_a_permutation_alone_changes_no_number() -> None:
    shared = drawn((48, 32, 3, 3))
    copy, rng = marked(shared), np.random.default_rng(3)
    suspect = copy[rng.permutation(48)][:, rng.permutation(32)]
    assert np.array_equal(align_tensor(suspect, shared).array, copy)


def test_two_channels_that_changed_places_are_seen() -> None:
    shared = drawn((48, 32, 3, 3))
    copy = marked(shared)
    suspect = copy.copy()
    suspect[[3, 7]] = suspect[[7, 3]]
    assert np.array_equal(align_tensor(suspect, shared).array, copy)


def test_another_model_stays_far() -> None:
    shared = drawn((48, 32, 3, 3))
    assert align_tensor(drawn((48, 32, 3, 3), seed=9), shared).residual > 0.8


def test_half_precision_and_float64_are_taken() -> None:
    shared = drawn((64, 48))
    suspect = disguised(marked(shared), spread=0.5)
    for dtype in (np.float16, np.float64):
        assert align_tensor(suspect.astype(dtype), shared).residual < 1.1 * MARK


def test_a_tensor_with_more_factors_than_numbers_is_taken_as_it_is() -> None:
    shared = drawn((2, 64))
    suspect = disguised(shared)
    found = align_tensor(suspect, shared)
    assert np.array_equal(found.array, suspect)
    assert not found.moved


def test_long_axes_stay_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zktrace.readouts.tensor_places.LONGEST", 63)
    shared = drawn((64, 48))
    copy, rng = marked(shared), np.random.default_rng(3)
    assert np.array_equal(align_tensor(copy[:, rng.permutation(48)], shared).array, copy)
    assert align_tensor(copy[rng.permutation(64)], shared).residual > 0.5


def test_long_rows_are_compared_in_some_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_WORK": 1, "_MOST": 24, "_LEAST": 24, "_CHUNK": 64, "_MANY": 16}.items():
        monkeypatch.setattr(f"zktrace.readouts.tensor_places.{name}", value)
    shared = drawn((64, 48))
    assert align_tensor(disguised(marked(shared)), shared).residual < 1.1 * MARK


def test_a_large_tensor_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zktrace.readouts.realigning.LARGEST", 1000)
    shared = drawn((64, 48))
    suspect = disguised(shared)
    assert np.array_equal(align_tensor(suspect, shared).array, suspect)


@pytest.mark.parametrize("suspect", [np.zeros((32, 24)), np.ones((32, 24)), np.eye(32, 24), np.tri(32, 24)])
def test_degenerate_tensors_end(suspect: Array) -> None:
    found = align_tensor(suspect, drawn((32, 24)))
    assert np.isfinite(found.array).all()
    assert found.residual > 0.5


def test_dead_channels_are_no_obstacle() -> None:
    shared = drawn((48, 32, 3, 3))
    copy = marked(shared)
    copy[5], copy[:, 7] = 0, 0
    found = align_tensor(disguised(copy), shared).array
    assert found == pytest.approx(copy, abs=0.05)


@pytest.mark.parametrize(
    ("suspect", "shared", "words"),
    [
        (np.full((8, 8), np.nan), np.ones((8, 8)), "finite"),
        (np.full((8, 8), np.inf), np.ones((8, 8)), "finite"),
        (drawn((8, 8)), np.ones((8, 8)), "the same"),
        (drawn((8, 4)), drawn((8, 8)), "shape"),
        (drawn((8,)), drawn((8,)), "shape"),
        (drawn((8, 0)), drawn((8, 0)), "shape"),
        (np.ones((8, 8), np.int64), drawn((8, 8)), "int64"),
        (np.full((8, 8), 1e200), drawn((8, 8)), "not aligned"),
        (np.full((8, 8), 1e-200), drawn((8, 8)), "not aligned"),
    ],
)
def test_what_cannot_be_aligned_is_one_line(suspect: Array, shared: Array, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        align_tensor(suspect, shared)
    assert "\n" not in str(caught.value)


def test_a_model_comes_back_tensor_by_tensor() -> None:
    shared = {"a": drawn((32, 24)), "b": drawn((24, 8, 3, 3), 3), "c": drawn((24,)), "d": drawn((8, 8), 4)}
    copy = {name: marked(array) for name, array in shared.items()}
    suspect = {name: disguised(copy[name]) for name in "ab"} | {"c": copy["c"], "d": np.ones((4, 4))}
    suspect["e"] = drawn((8, 8))
    for given in (suspect, ModelState.from_arrays(suspect)):
        found = realigned(given, ModelState.from_arrays(shared), ["b", "a", "c", "d", "e", "f"])
        assert list(found) == ["b", "a"]
        assert all(found[name] == pytest.approx(copy[name], abs=0.05) for name in found)
        with pytest.raises(KeyError):
            found["c"]
    suspect["a"][3, 3] = np.nan
    with pytest.raises(InputError, match=r"'a': .*finite"):
        realigned(suspect, shared, ["a"])["a"]


def test_balancing_takes_factors_away() -> None:
    one = np.square(drawn((20, 30)).astype(np.float64))
    rows, columns = balance(one)
    even = rows[:, None] ** 2 * one * columns**2
    assert even.mean(axis=0) == pytest.approx(1)
    assert even.mean(axis=1) == pytest.approx(1, rel=1e-6)
    factors = np.exp(np.random.default_rng(1).standard_normal(20))
    again, _ = balance(one * factors[:, None])
    assert again / again.mean() == pytest.approx(
        (rows / factors**0.5) / (rows / factors**0.5).mean(), rel=1e-6
    )


def test_places_and_signs_are_those_of_the_disguise() -> None:
    shared = drawn((20, 16, 3)).astype(np.float64)
    rng = np.random.default_rng(4)
    rows, columns = rng.permutation(20), rng.permutation(16)
    signs = rng.choice([-1.0, 1.0], 20), rng.choice([-1.0, 1.0], 16)
    suspect = (shared * signs[0][:, None, None] * signs[1][:, None])[rows][:, columns]
    theirs, ours = Balanced.of(suspect), Balanced.of(shared)
    places = find_places(theirs, ours)
    assert np.array_equal(rows[places.rows], np.arange(20))
    assert np.array_equal(columns[places.columns], np.arange(16))
    found = leading_signs(theirs, ours, places, products(places.put(suspect), shared))
    assert np.array_equal(np.outer(*found), np.outer(*signs))


def test_products_are_sums_over_taps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zktrace.readouts.tensor_places._CHUNK", 50)
    for taps in (1, 4):
        one, other = drawn((9, 7, taps)), drawn((9, 7, taps), 1)
        plain = [
            [sum(float(a) * float(b) for a, b in zip(x, y, strict=True)) for x, y in zip(p, q, strict=True)]
            for p, q in zip(one, other, strict=True)
        ]
        assert products(one, other) == pytest.approx(np.array(plain))
