"""Lengths and thresholds in closed form."""

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.certificates.lengths import (
    bernstein_threshold,
    candidate_threshold,
    design_length,
    planning_index,
    score_bound,
)
from zktrace.codes import cutoff
from zktrace.errors import InputError

TEN = {"recipients": 10, "level": 1e-3}


def test_candidate_thresholds_the_paper_prints() -> None:
    assert f"{candidate_threshold(length=512, recipients=10, level=1e-3):.1f}" == "97.1"
    two_tails = candidate_threshold(length=2048, recipients=10, level=1e-3, tails=2)
    assert f"{two_tails:.1f}" == "201.4"


def test_a_second_carrier_costs_as_much_as_twice_the_recipients() -> None:
    one = candidate_threshold(length=2048, recipients=20, level=1e-3, tails=2)
    assert one == candidate_threshold(length=2048, recipients=10, level=1e-3, tails=2, carriers=2)


@pytest.mark.parametrize("design", [2, 3, 10])
def test_cutoff_and_bound(design: int) -> None:
    delta = cutoff(design)
    assert delta == Fraction(1, 300 * design)
    assert score_bound(design) == pytest.approx(math.sqrt(300 * design - 1))
    assert Fraction(score_bound(design)) ** 2 >= 300 * design - 1


@pytest.mark.parametrize(
    ("design", "flip", "length"), [(2, 0, 182), (3, 0, 410), (2, 0.04, 215), (3, 0.15, 835)]
)
def test_design_length(design: int, flip: float, length: int) -> None:
    assert design_length(design=design, flip=flip, **TEN) == length
    exact = math.pi**2 / 2 * design**2 / (1 - 2 * flip) ** 2 * math.log(1e4)
    assert length == math.ceil(exact)


def test_both_deployed_lengths_exceed_the_planning_rule() -> None:
    assert planning_index(length=512, flip=0.04, **TEN) > 2
    assert planning_index(length=2048, flip=0.15, **TEN) > 3


@given(st.integers(1, 20), st.floats(0, 0.45), st.integers(1, 10**6), st.floats(1e-12, 0.5))
def test_length_and_index_are_inverse(design: int, flip: float, recipients: int, level: float) -> None:
    options = {"recipients": recipients, "level": level, "flip": flip}
    length = design_length(design=design, **options)
    assert planning_index(length=length, **options) >= design - 1e-9
    if length > 1:
        assert planning_index(length=length - 1, **options) < design + 1e-9


def test_bernstein_threshold_solves_its_equation() -> None:
    z = bernstein_threshold(design=2, length=512, **TEN)
    b = mpmath.sqrt(599)
    assert float(z**2 / (1024 + 2 * b * z / 3)) == pytest.approx(math.log(1e4), rel=1e-14)
    assert z > candidate_threshold(length=512, recipients=10, level=1e-3)


@given(st.integers(2, 10), st.integers(1, 5000), st.integers(1, 10**6), st.floats(1e-9, 0.5))
def test_bernstein_is_always_above_the_candidate(
    design: int, length: int, recipients: int, level: float
) -> None:
    z = bernstein_threshold(design=design, length=length, recipients=recipients, level=level)
    assert z > candidate_threshold(length=length, recipients=recipients, level=level)


@pytest.mark.parametrize("word", ["rarer symbol", "ones", "coin"])
def test_innocents_stay_below_the_bernstein_threshold(word: str) -> None:
    rng = np.random.default_rng(9)
    n, innocents, trials = 100, 4, 2000
    p = np.sin(rng.uniform(math.asin(math.sqrt(1 / 600)), math.acos(math.sqrt(1 / 600)), n)) ** 2
    y = {"rarer symbol": p <= 0.5, "ones": p > 0, "coin": rng.random(n) < 0.5}[word]
    rows = rng.random((trials, innocents, n)) < p
    scores = (np.where(y, 1, -1) * (rows - p) / np.sqrt(p * (1 - p))).sum(axis=2)
    z = bernstein_threshold(design=2, length=n, recipients=innocents, level=0.2)
    assert (scores.max(axis=1) > z).mean() <= 0.2


@pytest.mark.parametrize(
    "call",
    [
        lambda: cutoff(1),
        lambda: score_bound(0),
        lambda: design_length(design=0, **TEN),
        lambda: design_length(design=2, flip=0.5, **TEN),
        lambda: design_length(design=2, flip=-0.1, **TEN),
        lambda: design_length(design=2, recipients=0, level=1e-3),
        lambda: design_length(design=2, recipients=10, level=0),
        lambda: planning_index(length=0, **TEN),
        lambda: candidate_threshold(length=512, recipients=10, level=1),
        lambda: candidate_threshold(length=512, recipients=10, level=0.1, tails=3),
        lambda: candidate_threshold(length=512, recipients=10, level=0.1, carriers=0),
        lambda: bernstein_threshold(design=2, length=-1, **TEN),
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        call()
