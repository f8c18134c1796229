"""Interval arithmetic: the only place that calls Arb's integrator or rounds a ball.

Two readings of a float, never mixed: a float that a person wrote (a level, a rate) means the decimal it
prints, so `exact(0.04)` is 1/25; a float that a computation produced is the dyadic number it is.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

from flint import acb, arb, fmpq

from zktrace.errors import InputError
from zktrace.primitives.precision import WORKING_BITS, precision

Number: TypeAlias = int | float | Fraction
Value: TypeAlias = arb | int | float | Fraction

_FLOAT_RANGE = 1100  # every finite positive float lies in [2^-1074, 2^1024)
_PRINT_RANGE = 1 << 20


def exact(value: Number, name: str = "a number") -> Fraction:
    """The rational number a person meant: a float stands for the decimal it prints."""
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, not {value}")
    return Fraction(repr(number))


def probability(value: Number, name: str) -> Fraction:
    """A number in [0, 1], as a person meant it."""
    number = exact(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must lie in [0, 1], not {value}")
    return number


def ball(value: Fraction | int) -> arb:
    """The tightest ball around a rational number at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def dyadic(value: float) -> arb:
    """The float itself, without error."""
    return arb(float(value))


def hull(one: arb, other: arb) -> arb:
    """The smallest ball that holds both."""
    return one.union(other)


def log2(value: Fraction) -> arb:
    """log2 of a positive rational number, exact for a power of two."""
    shift = _twos(value.numerator) - _twos(value.denominator)
    odd = value / Fraction(2) ** shift
    return shift + ball(odd).log() / arb.const_log2()


def _twos(number: int) -> int:
    return (number & -number).bit_length() - 1


def quotient(top: arb, bottom: arb) -> arb:
    """top/bottom for a positive bottom, tight at both ends, as the quotient of wide balls is not."""
    low, high = top.lower(), top.upper()
    small, large = bottom.lower(), bottom.upper()
    return hull(low / (large if low >= 0 else small), high / (small if high >= 0 else large))


def exponential(x: arb) -> arb:
    """e^x, tight at both ends, as the exponential of a wide ball is not."""
    return hull(x.lower().exp(), x.upper().exp())


def refined(compute: Callable[[], arb], *, bits: int = 64, limit: int = 1 << 14) -> arb:
    """`compute()` at a precision doubled until its relative accuracy is `bits` bits."""
    working = max(WORKING_BITS, 2 * bits)
    while working <= limit:
        with precision(working):
            value = compute()
            if value.is_finite() and value.rel_accuracy_bits() >= bits:
                return value
        working *= 2
    raise InputError(f"no enclosure of {bits} bits below a precision of {limit} bits")


# ── integration ────────────────────────────────────────────────────────────────────────────────────────────


class Analytic:
    """A complex ball on which an integrand is evaluated, and whether it must be analytic there.

    Arb's integrator asks for both. A root, a logarithm or a power that is not told of the second question
    answers across its branch cut, and the integrator returns a wrong ball as if it were certified. Here the
    operations with cuts are methods that always pass the flag on, so it cannot be forgotten.
    """

    __slots__ = ("analytic", "ball")

    def __init__(self, value: acb, analytic: bool) -> None:
        self.ball = value
        self.analytic = analytic

    def __add__(self, other: "Analytic | arb | int") -> "Analytic":
        return Analytic(self.ball + _plain(other), self.analytic)

    def __sub__(self, other: "Analytic | arb | int") -> "Analytic":
        return Analytic(self.ball - _plain(other), self.analytic)

    def __mul__(self, other: "Analytic | arb | int") -> "Analytic":
        return Analytic(self.ball * _plain(other), self.analytic)

    def __truediv__(self, other: "Analytic | arb | int") -> "Analytic":
        return Analytic(self.ball / _plain(other), self.analytic)

    def __radd__(self, other: arb | int) -> "Analytic":
        return Analytic(other + self.ball, self.analytic)

    def __rsub__(self, other: arb | int) -> "Analytic":
        return Analytic(other - self.ball, self.analytic)

    def __rmul__(self, other: arb | int) -> "Analytic":
        return Analytic(other * self.ball, self.analytic)

    def __rtruediv__(self, other: arb | int) -> "Analytic":
        return Analytic(other / self.ball, self.analytic)

    def __neg__(self) -> "Analytic":
        return Analytic(-self.ball, self.analytic)

    def __pow__(self, exponent: int) -> "Analytic":
        """A whole power, which has no cut; `power` takes any other exponent."""
        return Analytic(self.ball**exponent, self.analytic)

    def exp(self) -> "Analytic":
        return Analytic(self.ball.exp(), self.analytic)

    def sin(self) -> "Analytic":
        return Analytic(self.ball.sin(), self.analytic)

    def cos(self) -> "Analytic":
        return Analytic(self.ball.cos(), self.analytic)

    def sqrt(self) -> "Analytic":
        return Analytic(self.ball.sqrt(self.analytic), self.analytic)

    def log(self) -> "Analytic":
        return Analytic(self.ball.log(self.analytic), self.analytic)

    def power(self, exponent: arb) -> "Analytic":
        return Analytic(self.ball.pow(exponent, self.analytic), self.analytic)


def _plain(value: Analytic | arb | int) -> acb | arb | int:
    return value.ball if isinstance(value, Analytic) else value


def integrate(f: Callable[[Analytic], Analytic], low: arb | int, high: arb | int, *, bits: int = 64) -> arb:
    """A ball around the integral of `f` over [low, high], of about `bits` bits. The ends must be exact.

    Map an inexact interval onto [0, 1]: its ends then stand in the integrand, as balls.
    """
    ends = (arb(low), arb(high))
    if not all(end.is_exact() and end.is_finite() for end in ends):
        raise InputError("the ends of an integral must be exact and finite")
    failures: list[Exception] = []

    def callback(z: acb, analytic: bool) -> acb:
        if failures:
            return acb("nan")
        try:
            return f(Analytic(z, bool(analytic))).ball
        except Exception as error:  # Arb's integrator would turn it into a SystemError
            failures.append(error)
            return acb("nan")

    tolerance = arb((1, -bits))
    total = acb.integral(callback, ends[0], ends[1], rel_tol=tolerance, abs_tol=tolerance * arb((1, -bits)))
    if failures:
        raise failures[0]
    if not total.is_finite():
        raise InputError("the integral could not be enclosed")
    return total.real


# ── safe ends ──────────────────────────────────────────────────────────────────────────────────────────────


def upper_dyadic(value: arb) -> tuple[int, int]:
    """(m, e) with m 2^e at or above every number in the ball, and equal to it if the ball is exact."""
    with _enough_for(value):
        return _dyadic_end(value.upper())


def lower_dyadic(value: arb) -> tuple[int, int]:
    """(m, e) with m 2^e at or below every number in the ball, and equal to it if the ball is exact."""
    with _enough_for(value):
        return _dyadic_end(value.lower())


def from_dyadic(mantissa: int, exponent: int) -> arb:
    """The exact ball m 2^e: the way back from `upper_dyadic` and `lower_dyadic`."""
    return arb((mantissa, exponent))


def upper_float(value: Value) -> float:
    """The least float at or above the value."""
    return 0.0 - _floor_float(*_negative(_ratio(value, up=True)))


def lower_float(value: Value) -> float:
    """The greatest float at or below the value."""
    return _floor_float(*_ratio(value, up=False))


def upper_decimal(value: Value, digits: int) -> str:
    """`digits` significant digits, rounded towards plus infinity."""
    return _decimal(_ratio(value, up=True), digits, ROUND_CEILING)


def lower_decimal(value: Value, digits: int) -> str:
    """`digits` significant digits, rounded towards minus infinity."""
    return _decimal(_ratio(value, up=False), digits, ROUND_FLOOR)


_Ratio: TypeAlias = tuple[Fraction, int]  # (f, e) stands for f 2^e, so that e^-1000000 needs no million bits


def _ratio(value: Value, *, up: bool) -> _Ratio:
    """The end of a ball, or the number itself."""
    if isinstance(value, arb):
        mantissa, exponent = upper_dyadic(value) if up else lower_dyadic(value)
        return Fraction(mantissa), exponent
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{value} has no finite end")
    return Fraction(value), 0


def _enough_for(value: arb) -> AbstractContextManager[None]:
    """A precision at which an end of the ball is rounded outwards by next to nothing."""
    return precision(max(WORKING_BITS, value.bits() + 32))


def _dyadic_end(end: arb) -> tuple[int, int]:
    if not end.is_finite():
        raise InputError("the ball has no finite end")
    mantissa, exponent = end.man_exp()
    return int(mantissa), int(exponent)


def _negative(ratio: _Ratio) -> _Ratio:
    return -ratio[0], ratio[1]


def _magnitude(ratio: _Ratio) -> int:
    """e with |ratio| in (2^(e-1), 2^(e+1))."""
    return ratio[0].numerator.bit_length() - ratio[0].denominator.bit_length() + ratio[1]


def _scaled(ratio: _Ratio) -> Fraction:
    fraction, exponent = ratio
    return fraction * (1 << exponent) if exponent >= 0 else fraction / (1 << -exponent)


def _floor_float(fraction: Fraction, exponent: int) -> float:
    if fraction == 0:
        return 0.0
    size = _magnitude((fraction, exponent))
    if size < -_FLOAT_RANGE:
        return 0.0 if fraction > 0 else -math.ulp(0.0)
    if size > _FLOAT_RANGE:
        return math.nextafter(math.inf, 0.0) if fraction > 0 else -math.inf
    target = _scaled((fraction, exponent))
    try:
        nearest = float(target)
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if fraction > 0 else -math.inf
    return nearest if nearest <= target else math.nextafter(nearest, -math.inf)


def _decimal(ratio: _Ratio, digits: int, rounding: str) -> str:
    if digits < 1:
        raise InputError(f"{digits} digits cannot be printed")
    if ratio[0] and abs(_magnitude(ratio)) > _PRINT_RANGE:
        raise InputError(f"a number near 2^{_magnitude(ratio)} is not printed")
    target = _scaled(ratio)
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    return str(context.divide(Decimal(target.numerator), Decimal(target.denominator)))
