"""A certificate: a threshold, and an evaluated inequality that bounds naming an innocent beyond it.

It claims, under A5(a): the probability that any of N innocent rows has S > threshold is at most `level`.
It holds the few numbers from which `check` evaluates the inequality again on the arrays themselves.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from flint import arb

from zktrace.certificates.intervals import Number, ball, lower_decimal, upper_decimal, upper_dyadic
from zktrace.certificates.law import InnocentLaw
from zktrace.certificates.level import exact_level
from zktrace.certificates.tail import chernoff, chernoff_threshold, convolved
from zktrace.codes import Coefficients
from zktrace.codes.checks import whole
from zktrace.errors import InputError, InvalidCertificate
from zktrace.primitives.precision import precision

Method: TypeAlias = Literal["chernoff", "exact"]

_DIGITS = 25
_THRESHOLD_BITS = 20  # Chernoff thresholds are multiples of 2^-20
_NO_TAIL = "Infinity"  # the exponent of an event that cannot happen
_BEYOND = 1 << 40  # no finite exponent comes near
_LARGEST_BITS = 4096  # of a number in a record
_TILTS = (1e-10, 1e4)  # of a record, times the largest jump


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """P[some innocent of N has S > threshold] <= level, if `passes`."""

    method: Method
    law: str  # digest of coefficients and biases
    recipients: int  # N
    level: Fraction  # of this tail
    threshold: Fraction
    tilt: str  # in units of L, a float in hexadecimal
    exponent: tuple[str, str]  # ends of E in P[S > threshold] <= e^-E, decimals rounded outwards
    required: str  # ln(N/level), rounded up
    passes: bool


def smallest_threshold(
    coefficients: Coefficients, *, recipients: int, level: Number, method: Method = "exact"
) -> Certificate:
    """The certificate with the least threshold, not below 0, that passes.

    For `exact` that is the least on the lattice of the scores; for `chernoff` the least multiple of 2^-20 at
    or above what the numerically best tilt gives.
    """
    law, eps = _inputs(coefficients, recipients, level, method)
    with precision():
        return _smallest(law, recipients, eps, method)


def _smallest(law: InnocentLaw, recipients: int, level: Fraction, method: Method) -> Certificate:
    required = _required(recipients, level)
    threshold, tilt, exponent = Fraction(0), 0.0, arb("inf")  # without jumps S is 0
    if len(law.jumps):
        tilt = law.tilt_for(float(required.mid()))
        if method == "chernoff":
            threshold = _grid_above(chernoff_threshold(law, tilt, required))
            exponent = chernoff(law, threshold, tilt)
        else:
            tail = convolved(law, tilt)
            step = tail.least_step(-required)
            threshold = law.coefficients.score(law.floor + tail.step * (step - 1))
            exponent = -tail.log_bound(step)
    if threshold < 0:  # a level so large that less than the mean would do
        threshold = Fraction(0)
        exponent = _exponent(law, threshold, tilt, method)
    return _record(law, threshold, tilt, exponent, recipients=recipients, level=level, method=method)


def _grid_above(value: arb) -> Fraction:
    """A multiple of 2^-20 above the ball, by one or two steps."""
    mantissa, exponent = upper_dyadic(value)
    scaled = Fraction(mantissa) * Fraction(2) ** (exponent + _THRESHOLD_BITS)
    return Fraction(math.ceil(scaled) + 1, 1 << _THRESHOLD_BITS)


def certify(
    coefficients: Coefficients,
    threshold: Fraction,
    *,
    recipients: int,
    level: Number,
    method: Method = "exact",
) -> Certificate:
    """The certificate for a given threshold, which may or may not pass.

    The exact tail passes exactly at and above its smallest threshold.
    """
    law, eps = _inputs(coefficients, recipients, level, method)
    wanted = _exactly(threshold)
    tilt = 0.0
    with precision():
        if len(law.jumps):
            best = float(_required(recipients, eps).mid())
            tilt = law.tilt_for(best) if method == "exact" else law.tilt_at(wanted)
        exponent = _exponent(law, wanted, tilt, method)
        return _record(law, wanted, tilt, exponent, recipients=recipients, level=eps, method=method)


def tail_bound(coefficients: Coefficients, threshold: Fraction, *, method: Method = "exact") -> arb:
    """ln of an upper bound on P[S > threshold] for one innocent row."""
    law, wanted = InnocentLaw(coefficients=coefficients), _exactly(threshold)
    tilt = law.tilt_at(wanted) if len(law.jumps) else 0.0
    with precision():
        return -_exponent(law, wanted, tilt, method)


def check(certificate: Certificate, coefficients: Coefficients) -> None:
    """Evaluate the inequality again from the arrays, or InvalidCertificate. The record may be hostile.

    (1) the record is well formed, says that it passes, and is about these arrays; (2) its exponent is that of
    the inequality it names; (3) the inequality holds.
    """
    tilt, claimed = _well_formed(certificate)
    law, level = _inputs(coefficients, certificate.recipients, certificate.level, certificate.method)
    if law.digest != certificate.law:
        raise InvalidCertificate("the certificate is about other coefficients or biases")
    scaled = tilt * float(law.jumps.max()) if len(law.jumps) else 0.0
    if (len(law.jumps) > 0) != (tilt > 0.0) or (tilt > 0.0 and not _TILTS[0] <= scaled <= _TILTS[1]):
        raise InvalidCertificate(f"a tilt of {tilt}")
    with precision():
        again = _record(
            law,
            certificate.threshold,
            tilt,
            _exponent(law, certificate.threshold, tilt, certificate.method),
            recipients=certificate.recipients,
            level=level,
            method=certificate.method,
        )
    low, high = (Decimal(end) for end in again.exponent)
    if claimed[0] > high or claimed[1] < low or certificate.required != again.required:
        raise InvalidCertificate(
            f"the certificate claims an exponent of {claimed[0]} where {certificate.required} is required, "
            f"the inequality gives {again.exponent[0]} and {again.required}"
        )
    if not again.passes:
        raise InvalidCertificate(
            f"the exponent {again.exponent[0]} does not reach the required {again.required}"
        )


def _well_formed(certificate: Certificate) -> tuple[float, tuple[Decimal, Decimal]]:
    """The tilt and the ends of the exponent, if every field is of its kind and of a sane size."""
    numbers = (certificate.level, certificate.threshold)
    if type(certificate.recipients) is not int or not all(type(number) is Fraction for number in numbers):
        raise InvalidCertificate("the certificate has a number of another kind")
    parts = [part for number in numbers for part in (number.numerator, number.denominator)]
    if any(part.bit_length() > _LARGEST_BITS for part in (certificate.recipients, *parts)):
        raise InvalidCertificate("the certificate has a number of absurd size")
    if certificate.method not in get_args(Method) or certificate.passes is not True:
        raise InvalidCertificate("the certificate names no known method, or does not claim to pass")
    texts = (certificate.tilt, *certificate.exponent, certificate.required, certificate.law)
    if len(texts) != 5 or not all(isinstance(text, str) and len(text) <= 80 for text in texts):
        raise InvalidCertificate("the certificate has a text of another kind")
    try:
        tilt, low, high = float.fromhex(certificate.tilt), *map(Decimal, certificate.exponent)
    except (ValueError, OverflowError, ArithmeticError):
        raise InvalidCertificate("the certificate has a number that is none") from None
    if not 0.0 <= tilt < math.inf or low.is_nan() or high.is_nan() or low > high:
        raise InvalidCertificate("the certificate has a number out of its range")
    return tilt, (low, high)


def _exactly(threshold: Fraction | float) -> Fraction:
    """The very number that was given: a threshold is compared, not read by a person."""
    if isinstance(threshold, float) and not math.isfinite(threshold):
        raise InputError(f"a threshold must be finite, not {threshold}")
    return Fraction(threshold)


def _inputs(
    coefficients: Coefficients, recipients: int, level: Number, method: Method
) -> tuple[InnocentLaw, Fraction]:
    whole(recipients, "the number of recipients", 1, 1 << 62)
    if method not in get_args(Method):
        raise InputError(f"unknown method {method!r}: exact or chernoff")
    return InnocentLaw(coefficients=coefficients), exact_level(level)


def _required(recipients: int, level: Fraction) -> arb:
    with precision():
        return (ball(Fraction(int(recipients))) / ball(level)).log()


def _exponent(law: InnocentLaw, threshold: Fraction, tilt: float, method: Method) -> arb:
    """A ball whose lower end E gives P[S > threshold] <= e^-E."""
    if not len(law.jumps):  # S is 0
        return arb("inf") if threshold >= 0 else arb(0)
    if method == "chernoff":
        return chernoff(law, threshold, tilt)
    tail = convolved(law, tilt)
    return -tail.log_bound(tail.first_step(law.greatest_sum(threshold)))


def _record(
    law: InnocentLaw,
    threshold: Fraction,
    tilt: float,
    exponent: arb,
    *,
    recipients: int,
    level: Fraction,
    method: Method,
) -> Certificate:
    required = _required(recipients, level)
    certain = bool(exponent > _BEYOND)
    ends = (_NO_TAIL, _NO_TAIL)
    if not certain:
        ends = (lower_decimal(exponent, _DIGITS), upper_decimal(exponent, _DIGITS))
    return Certificate(
        method=method,
        law=law.digest,
        recipients=recipients,
        level=level,
        threshold=threshold,
        tilt=tilt.hex(),
        exponent=ends,
        required=upper_decimal(required, _DIGITS),
        passes=certain or bool(exponent.lower() >= required.upper()),
    )
