"""Finite guarantees of the tracing code: a threshold no innocent passes and a coalition that does not escape.

`thm:finite-completeness`, `eq:finite-innoc-mgf`, `tab:finite-guarantees`. Both bounds average a moment
generating function over the secret bias. In the arcsine angle, p = sin²θ, the bias density is constant, and
the square roots become a tangent and a cotangent, so the integrands are meromorphic.

The parameters a and t are searched in float64 by quadrature; any positive values give a valid bound. What is
claimed is then enclosed, by one of two methods:

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
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt
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
    upper_float,
)
from zktrace.codes import cutoff
from zktrace.errors import InputError
from zktrace.primitives.precision import WORKING_BITS, precision

Method = Literal["tight", "paper"]
Floats: TypeAlias = npt.NDArray[np.float64]
Ball = TypeVar("Ball", arb, Analytic)

PANELS = 4096
PANEL_BITS = 103  # 30 decimal digits
_NODES = 256
_FINEST_SCALE = 24
_LARGEST_EXPONENT = 600.0  # of an exponential in the float64 search


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """N e^(-a z) I(a)^n <= eps1 holds at z = `value`."""

    value: float  # rounded up
    a: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedCoalition:
    """Probability that no member of a coalition of `size` exceeds the threshold."""

    size: int
    bound: float  # min(1, e^(t s z) J_s(t, q)^n), rounded up
    log_bound: float  # t s z + n ln J_s(t, q), rounded up; does not underflow
    t: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteGuarantee:
    """One row of `tab:finite-guarantees`, with what is needed to check it."""

    code: TracingCode
    recipients: int  # N
    false_accusation: Fraction  # eps1
    flip: Fraction  # q
    method: Method
    threshold: float  # z: P[some innocent exceeds z] <= eps1
    a: float
    missed_bound: float  # eps2: P[no colluder exceeds z] <= eps2, every size 1..c
    per_size: tuple[MissedCoalition, ...]


# ── the integrands, once for every arithmetic ──────────────────────────────────────────────────────────────


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


# ── two ways to enclose a mean over the bias ───────────────────────────────────────────────────────────────


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
    with precision(_bits(method)):
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
    rate = _rate(flip)
    if not 1 <= size <= code.design:
        raise InputError(f"a coalition of {size} is outside 1..{code.design}")
    with precision(_bits(method)):
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


# ── the search, in float64 ─────────────────────────────────────────────────────────────────────────────────


def search_threshold(
    *, code: TracingCode, recipients: int, false_accusation: Fraction
) -> tuple[float, float]:
    """(a, z): the least quadrature value z of (ln(N/eps1) + n ln I(a))/a, which is quasi-convex in a."""
    tangent, weight = _nodes(code.cutoff, upper_half=False)
    budget = math.log(recipients / false_accusation)

    def threshold(a: float) -> float:
        sin2 = tangent**2 / (1 + tangent**2)
        moment = (1 - sin2) * np.exp(-a * tangent) + sin2 * np.exp(a / tangent)
        return (budget + code.length * math.log(weight @ moment)) / a

    a = _least(threshold, _LARGEST_EXPONENT * _smallest_tangent(code.cutoff))
    return a, threshold(a)


def search_tilt(*, size: int, threshold: float, flip: Fraction, code: TracingCode) -> float:
    """The t with the least quadrature value of t s z + n ln J_s(t, q), which is convex in t."""
    tangent, weight = _nodes(code.cutoff, upper_half=True)
    q = float(flip)
    columns = [_column(tangent, size, ones) for ones in range(size + 1)]

    def log_bound(t: float) -> float:
        total = 0.0
        for ones, (chance, score) in enumerate(columns):
            up, down = np.exp(t * score), np.exp(-t * score)
            said_one = float(weight @ (chance * ((1 - q) * down + q * up)))
            said_zero = float(weight @ (chance * ((1 - q) * up + q * down)))
            worst = said_one if ones == size else said_zero if ones == 0 else max(said_one, said_zero)
            total += math.comb(size, ones) * worst
        return t * size * threshold + code.length * math.log(total)

    return _least(log_bound, _LARGEST_EXPONENT * _smallest_tangent(code.cutoff) / size)


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    return x, weight


def _nodes(cut: Fraction, *, upper_half: bool) -> tuple[Floats, Floats]:
    """Gauss-Legendre tangents of the angle and weights that sum to one."""
    x, weight = _legendre()
    first = math.asin(math.sqrt(cut))
    last = math.pi / 2 - first if upper_half else math.pi / 4
    return np.tan(first + (last - first) * (x + 1) / 2), weight / 2


def _column(tangent: Floats, size: int, ones: int) -> tuple[Floats, Floats]:
    """The probability of one column with `ones` ones, and its score a_k(p)."""
    p = tangent**2 / (1 + tangent**2)
    return p**ones * (1 - p) ** (size - ones), ones / tangent - (size - ones) * tangent


def _smallest_tangent(cut: Fraction) -> float:
    return math.sqrt(cut / (1 - cut))


def _least(f: Callable[[float], float], high: float) -> float:
    """Golden-section search for the least f on (0, high], in the logarithm."""
    golden = (math.sqrt(5) - 1) / 2
    low, top = math.log(high) - 40.0, math.log(high)
    left, right = top - golden * (top - low), low + golden * (top - low)
    at_left, at_right = f(math.exp(left)), f(math.exp(right))
    for _ in range(70):
        if at_left <= at_right:
            top, right, at_right = right, left, at_left
            left = top - golden * (top - low)
            at_left = f(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (top - low)
            at_right = f(math.exp(right))
    return math.exp((low + top) / 2)


# ── what is claimed ────────────────────────────────────────────────────────────────────────────────────────


def soundness_threshold(
    *, code: TracingCode, recipients: int, false_accusation: Number, method: Method = "tight"
) -> Threshold:
    """The least z found with N e^(-a z) I(a)^n <= eps1, rounded up (`eq:finite-innoc-mgf`)."""
    budget = _budget(recipients, false_accusation)
    a, _ = search_threshold(code=code, recipients=recipients, false_accusation=budget)
    return threshold_at(a, code=code, recipients=recipients, false_accusation=budget, method=method)


def threshold_at(
    a: float, *, code: TracingCode, recipients: int, false_accusation: Number, method: Method = "tight"
) -> Threshold:
    """The threshold of one given a: (ln(N/eps1) + n ln I(a))/a, rounded up."""
    budget = _budget(recipients, false_accusation)
    with precision(_bits(method)):
        exponent = (
            ball(recipients / budget).log()
            + code.length * innocent_mean(a, code=code, method=method).upper().log()
        )
        return Threshold(value=upper_float(exponent / dyadic(a)), a=a)


def missed_coalition(
    t: float, *, size: int, threshold: float, flip: Number, code: TracingCode, method: Method = "tight"
) -> MissedCoalition:
    """The bound of `eq:finite-completeness` at one given t, rounded up."""
    with precision(_bits(method)):
        mean = coalition_mean(t, size=size, flip=flip, code=code, method=method)
        log_bound = dyadic(t) * size * dyadic(threshold) + code.length * mean.upper().log()
        return MissedCoalition(
            size=size,
            bound=min(1.0, upper_float(log_bound.exp())),
            log_bound=upper_float(log_bound),
            t=t,
        )


def finite_guarantee(
    *, code: TracingCode, recipients: int, false_accusation: Number, flip: Number, method: Method = "tight"
) -> FiniteGuarantee:
    """Threshold and missed-coalition bound for every coalition of 1..c (`tab:finite-guarantees`)."""
    budget, rate = _budget(recipients, false_accusation), _rate(flip)
    a, searched = search_threshold(code=code, recipients=recipients, false_accusation=budget)
    found = threshold_at(a, code=code, recipients=recipients, false_accusation=budget, method=method)
    per_size = []
    for size in range(1, code.design + 1):
        t = search_tilt(size=size, threshold=searched, flip=rate, code=code)
        per_size.append(
            missed_coalition(t, size=size, threshold=found.value, flip=rate, code=code, method=method)
        )
    return FiniteGuarantee(
        code=code,
        recipients=recipients,
        false_accusation=budget,
        flip=rate,
        method=method,
        threshold=found.value,
        a=a,
        missed_bound=max(size.bound for size in per_size),
        per_size=tuple(per_size),
    )


def _bits(method: Method) -> int:
    if method not in get_args(Method):
        raise InputError(f"method {method!r} is not one of {', '.join(get_args(Method))}")
    return PANEL_BITS if method == "paper" else WORKING_BITS


def _positive(value: float, name: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be positive and finite, not {value}")


def _budget(recipients: int, false_accusation: Number) -> Fraction:
    budget = exact(false_accusation, "the false-accusation budget")
    if recipients < 1:
        raise InputError(f"{recipients} recipients")
    if not 0 < budget < 1:
        raise InputError(f"the false-accusation budget must lie in (0, 1), not {false_accusation}")
    return budget


def _rate(flip: Number) -> Fraction:
    rate = exact(flip, "the flip rate")
    if not 0 <= rate <= Fraction(1, 2):
        raise InputError(f"the flip rate must lie in [0, 1/2], not {flip}")
    return rate
