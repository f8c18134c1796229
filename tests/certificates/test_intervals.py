"""Balls, their safe ends, and an integrator that cannot forget where a root has its cut."""

import math
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from zktrace.certificates.intervals import (
    Analytic,
    ball,
    dyadic,
    exact,
    exponential,
    from_dyadic,
    hull,
    integrate,
    log2,
    lower_decimal,
    lower_dyadic,
    lower_float,
    quotient,
    refined,
    upper_decimal,
    upper_dyadic,
    upper_float,
)
from zktrace.errors import InputError
from zktrace.primitives.precision import precision

floats = st.floats(allow_nan=False, allow_infinity=False)
fractions = st.fractions(max_denominator=10**30)
mantissas = st.integers(-(2**200), 2**200)
exponents = st.integers(-1200, 1200)


def power_of_two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


# ── precision and numbers ──


def test_precision_holds_inside_the_block_only() -> None:
    before = ctx.prec
    with precision(200):
        assert ctx.prec == 200
        with precision(60):
            assert ctx.prec == 60
        assert ctx.prec == 200
    assert ctx.prec == before


def test_precision_is_restored_after_an_error() -> None:
    before = ctx.prec
    with pytest.raises(ZeroDivisionError), precision(300):
        _ = 1 // 0
    assert ctx.prec == before


def test_two_threads_do_not_disturb_each_other() -> None:
    seen = []

    def work(bits: int) -> None:
        for _ in range(50):
            with precision(bits):
                seen.append((bits, ctx.prec, (arb(1) / 3).rel_accuracy_bits() > bits - 8))

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (80, 400)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 100
    assert all(wanted == found and fine for wanted, found, fine in seen)


def test_a_written_float_means_the_decimal_it_prints() -> None:
    assert exact(0.04) == Fraction(1, 25)
    assert exact(1e-3) == Fraction(1, 1000)
    assert exact(3) == 3
    assert exact(Fraction(1, 3)) == Fraction(1, 3)
    assert exact(np.float64(0.1)) == Fraction(1, 10)
    assert type(exact(np.int64(3)).numerator) is int


def test_a_computed_float_is_the_dyadic_number_it_is() -> None:
    assert dyadic(0.1).is_exact()
    assert lower_dyadic(dyadic(0.1)) == (0x1999999999999A >> 1, -55)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value: float) -> None:
    with pytest.raises(InputError, match="finite"):
        exact(value)


@given(fractions)
def test_a_ball_holds_its_number(value: Fraction) -> None:
    with precision(60):
        assert power(lower_dyadic(ball(value))) <= value <= power(upper_dyadic(ball(value)))


def power(pair: tuple[int, int]) -> Fraction:
    return pair[0] * power_of_two(pair[1])


@given(st.integers(-2000, 2000))
def test_log2_is_exact_for_powers_of_two(exponent: int) -> None:
    assert log2(power_of_two(exponent)) == exponent


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_log2_encloses(value: Fraction) -> None:
    with precision():
        assert abs(float(log2(value)) - math.log2(value)) < 1e-12


def test_refined_raises_the_precision_until_the_answer_is_good() -> None:
    def cancelling() -> arb:
        return (1 + arb((1, -900))).log()

    assert cancelling().rel_accuracy_bits() < 0
    assert refined(cancelling, bits=60).rel_accuracy_bits() >= 60


def test_refined_gives_up_at_its_limit() -> None:
    with pytest.raises(InputError, match="no enclosure"):
        refined(lambda: arb.pi() - arb.pi(), limit=512)


# ── tight operations on wide balls ──


@given(
    st.fractions(-100, 100, max_denominator=1000),
    st.fractions(0, 10, max_denominator=1000),
    st.fractions(Fraction(1, 100), 100, max_denominator=1000),
    st.fractions(0, 10, max_denominator=1000),
)
def test_quotient_is_tight_at_both_ends(
    low: Fraction, width: Fraction, small: Fraction, more: Fraction
) -> None:
    with precision():
        found = quotient(hull(ball(low), ball(low + width)), hull(ball(small), ball(small + more)))
        corners = [x / y for x in (low, low + width) for y in (small, small + more)]
        assert lower_float(found) <= min(corners)
        assert upper_float(found) >= max(corners)
        near = 1e-5 * (1 + max(abs(float(corner)) for corner in corners))  # a radius has 30 bits
        assert lower_float(found) == pytest.approx(float(min(corners)), abs=near)
        assert upper_float(found) == pytest.approx(float(max(corners)), abs=near)


@given(st.floats(-50, 50), st.floats(0, 5))
def test_exponential_is_tight_at_both_ends(low: float, width: float) -> None:
    with precision():
        found = exponential(hull(dyadic(low), dyadic(low + width)))
        assert lower_float(found) == pytest.approx(math.exp(low), rel=1e-6, abs=1e-8 * math.exp(low + width))
        assert upper_float(found) >= math.exp(low + width) * (1 - 1e-15)
        assert upper_float(found) == pytest.approx(math.exp(low + width), rel=1e-7)


# ── integration ──


def test_a_root_across_its_cut_is_integrated_rightly() -> None:
    with precision():
        assert integrate(lambda z: (z * z).sqrt(), -1, 2).contains(arb(5) / 2)


def test_the_pitfall_this_module_exists_for() -> None:
    """Arb asked directly, without the flag, certifies a wrong number."""
    wrong = acb.integral(lambda z, _: (z * z).sqrt(), -1, 2).real
    assert not wrong.contains(arb(5) / 2)
    assert wrong.rad() < 1e-10


@pytest.mark.parametrize(
    ("integrand", "low", "high", "value"),
    [
        (lambda z: z.log(), 1, 2, lambda: 2 * arb(2).log() - 1),
        (lambda z: z.sqrt(), 1, 4, lambda: arb(14) / 3),
        (lambda z: z.power(arb(3) / 2), 1, 4, lambda: arb(62) / 5),
        (lambda z: (-z).exp() * 2, 0, 1, lambda: 2 - 2 * arb(-1).exp()),
        (lambda z: z.sin() + 1 - z.cos() / 1, 0, 1, lambda: 2 - arb(1).cos() - arb(1).sin()),
        (lambda z: 1 / (2 - z) + (3 - z) * (1 + z) - z**2, 0, 1, lambda: arb(2).log() + 3 + 1 - arb(2) / 3),
    ],
)
def test_integrals_known_in_closed_form(
    integrand: Callable[[Analytic], Analytic], low: int, high: int, value: Callable[[], arb]
) -> None:
    with precision():
        found = integrate(integrand, low, high)
        assert found.contains(value()) or found.overlaps(value())
        assert found.rel_accuracy_bits() > 50


def test_integral_against_mpmath() -> None:
    with precision():
        found = integrate(lambda z: (z.cos() / z).exp(), 1, 3)
    assert float(found) == pytest.approx(
        float(mpmath.quad(lambda x: mpmath.e ** (mpmath.cos(x) / x), [1, 3]))
    )


def test_an_error_in_the_integrand_comes_through() -> None:
    def broken(_: Analytic) -> Analytic:
        raise InputError("no such point")

    with pytest.raises(InputError, match="no such point"):
        integrate(broken, 0, 1)


def test_a_pole_on_the_path_is_refused() -> None:
    with precision(), pytest.raises(InputError, match="enclosed"):
        integrate(lambda z: 1 / z, -1, 1)


def test_inexact_ends_are_refused() -> None:
    with pytest.raises(InputError, match="exact"):
        integrate(lambda z: z, arb.pi(), 4)


# ── safe ends ──


@given(mantissas, exponents)
def test_an_exact_end_survives_serialisation(mantissa: int, exponent: int) -> None:
    value = from_dyadic(mantissa, exponent)
    assert power(upper_dyadic(value)) == power(lower_dyadic(value)) == mantissa * power_of_two(exponent)
    again = from_dyadic(*upper_dyadic(value))
    assert again == value
    assert again.is_exact()


@given(mantissas, exponents, st.integers(1, 2**29), exponents)
def test_dyadic_ends_lie_outside_the_ball(mantissa: int, exponent: int, radius: int, shift: int) -> None:
    value = arb((mantissa, exponent), (radius, shift))
    middle, width = mantissa * power_of_two(exponent), power((int(radius), shift))
    assert power(lower_dyadic(value)) <= middle - width
    assert power(upper_dyadic(value)) >= middle + width


@given(fractions)
def test_float_ends_are_the_nearest_outside(value: Fraction) -> None:
    up, down = upper_float(value), lower_float(value)
    assert down <= value <= up
    assert up == down or math.nextafter(down, math.inf) == up


@given(floats)
def test_a_float_is_its_own_end(value: float) -> None:
    assert upper_float(value) == lower_float(value) == value
    assert upper_float(dyadic(value)) == lower_float(dyadic(value)) == value


@given(mantissas.filter(bool), st.integers(-(10**12), 10**12))
def test_float_ends_of_extreme_numbers(mantissa: int, exponent: int) -> None:
    value = from_dyadic(mantissa, exponent)
    assert dyadic_at_most(lower_float(value), value)
    assert dyadic_at_most(-upper_float(value), from_dyadic(-mantissa, exponent))


def dyadic_at_most(number: float, value: arb) -> bool:
    return number == -math.inf or arb(number) <= value


def test_tiny_and_huge_ends() -> None:
    assert upper_float(from_dyadic(1, -5000)) == math.ulp(0.0)
    assert lower_float(from_dyadic(1, -5000)) == 0.0
    assert upper_float(from_dyadic(-1, -5000)) == 0.0
    assert math.copysign(1, upper_float(Fraction(0))) == 1
    assert upper_float(from_dyadic(1, 5000)) == math.inf
    assert lower_float(from_dyadic(1, 5000)) == math.nextafter(math.inf, 0)
    assert upper_float(Fraction(2) ** 1024 - 1) == math.inf
    assert lower_float(-(Fraction(2) ** 1024) + 1) == -math.inf


@given(fractions, st.integers(1, 40))
def test_decimals_round_outwards_by_less_than_one_digit(value: Fraction, digits: int) -> None:
    up, down = Decimal(upper_decimal(value, digits)), Decimal(lower_decimal(value, digits))
    assert Fraction(down) <= value <= Fraction(up)
    assert len(up.normalize().as_tuple().digits) <= digits
    assert Fraction(up) - Fraction(down) <= abs(value) * Fraction(10) ** (1 - digits) * 10


@given(st.floats(1e-300, 1e300), st.integers(1, 20))
def test_decimals_of_a_ball_hold_the_ball(value: float, digits: int) -> None:
    with precision(80):
        number = dyadic(value).log()
    low, high = lower_decimal(number, digits), upper_decimal(number, digits)
    assert Fraction(low) <= power(lower_dyadic(number))
    assert Fraction(high) >= power(upper_dyadic(number))


def test_printed_digits() -> None:
    assert upper_decimal(Fraction(1, 3), 4) == "0.3334"
    assert lower_decimal(Fraction(1, 3), 4) == "0.3333"
    assert upper_decimal(Fraction(-1, 3), 4) == "-0.3333"
    assert upper_decimal(111.00036, 7) == "111.0004"
    assert upper_decimal(Fraction(1, 4), 4) == "0.25"
    with precision():
        assert upper_decimal(arb.pi(), 3) == "3.15"
        assert lower_decimal(arb.pi(), 3) == "3.14"


@pytest.mark.parametrize("end", [upper_float, lower_float, upper_dyadic])
@pytest.mark.parametrize("value", [arb("nan"), arb.pos_inf(), arb.neg_inf()])
def test_no_end_of_a_ball_that_has_none(end: Callable[[arb], object], value: arb) -> None:
    with pytest.raises(InputError, match="finite end"):
        end(value)


def test_refusals() -> None:
    with pytest.raises(InputError, match="finite end"):
        upper_decimal(math.inf, 3)
    with pytest.raises(InputError, match="digits"):
        upper_decimal(1, 0)
    with pytest.raises(InputError, match="not printed"):
        upper_decimal(from_dyadic(1, -(10**9)), 3)
    with pytest.raises(InputError, match="precision"), precision(1):
        pass
