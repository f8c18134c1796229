"""Presence calibration: every number of the proposition, and enumeration of small cases."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zktrace.certificates.presence import (
    acceptance,
    false_accept,
    false_accept_log2,
    largest_radius,
    minimal_length,
)
from zktrace.errors import InputError, LimitExceeded

TARGET = Fraction(1, 2**128)


@pytest.mark.parametrize(
    ("length", "bits", "radius"),
    [
        (128, 128, 0),
        (256, 128, 29),
        (512, 128, 112),
        (1280, 128, 408),
        (128, 64, 15),
        (256, 64, 56),
        (512, 64, 154),
    ],
)
def test_largest_radius(length: int, bits: int, radius: int) -> None:
    target = Fraction(1, 2**bits)
    assert largest_radius(length, target) == radius
    assert false_accept(length, radius) <= target < false_accept(length, radius + 1)


def test_radius_zero_holds_one_vector_and_radius_one_129() -> None:
    assert false_accept(128, 0) == Fraction(1, 2**128)
    assert false_accept(128, 1) == Fraction(129, 2**128)
    assert false_accept_log2(128, 0) == -128


@pytest.mark.parametrize(("accuracy", "length", "radius"), [(0.95, 202, 15), (0.93, 233, 23)])
def test_minimal_lengths(accuracy: float, length: int, radius: int) -> None:
    found = minimal_length(accuracy=accuracy, completeness=0.95, target=TARGET)
    assert (found.length, found.radius) == (length, radius)
    assert found.acceptance >= Fraction(95, 100)
    assert found.false_accept <= TARGET
    before = largest_radius(length - 1, TARGET)
    assert acceptance(length - 1, before, accuracy) < Fraction(95, 100)


def test_completeness_of_exact_presence() -> None:
    assert acceptance(128, 0, 1) == 1
    assert f"{float(acceptance(128, 0, 0.9999)):.4f}" == "0.9873"


@pytest.mark.parametrize("length", range(1, 9))
def test_against_enumeration(length: int) -> None:
    words = list(product((0, 1), repeat=length))
    for radius in range(length + 1):
        near = sum(sum(word) <= radius for word in words)
        assert false_accept(length, radius) == Fraction(near, len(words))
        right = Fraction(4, 5)
        mass = sum(
            right ** (length - sum(word)) * (1 - right) ** sum(word) for word in words if sum(word) <= radius
        )
        assert acceptance(length, radius, 0.8) == mass


@given(st.integers(1, 400), st.integers(0, 1000), st.data())
def test_acceptance_against_scipy(length: int, thousandths: int, data: st.DataObject) -> None:
    accuracy = thousandths / 1000
    radius = data.draw(st.integers(0, length))
    expected = stats.binom.cdf(radius, length, 1 - accuracy)
    assert float(acceptance(length, radius, accuracy)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.integers(1, 300), st.data())
def test_the_logarithm_is_rounded_up(length: int, data: st.DataObject) -> None:
    radius = data.draw(st.integers(0, length))
    found, value = false_accept_log2(length, radius), false_accept(length, radius)
    assert found == pytest.approx(math.log2(value.numerator) - math.log2(value.denominator), abs=1e-9)
    assert found <= 0


@given(st.integers(1, 300), st.integers(0, 200))
def test_the_largest_radius_is_the_largest(length: int, bits: int) -> None:
    target = Fraction(1, 2**bits)
    radius = largest_radius(length, target)
    if radius is None:
        assert bits > length
    else:
        assert false_accept(length, radius) <= target
        assert radius == length or false_accept(length, radius + 1) > target


def test_a_word_too_short_for_the_target_has_no_radius() -> None:
    assert largest_radius(127, TARGET) is None
    assert largest_radius(8, 1) == 8


@pytest.mark.parametrize(
    "call",
    [
        lambda: false_accept(0, 0),
        lambda: false_accept(8, 9),
        lambda: false_accept(8, -1),
        lambda: largest_radius(8, 0),
        lambda: largest_radius(8, 1.5),
        lambda: largest_radius(0, 0.5),
        lambda: acceptance(8, 0, 1.01),
        lambda: minimal_length(accuracy=0.9, completeness=1.1, target=TARGET),
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        call()


def test_an_accuracy_of_one_half_never_suffices() -> None:
    with pytest.raises(LimitExceeded, match="4096"):
        minimal_length(accuracy=0.5, completeness=0.95, target=Fraction(1, 2**4000))
