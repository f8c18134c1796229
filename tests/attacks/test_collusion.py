"""Copies put together weight by weight: every strategy against a loop over weights."""

import statistics
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from zktrace.attacks import collusion
from zktrace.attacks.bfloat16 import rounded, widened
from zktrace.attacks.collusion import STRATEGIES, collude
from zktrace.errors import InputError
from zktrace.learning.aggregation import fedavg
from zktrace.learning.arrays import State

SIZES = (2, 3, 4, 5, 8)


def copies(count: int, seed: int = 0) -> list[State]:
    """Copies of one small model: a matrix, a half-precision one, a variance, a counter, a flag."""
    rng = np.random.default_rng([seed, count])
    shared = rng.normal(size=(6, 7))
    return [
        {
            "weight": (shared + 0.1 * rng.normal(size=shared.shape)).astype(np.float32),
            "half": (shared + 0.1 * rng.normal(size=shared.shape)).astype(np.float16),
            "double": shared + 0.1 * rng.normal(size=shared.shape),
            "bn.running_var": rng.exponential(size=9).astype(np.float32),
            "bn.num_batches_tracked": np.array(100 + station, np.int64),
            "mask": np.array([station % 2 == 0, True]),
            "empty": np.zeros((0, 3), np.float32),
        }
        for station in range(count)
    ]


def farthest(held: Sequence[float]) -> list[float]:
    """All values that are farthest from the mean, but for rounding."""
    mean = statistics.fmean(held)
    most = max(abs(each - mean) for each in held)
    return [each for each in held if abs(each - mean) >= most - 1e-12]


# What a strategy may make of the numbers at one weight.
ALLOWED: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
    "mean": lambda held: [statistics.fmean(held)],
    "random": lambda held: held,
    "median": lambda held: [statistics.median(held)],
    "minimum": lambda held: [min(held)],
    "maximum": lambda held: [max(held)],
    "midrange": lambda held: [(min(held) + max(held)) / 2],
    "modified-negative": lambda held: [min(held) + max(held) - statistics.median(held)],
    "random-negative": lambda held: [min(held), max(held)],
    "farthest": farthest,
}


def test_every_strategy_has_a_definition_here() -> None:
    assert set(STRATEGIES) == {*ALLOWED, "weighted"}


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("strategy", ALLOWED)
def test_each_weight_is_what_the_definition_says(
    strategy: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = copies(count)
    monkeypatch.setattr(collusion, "_PART", 50)  # tensors in several parts
    made = collude(states, strategy, rng=np.random.default_rng(1))
    for name in ("weight", "half", "double", "bn.running_var"):
        array = made[name]
        assert (array.dtype, array.shape) == (states[0][name].dtype, states[0][name].shape)
        for place in np.ndindex(array.shape):
            held = [float(state[name][place]) for state in states]
            allowed = np.array(ALLOWED[strategy](held)).astype(array.dtype)
            assert np.isclose(array[place], allowed, rtol=1e-6 if array.dtype == np.float32 else 1e-12).any()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_made_lies_between_the_copies_in_their_own_types(strategy: str) -> None:
    states = copies(5)
    made = dict(collude(states, strategy, rng=np.random.default_rng(2)))
    assert list(made) == list(states[0])
    for name, array in made.items():
        held = np.stack([state[name] for state in states])
        assert array.dtype == held.dtype
        if array.dtype.kind == "f":
            assert ((array >= held.min(axis=0)) & (array <= held.max(axis=0))).all()
        else:
            assert np.array_equal(array, held[0])
    assert (made["bn.running_var"] >= 0).all()


def test_the_mean_is_that_of_an_aggregation() -> None:
    states = copies(3)
    wanted = fedavg([{"w": each["weight"], "h": each["half"]} for each in states], [1, 1, 1])
    made = collude(states)
    assert np.array_equal(made["weight"], wanted["w"])
    assert np.array_equal(made["half"], wanted["h"])


def test_weights_are_those_given_or_a_drawn_mixture() -> None:
    states = copies(3)
    exact = np.stack([each["double"] for each in states])
    given = collude(states, "weighted", weights=[3, 0, 1])["double"]
    assert given == pytest.approx(0.75 * exact[0] + 0.25 * exact[2])
    drawn = [collude(states, "weighted", rng=np.random.default_rng(seed)) for seed in (1, 2)]
    for made in drawn:
        flat = exact.reshape(3, -1).T
        shares, left, _, _ = np.linalg.lstsq(flat, made["double"].reshape(-1), rcond=None)
        assert left.sum() < 1e-20
        assert shares.sum() == pytest.approx(1)
        assert (shares > 0).all()
        other = np.linalg.lstsq(
            np.stack([each["weight"].reshape(-1) for each in states]).T.astype(np.float64),
            made["weight"].reshape(-1).astype(np.float64),
            rcond=None,
        )[0]
        assert other == pytest.approx(shares, abs=1e-4)  # one mixture for all tensors
    assert not np.array_equal(drawn[0]["double"], drawn[1]["double"])


@pytest.mark.parametrize("strategy", ["random", "random-negative", "farthest", "weighted"])
def test_what_is_drawn_is_decided_by_the_generator(strategy: str) -> None:
    states = copies(2)
    one = collude(states, strategy, rng=np.random.default_rng(3))
    same = collude(states, strategy, rng=np.random.default_rng(3))
    other = collude(states, strategy, rng=np.random.default_rng(4))
    assert np.array_equal(one["double"], one["double"])
    assert np.array_equal(one["double"], same["double"])
    assert not np.array_equal(one["double"], other["double"])
    with pytest.raises(InputError, match="give it a generator"):
        collude(states, strategy)


def test_draws_are_fair_and_differ_between_tensors() -> None:
    states = [{name: np.full(4000, float(i)) for name in "ab"} for i in range(4)]
    made = collude(states, "random", rng=np.random.default_rng(5))
    counts = np.bincount(made["a"].astype(int), minlength=4)
    assert abs(counts - 1000).max() < 5 * (4000 * 3 / 16) ** 0.5
    assert (made["a"] == made["b"]).mean() == pytest.approx(0.25, abs=5 * (3 / 16 / 4000) ** 0.5)
    for strategy in ("random-negative", "farthest"):  # the ends are as far from the mean
        ends = collude(states, strategy, rng=np.random.default_rng(6))["a"]
        assert set(ends) == {0.0, 3.0}
        assert (ends == 0).mean() == pytest.approx(0.5, abs=5 * (0.25 / 4000) ** 0.5)


def test_copies_that_do_not_fit_are_refused() -> None:
    states = copies(2)
    for name, wrong, words in (
        ("weight", np.zeros((7, 6), np.float32), "copy 2: 'weight' is float32"),
        ("weight", np.zeros((6, 7)), "copy 2: 'weight' is float64"),
        ("weight", np.full((6, 7), np.nan, np.float32), "copy 2: 'weight' has values that are NaN"),
    ):
        with pytest.raises(InputError, match=words):
            dict(collude([states[0], states[1] | {name: wrong}]))
    with pytest.raises(InputError, match="only one of it and copy 1 has 'more'"):
        collude([states[0], states[1] | {"more": np.zeros(1)}])
    with pytest.raises(InputError, match="at least two"):
        collude(states[:1])


def nearest(value: float) -> NDArray[np.uint16]:
    """The bits of the bfloat16 numbers nearest to a value, by a search over all of them."""
    every = np.arange(1 << 16, dtype=np.uint16)
    every = every[np.isfinite(widened(every)) & (np.signbit(widened(every)) == np.signbit(value))]
    apart = np.abs(widened(every).astype(np.float64) - value)
    return every[apart == apart.min()]


def test_bfloat16_is_rounded_to_the_nearest_and_then_to_the_even() -> None:
    rng = np.random.default_rng(0)
    ulp = 2.0**-7
    near = [1 + ulp / 2 + tiny for tiny in (0, 1e-12, -1e-12)] + [
        1 + 1.5 * ulp + t for t in (0, 1e-12, -1e-12)
    ]
    values = np.array([*near, *(-np.array(near)), 0.0, 1e-40, -3e-41, *rng.normal(size=40)])
    for value, bits in zip(values, rounded(values), strict=True):
        candidates = nearest(float(value))
        assert bits in candidates
        assert len(candidates) == 1 or bits % 2 == 0
    every = np.arange(0x7F80, dtype=np.uint16)
    assert np.array_equal(rounded(widened(every).astype(np.float64)), every)


def test_bits_of_bfloat16_are_put_together_as_numbers() -> None:
    rng = np.random.default_rng(1)
    held = rounded(rng.normal(size=(3, 50)))
    made = collude([{"w": each} for each in held], bfloat16={"w"})["w"]
    assert made.dtype == np.uint16
    assert np.array_equal(made, rounded(widened(held).astype(np.float64).mean(axis=0)))
