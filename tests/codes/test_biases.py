"""Biases: the same integers everywhere, and the law of the paper."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from flint import ctx

from codes import reference
from support import seeded
from zktrace.codes import Biases, Code, CodeKey, cutoff, draw
from zktrace.codes.biases import threshold_range
from zktrace.codes.laws import _rounded
from zktrace.errors import InputError


def seed(label: str) -> bytes:
    return seeded(label)(32)


@pytest.mark.parametrize(("length", "colluders"), [(1, 2), (257, 2), (100, 3), (64, 1000)])
def test_thresholds_equal_the_slow_reference(length: int, colluders: int) -> None:
    found = draw(seed("reference"), length, colluders).thresholds
    assert found.tolist() == reference.thresholds(seed("reference"), length, colluders)


@pytest.mark.parametrize("bits", [2, 20, 40, 53, 500])
def test_the_working_precision_does_not_matter(bits: int) -> None:
    with ctx.workprec(bits):
        found = draw(seed("precision"), 64, 2)
        assert ctx.prec == bits
    assert found == draw(seed("precision"), 64, 2)


@pytest.mark.parametrize("colluders", [2, 3, 20, 65_536])
def test_the_ends_of_the_range(colluders: int) -> None:
    low, high = threshold_range(colluders)
    delta = cutoff(colluders)
    assert Fraction(low - 1, 2**32) < delta <= Fraction(low, 2**32)
    assert Fraction(high, 2**32) <= 1 - delta < Fraction(high + 1, 2**32)
    first, last = _rounded([0, 2**64 - 1], colluders)
    assert abs(first - low) <= 1
    assert abs(last - high) <= 1


def test_the_law_is_the_arcsine_law_of_the_paper() -> None:
    """F(p) = (arcsin √p - θ0)/(π/2 - 2 θ0), the integral of the density in `def:overlay`."""
    p = draw(seed("law"), 20_000, 2).probabilities()
    first = math.asin(math.sqrt(1 / 600))

    def law(x: np.ndarray) -> np.ndarray:
        return np.clip((np.arcsin(np.sqrt(x)) - first) / (math.pi / 2 - 2 * first), 0, 1)

    assert scipy.stats.kstest(p, law).pvalue > 0.01
    counts = np.histogram(law(p), bins=50, range=(0, 1))[0]
    assert scipy.stats.chisquare(counts).pvalue > 0.01


def test_the_density_is_the_derivative_of_that_law() -> None:
    """The constant of the paper's density, by numerical integration."""
    delta = 1 / 600
    constant = math.pi - 4 * math.asin(math.sqrt(delta))
    x, w = np.polynomial.legendre.leggauss(400)
    p = delta + (1 - 2 * delta) * (x + 1) / 2
    total = (1 - 2 * delta) / 2 * float(w @ (1 / (constant * np.sqrt(p * (1 - p)))))
    assert total == pytest.approx(1, abs=1e-6)


def test_neighbouring_positions_are_unrelated() -> None:
    p = draw(seed("law"), 20_000, 2).probabilities()
    assert abs(np.corrcoef(p[:-1], p[1:])[0, 1]) < 4 / math.sqrt(20_000)


def test_every_argument_changes_the_draw() -> None:
    base = draw(seed("a"), 64, 2)
    assert base == draw(seed("a"), 64, 2)
    assert hash(base) == hash(draw(seed("a"), 64, 2))
    for other in (draw(seed("b"), 64, 2), draw(seed("a"), 64, 3)):
        assert base != other
        assert (base.thresholds != other.thresholds).mean() > 0.9
    longer = draw(seed("a"), 65, 2)
    assert base != longer
    assert (base.thresholds == longer.thresholds[:64]).all()


def test_the_two_readings_of_a_bias_are_exact() -> None:
    biases = draw(seed("exact"), 100, 2)
    assert biases.length == 100
    pairs = zip(biases.probabilities().tolist(), biases.fractions(), strict=True)
    assert all(Fraction(p) == fraction for p, fraction in pairs)
    assert [f * 2**32 for f in biases.fractions()] == biases.thresholds.tolist()


def test_biases_are_frozen() -> None:
    given = np.array([2**31, 2**30], dtype=np.uint32)
    biases = Biases(thresholds=given, colluders=2)
    given[0] = 0
    assert biases.thresholds[0] == 2**31
    with pytest.raises(ValueError, match="read-only"):
        biases.thresholds[0] = 5


@pytest.mark.parametrize(
    ("thresholds", "colluders", "reason"),
    [
        ([7_158_278], 2, "position 0 is beyond the cutoff 1/600"),
        ([2**31, 2**32 - 7_158_278], 2, "position 1 is beyond the cutoff 1/600"),
        ([-1], 2, "beyond the cutoff"),
        ([2**40], 2, "beyond the cutoff"),
        ([], 2, "integers|length"),
        ([[2**31]], 2, "one row of integers"),
        ([0.5], 2, "one row of integers"),
        ([2**31], 1, "coalition size of a code must lie in 2"),
        ([2**31], 2.5, "whole number"),
    ],
)
def test_other_biases_cannot_exist(thresholds: list[int], colluders: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Biases(thresholds=np.array(thresholds), colluders=colluders)
    Biases(thresholds=np.array([7_158_279, 2**32 - 7_158_279]), colluders=2)


@pytest.mark.parametrize(
    ("label", "length", "colluders"),
    [
        ("", 8, 2),
        ("x" * 256, 8, 2),
        ("\ud800", 8, 2),
        (b"x", 8, 2),
        ("x", 0, 2),
        ("x", 2**20 + 1, 2),
        ("x", 8, 1),
    ],
)
def test_a_code_that_cannot_be_is_an_input_error(label: str, length: int, colluders: int) -> None:
    with pytest.raises(InputError):
        Code(key=CodeKey(secret=bytes(32)), label=label, length=length, colluders=colluders)
