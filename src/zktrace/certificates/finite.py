"""Finite guarantees of the tracing code: a threshold no innocent passes and a coalition that does not escape.

`thm:finite-completeness`, `eq:finite-innoc-mgf`, `tab:finite-guarantees`. Both bounds average a moment
generating function over the secret bias (`zktrace.certificates.moments`). The parameters a and t are searched
in float64 (`zktrace.certificates.search`); what is claimed with them is then enclosed.
"""

from dataclasses import dataclass
from fractions import Fraction

from zktrace.certificates.intervals import Number, ball, dyadic, upper_float
from zktrace.certificates.level import exact_level
from zktrace.certificates.moments import (
    Method,
    TracingCode,
    coalition_mean,
    flip_rate,
    innocent_mean,
    working_bits,
)
from zktrace.certificates.search import search_threshold, search_tilt
from zktrace.errors import InputError
from zktrace.primitives.precision import precision

__all__ = [
    "FiniteGuarantee",
    "MissedCoalition",
    "Threshold",
    "TracingCode",
    "finite_guarantee",
    "missed_coalition",
    "soundness_threshold",
    "threshold_at",
]


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
    level: Fraction  # eps1
    flip: Fraction  # q
    method: Method
    threshold: float  # z: P[some innocent exceeds z] <= eps1
    a: float
    missed_bound: float  # eps2: P[no colluder exceeds z] <= eps2, every size 1..c
    per_size: tuple[MissedCoalition, ...]


def soundness_threshold(
    *, code: TracingCode, recipients: int, level: Number, method: Method = "tight"
) -> Threshold:
    """The least z found with N e^(-a z) I(a)^n <= eps1, rounded up (`eq:finite-innoc-mgf`)."""
    eps1 = _checked(recipients, level)
    a, _ = search_threshold(code=code, recipients=recipients, level=eps1)
    return threshold_at(a, code=code, recipients=recipients, level=eps1, method=method)


def threshold_at(
    a: float, *, code: TracingCode, recipients: int, level: Number, method: Method = "tight"
) -> Threshold:
    """The threshold of one given a: (ln(N/eps1) + n ln I(a))/a, rounded up."""
    eps1 = _checked(recipients, level)
    with precision(working_bits(method)):
        exponent = (
            ball(recipients / eps1).log()
            + code.length * innocent_mean(a, code=code, method=method).upper().log()
        )
        return Threshold(value=upper_float(exponent / dyadic(a)), a=a)


def missed_coalition(
    t: float, *, size: int, threshold: float, flip: Number, code: TracingCode, method: Method = "tight"
) -> MissedCoalition:
    """The bound of `eq:finite-completeness` at one given t, rounded up."""
    with precision(working_bits(method)):
        mean = coalition_mean(t, size=size, flip=flip, code=code, method=method)
        log_bound = dyadic(t) * size * dyadic(threshold) + code.length * mean.upper().log()
        return MissedCoalition(
            size=size,
            bound=min(1.0, upper_float(log_bound.exp())),
            log_bound=upper_float(log_bound),
            t=t,
        )


def finite_guarantee(
    *, code: TracingCode, recipients: int, level: Number, flip: Number, method: Method = "tight"
) -> FiniteGuarantee:
    """Threshold and missed-coalition bound for every coalition of 1..c (`tab:finite-guarantees`)."""
    eps1, rate = _checked(recipients, level), flip_rate(flip)
    a, searched = search_threshold(code=code, recipients=recipients, level=eps1)
    found = threshold_at(a, code=code, recipients=recipients, level=eps1, method=method)
    per_size = []
    for size in range(1, code.design + 1):
        t = search_tilt(size=size, threshold=searched, flip=rate, code=code)
        per_size.append(
            missed_coalition(t, size=size, threshold=found.value, flip=rate, code=code, method=method)
        )
    return FiniteGuarantee(
        code=code,
        recipients=recipients,
        level=eps1,
        flip=rate,
        method=method,
        threshold=found.value,
        a=a,
        missed_bound=max(size.bound for size in per_size),
        per_size=tuple(per_size),
    )


def _checked(recipients: int, level: Number) -> Fraction:
    if recipients < 1:
        raise InputError(f"{recipients} recipients")
    return exact_level(level)
