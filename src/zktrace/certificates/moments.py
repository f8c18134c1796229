"""Moment generating functions of the tracing code, averaged over its secret bias and enclosed.

In the arcsine angle, p = sin²θ, the bias density is constant, and the square roots become a tangent and a
cotangent, so the integrands are meromorphic. A mean is enclosed by one of two methods:

- `tight`: Arb's rigorous integration, within 1e-15 of the integral;
- `paper`: the first-order enclosure of the paper: 4096 panels in the angle, 30 decimal digits, the bias of a
  panel as one interval in (x - p)/√(p(1 - p)). It reproduces the printed table.

`bias_bits` makes the bound hold for the code as stored, whose biases are multiples of 2^-bias_bits, and
`scale_bits` for scores whose coefficients are rounded to multiples of 2^-scale_bits (`docs/bounds.md` has the
proofs); None means the continuous law and the exact score of the paper.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Generic, Literal, NamedTuple, TypeVar, get_args

from flint import arb

from zktrace.certificates.intervals import (
    Analytic,
    Number,
    ball,
    dyadic,
    exact,
    exponential,
    hull,
    integrate,
    quotient,
)
from zktrace.codes import cutoff
from zktrace.errors import InputError
from zktrace.primitives.precision import WORKING_BITS, precision

Method = Literal["tight", "paper"]

Ball = TypeVar("Ball", arb, Analytic)

PANELS = 4096
PANEL_BITS = 103  # 30 decimal digits
_FINEST_SCALE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingCode:
    """The code a guarantee is about (`def:overlay`), and how its biases and scores are stored."""

    design: int  # c, the coalition size the cutoff 1/(300c) is made for
    length: int  # n_t, positions
    bias_bits: int | None = 32  # biases are multiples of 2^-bias_bits; None: the continuous law
    scale_bits: int | None = None  # score coefficients are multiples of 2^-scale_bits; None: exact

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InputError(f"a code needs at least one position, not {self.length}")
        if self.bias_bits is not None and Fraction(1, 1 << max(self.bias_bits, 0)) * 2 > self.cutoff:
            raise InputError(
                f"biases of {self.bias_bits} bits are coarser than half the cutoff {self.cutoff}"
            )
        if self.scale_bits is not None and not 0 <= self.scale_bits <= _FINEST_SCALE:
            raise InputError(f"coefficients of {self.scale_bits} bits, 0..{_FINEST_SCALE} expected")

    @property
    def cutoff(self) -> Fraction:
        return cutoff(self.design)


class Bias(NamedTuple, Generic[Ball]):
    """A secret bias: p, 1 - p and √(p(1 - p)), as a panel's intervals or as functions of the angle."""

    p: Ball
    other: Ball
    sigma: Ball


class Column(NamedTuple):
    """What a coalition of `size` holds at one position, and the bit it means to output."""

    size: int
    ones: int
    output: int

    @property
    def zeros(self) -> int:
        return self.size - self.ones


def innocent_moment(a: arb, output: int, bias: Bias[Ball], grain: arb) -> Ball:
    """M(a; v, p) of `eq:mgf-chernoff`, one innocent increment, with a coefficient of ±(1/σ + grain)."""
    signed = a if output else -a
    zero = signed * (_over(-bias.p, bias.sigma) - grain * bias.p)
    one = signed * (_over(bias.other, bias.sigma) + grain * bias.other)
    return bias.other * _exp(zero) + bias.p * _exp(one)


def coalition_moment(t: arb, flip: arb, column: Column, bias: Bias[Ball], grain: arb) -> Ball:
    """The integrand of `eq:finite-coal-mgf` for one kind of column and output, coefficients within grain."""
    signed = t if column.output else -t
    exponent = signed * _over(column.ones - column.size * bias.p, bias.sigma)
    chance = bias.p**column.ones * bias.other**column.zeros
    moment = chance * ((1 - flip) * _exp(-exponent) + flip * _exp(exponent))
    if grain == 0:
        return moment
    return moment * _exp(t * grain * (column.ones * bias.other + column.zeros * bias.p))


def innocent_slope(a: arb, bias: Bias[Ball], grain: arb) -> Ball:
    """A bound on |d log / dp| of both terms of `innocent_moment`, for both outputs."""
    variance = bias.sigma * bias.sigma
    return 1 / variance + a / (2 * variance * bias.sigma) + a * grain


def coalition_slope(t: arb, column: Column, bias: Bias[Ball], grain: arb) -> Ball:
    """A bound on |d log / dp| of both terms of `coalition_moment`, for both outputs."""
    density = column.ones / bias.p + column.zeros / bias.other
    return density + t * density / (2 * bias.sigma) + t * grain * column.size


def _over(top: Ball, bottom: Ball) -> Ball:
    return quotient(top, bottom) if isinstance(top, arb) else top / bottom


def _exp(x: Ball) -> Ball:
    return exponential(x) if isinstance(x, arb) else x.exp()


def _angle_mean(
    f: Callable[[Bias[Analytic]], Analytic], code: TracingCode, *, upper_half: bool = True
) -> arb:
    """E f(p) over the arcsine law; without `upper_half`, over its half with p <= 1/2."""
    first = ball(code.cutoff).sqrt().asin()
    last = arb.pi() / 2 - first if upper_half else arb.pi() / 4

    def at(x: Analytic) -> Analytic:
        angle = first + (last - first) * x
        sin, cos = angle.sin(), angle.cos()
        return f(Bias(sin * sin, cos * cos, sin * cos))

    return integrate(at, 0, 1)


@lru_cache(maxsize=8)
def _panels(cut: Fraction) -> tuple[Bias[arb], ...]:
    """The bias on each panel of the angle. sin² increases on [0, π/2], so its hull is that of its ends."""
    first = ball(cut).sqrt().asin()
    step = (arb.pi() / 2 - 2 * first) / PANELS
    ends = [(first + step * i).sin() ** 2 for i in range(PANELS + 1)]
    return tuple(_panel(low, high) for low, high in pairwise(ends))


def _panel(low: arb, high: arb) -> Bias[arb]:
    """p over [low, high], and √(p(1 - p)) as interval arithmetic reads it: p and 1 - p apart."""
    sigma = hull((low * (1 - high)).sqrt(), (high * (1 - low)).sqrt())
    return Bias(hull(low, high), hull(1 - high, 1 - low), sigma)


def _panel_mean(f: Callable[[Bias[arb]], arb], code: TracingCode) -> arb:
    """E f(p) over the arcsine law: every panel has the same probability."""
    values = [f(bias) for bias in _panels(code.cutoff)]
    low, high = (sum(ends, arb(0)) for ends in ((v.lower() for v in values), (v.upper() for v in values)))
    return hull(low, high) / PANELS


def _reach(code: TracingCode) -> arb:
    """h (1 - h/δ)^-3 with h = 2^-bias_bits: how far a slope at p reaches (`docs/bounds.md`)."""
    if code.bias_bits is None:
        return arb(0)
    step = Fraction(1, 1 << code.bias_bits)
    return ball(step / (1 - step / code.cutoff) ** 3)


def _grain(code: TracingCode) -> arb:
    """How far a stored coefficient is from ±1/σ: half a step, a thousandth more for its float64 value."""
    if code.scale_bits is None:
        return arb(0)
    return ball(Fraction(1025, 1024 << (code.scale_bits + 1)))


def innocent_mean(a: float, *, code: TracingCode, method: Method = "tight") -> arb:
    """I(a) of `eq:finite-innoc-mgf`; with `bias_bits`, the upper end bounds the stored law.

    M(a; 1, p) >= M(a; 0, p) exactly when p <= 1/2, for with a coefficient c > 0 their difference has the sign
    of sinh(ac(1-p))/(1-p) - sinh(acp)/p, and sinh(u)/u increases in u > 0. By M(a; 1, p) = M(a; 0, 1-p) the
    mean of the larger one is the mean of M(a; 1, p) over the half p <= 1/2. The panels take the larger one.
    """
    _positive(a, "a")
    with precision(working_bits(method)):
        weight, reach, grain = dyadic(a), _reach(code), _grain(code)

        def stored(bias: Bias[Ball], moment: Ball) -> Ball:
            return moment if reach == 0 else moment * (reach * innocent_slope(weight, bias, grain)).exp()

        def dominant(bias: Bias[Analytic]) -> Analytic:
            return stored(bias, innocent_moment(weight, 1, bias, grain))

        def larger(bias: Bias[arb]) -> arb:
            zero, one = (innocent_moment(weight, v, bias, grain) for v in (0, 1))
            return stored(bias, zero.max(one))

        if method == "paper":
            return _panel_mean(larger, code)
        return _angle_mean(dominant, code, upper_half=False)


def coalition_mean(t: float, *, size: int, flip: Number, code: TracingCode, method: Method = "tight") -> arb:
    """J_s(t, q) of `eq:finite-coal-mgf`; with `bias_bits`, the upper end bounds the stored law.

    The law is symmetric in p and 1 - p: (k, v) and (s - k, 1 - v) have the same mean, and k <= s/2 suffices.
    """
    _positive(t, "t")
    rate = flip_rate(flip)
    if not 1 <= size <= code.design:
        raise InputError(f"a coalition of {size} is outside 1..{code.design}")
    with precision(working_bits(method)):
        total = arb(0)
        for ones in range(size // 2 + 1):
            worst = _column_mean(t, Column(size, ones, 0), rate, code, method)
            if 0 < ones < size - ones:
                worst = worst.max(_column_mean(t, Column(size, ones, 1), rate, code, method))
            total += math.comb(size, ones) * (1 if 2 * ones == size else 2) * worst
        return total


def _column_mean(t: float, column: Column, flip: Fraction, code: TracingCode, method: Method) -> arb:
    tilt, rate, reach, grain = dyadic(t), ball(flip), _reach(code), _grain(code)

    def moment(bias: Bias[Ball]) -> Ball:
        plain = coalition_moment(tilt, rate, column, bias, grain)
        return plain if reach == 0 else plain * (reach * coalition_slope(tilt, column, bias, grain)).exp()

    return _panel_mean(moment, code) if method == "paper" else _angle_mean(moment, code)


def working_bits(method: Method) -> int:
    """Of the arithmetic that a method is carried out in."""
    if method not in get_args(Method):
        raise InputError(f"method {method!r} is not one of {', '.join(get_args(Method))}")
    return PANEL_BITS if method == "paper" else WORKING_BITS


def _positive(value: float, name: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be positive and finite, not {value}")


def flip_rate(flip: Number) -> Fraction:
    """A rate at which decoded bits are wrong, exactly."""
    rate = exact(flip, "the flip rate")
    if not 0 <= rate <= Fraction(1, 2):
        raise InputError(f"the flip rate must lie in [0, 1/2], not {flip}")
    return rate
