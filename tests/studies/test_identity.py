"""What is measured of a federation, against slow and obvious forms of the same."""

import math
import statistics

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.certificates.identity import radius_check
from zktrace.studies.identity import (
    attributed,
    margins_of,
    presence,
    shifts,
    signed_margins,
    some_of_each,
    spread_facts,
    widened,
)

WORDS = np.array([[0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 1]], np.uint8)


def state(seed: int, factor: float = 1.0) -> dict[str, np.ndarray]:
    """Two BatchNorm layers and a convolution; deviations of scales and shifts grow with `factor`."""
    rng = np.random.default_rng(seed)
    found = {"conv.weight": rng.standard_normal((2, 2))}
    for name, size, level in (("bn1", 4, 1.0), ("layer1.bn", 3, 5.0)):
        scales, moves = rng.standard_normal(size), rng.standard_normal(size)
        found |= {
            f"{name}.weight": level + factor * scales,
            f"{name}.bias": factor / 2 * moves,
            f"{name}.running_var": np.ones(size),
        }
    return found


def test_attribution_has_two_denominators() -> None:
    read = WORDS.copy()
    read[1] = WORDS[0]  # station 1 is taken for station 0
    check = radius_check(read, WORDS)
    assert attributed(check, range(3)) == pytest.approx(2 / 3)
    assert attributed(check, [0, 2]) == 1.0
    assert attributed(check, [1]) == 0.0
    assert attributed(check, []) is None


def test_presence_forgives_no_bit() -> None:
    """Of 2^n words only one lies within a ball that a chance of 2^-n pays for."""
    read = WORDS.copy()
    read[2, 3] ^= 1
    assert presence(radius_check(WORDS, WORDS), 6) == 1.0
    assert presence(radius_check(read, WORDS), 6) == pytest.approx(2 / 3)


def test_margins_are_counted_bit_by_bit() -> None:
    rng = np.random.default_rng(4)
    reads = [rng.standard_normal(6) for _ in WORDS]
    found = margins_of([signed_margins(*each) for each in zip(reads, WORDS, strict=True)], wanted=0.3)
    every = [
        value if bit else -value
        for read, word in zip(reads, WORDS.tolist(), strict=True)
        for value, bit in zip(read.tolist(), word, strict=True)
    ]
    assert found is not None
    assert (found.stations, found.wanted) == (3, 0.3)
    assert found.least == pytest.approx(min(every))
    assert found.mean == pytest.approx(statistics.fmean(every))
    assert found.reached == pytest.approx(sum(each >= 0.3 for each in every) / 18)
    assert found.right == pytest.approx(sum(each > 0 for each in every) / 18)
    assert 0 < found.reached < found.right < 1
    assert margins_of([], wanted=0.3) is None


def test_spread_is_a_ratio_of_deviations() -> None:
    before, after = state(1), state(1, 3.0)
    found = spread_facts(before, after)
    names = ("bn1", "layer1.bn")
    scales = [[v for name in names for v in each[f"{name}.weight"].tolist()] for each in (before, after)]
    assert found["gamma"] == pytest.approx(statistics.pstdev(scales[1]) / statistics.pstdev(scales[0]))
    assert found["gamma_in_layers"] == pytest.approx(3.0)  # levels of layers do not count
    assert found["beta"] == pytest.approx(3.0)
    moves = [v for name in names for v in before[f"{name}.bias"].tolist()]
    assert shifts(before).tolist() == moves
    inside = [v - statistics.fmean(before[f"{n}.bias"]) for n in names for v in before[f"{n}.bias"].tolist()]
    other = state(2)
    wider = [v - statistics.fmean(other[f"{n}.bias"]) for n in names for v in other[f"{n}.bias"].tolist()]
    ratio = statistics.pstdev(wider) / statistics.pstdev(inside)
    assert spread_facts(before, other)["beta_in_layers"] == pytest.approx(ratio)


def test_a_deviation_of_nothing_has_no_ratio() -> None:
    assert widened(np.zeros(4), np.arange(4.0)) is None
    assert math.isclose(widened(np.arange(4.0), np.zeros(4)) or 0.0, 0.0)


def test_some_of_each_class_and_never_one_twice() -> None:
    labels = np.array([0] * 50 + [1] * 3 + [4] * 20)
    found = some_of_each(labels, 5, np.random.default_rng(0))
    assert np.bincount(labels[found], minlength=5).tolist() == [5, 3, 0, 0, 5]
    assert len(set(found.tolist())) == len(found)
    assert found.tolist() != some_of_each(labels, 5, np.random.default_rng(1)).tolist()
