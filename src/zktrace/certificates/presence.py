"""Presence of a codeword: how many wrong bits a test may forgive (`prop:presence-honest`). All exact.

The false-accept probability is against an independent uniform codeword. It says nothing about a public mark
that somebody copied on purpose.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from zktrace.certificates.intervals import Number, exact, log2, probability, upper_float
from zktrace.errors import InputError, LimitExceeded
from zktrace.primitives.precision import precision

LONGEST = 4096  # bits; the search for a minimal length stops here


def false_accept(length: int, radius: int) -> Fraction:
    """P_FA(n, t) = 2^-n Σ_{j<=t} (n choose j), `eq:presence-band`."""
    _check(length, radius)
    return Fraction(_ball_size(length, radius), 1 << length)


def false_accept_log2(length: int, radius: int) -> float:
    """log2 P_FA(n, t), rounded up."""
    with precision():
        return min(0.0, upper_float(log2(false_accept(length, radius))))


def largest_radius(length: int, target: Number) -> int | None:
    """The largest t with P_FA(n, t) <= target; None if even t = 0 is above it."""
    limit = _target(target)
    _check(length, 0)
    allowed = math.floor(limit * (1 << length))  # vectors the Hamming ball may hold
    size, radius = 0, -1
    while radius < length and size + math.comb(length, radius + 1) <= allowed:
        radius += 1
        size += math.comb(length, radius)
    return None if radius < 0 else radius


def acceptance(length: int, radius: int, accuracy: Number) -> Fraction:
    """P_accept of `eq:presence-gap`: at most t wrong bits, each right independently with probability p."""
    _check(length, radius)
    right = probability(accuracy, "the accuracy")
    p, q, whole = right.numerator, right.denominator - right.numerator, right.denominator
    count, wrong = 0, 1
    for j in range(radius + 1):  # Horner: Σ (n choose j) q^j p^(t-j)
        count = count * p + math.comb(length, j) * wrong
        wrong *= q
    return Fraction(count * p ** (length - radius), whole**length)


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceDesign:
    """A test that meets both ends of `prop:presence-honest`."""

    length: int  # n
    radius: int  # t
    false_accept: Fraction
    acceptance: Fraction


def minimal_length(*, accuracy: Number, completeness: Number, target: Number) -> PresenceDesign:
    """The least n whose largest radius for `target` still accepts with probability `completeness`."""
    wanted = probability(completeness, "the completeness")
    for length in range(1, LONGEST + 1):
        radius = largest_radius(length, target)
        if radius is None:
            continue
        accepted = acceptance(length, radius, accuracy)
        if accepted >= wanted:
            return PresenceDesign(
                length=length,
                radius=radius,
                false_accept=false_accept(length, radius),
                acceptance=accepted,
            )
    raise LimitExceeded(f"no length up to {LONGEST} bits accepts with probability {completeness}")


def _ball_size(length: int, radius: int) -> int:
    return sum(math.comb(length, j) for j in range(radius + 1))


def _check(length: int, radius: int) -> None:
    if length < 1:
        raise InputError(f"a codeword of {length} bits")
    if not 0 <= radius <= length:
        raise InputError(f"a radius of {radius} bits in {length}")


def _target(target: Number) -> Fraction:
    limit = exact(target, "the target")
    if not 0 < limit <= 1:
        raise InputError(f"the target must lie in (0, 1], not {target}")
    return limit
