"""From scores to one of four verdicts, at a declared level (`cor:secret-row`, `prop:adjudicate`).

The level eps is divided over K carriers and two tails: eps/(2K) each in the paper, else by the shares that
each reading brings and by `carriers.split`. On the positive tail a score says that the readout carries the
row; on the negative tail, that somebody wrote its opposite.

    certified-attribute     a score above the threshold of a passing certificate, positive tail
    certified-tamper        the same on the negative tail, if no positive one is certified
    uncertified-lead        a score above the candidate threshold, without a certificate
    no-certified-evidence   nothing of the kind; it does not mean that no copy leaked

Rule `certified` (default) uses the least threshold the exact tail certifies, and names all who pass it: the
union over rows covers them. Rule `paper` uses the candidate threshold sqrt(2 n ln(2KN/eps)), asks Chernoff's
certificate whether a passing score may count, and names the largest alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers.split import SOFT, tail_share
from zktrace.certificates.certificate import Certificate, certify, smallest_threshold
from zktrace.certificates.intervals import Number
from zktrace.certificates.law import InnocentLaw
from zktrace.certificates.lengths import candidate_threshold
from zktrace.certificates.level import exact_level
from zktrace.codes import Coefficients
from zktrace.errors import InputError

Rule: TypeAlias = Literal["certified", "paper"]
Tail: TypeAlias = Literal["positive", "negative"]
TAILS: tuple[Tail, Tail] = ("positive", "negative")


class Verdict(StrEnum):
    """What an investigation may say."""

    ATTRIBUTE = "certified-attribute"
    TAMPER = "certified-tamper"
    LEAD = "uncertified-lead"
    NOTHING = "no-certified-evidence"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CarrierScores:
    """What one carrier says by one score: its coefficients, and L_i of all recipients in their order."""

    carrier: str
    coefficients: Coefficients
    sums: NDArray[np.int64]
    by: str = SOFT  # which score it is
    share: Fraction = Fraction(1)  # of the level, both tails together

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(f"{self.carrier}: a share of {self.share}")
        given = np.asarray(self.sums)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InputError(f"{self.carrier}: sums must be one row of integers")
        law = InnocentLaw(coefficients=self.coefficients)
        least, greatest = law.floor, law.floor + int(law.jumps.sum())
        if len(given) and not least <= int(given.min()) <= int(given.max()) <= greatest:
            raise InputError(f"{self.carrier}: a sum that no row can have")
        object.__setattr__(self, "sums", given.astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceedance:
    """A recipient beyond a threshold, on one tail of one carrier's score."""

    recipient: int
    carrier: str
    by: str  # the score
    tail: Tail
    score: Fraction  # of this tail: positive on both
    threshold: Fraction
    certificate: Certificate | None  # none for a lead

    @property
    def strength(self) -> float:
        """Score over threshold: how exceedances of different carriers compare."""
        return float(self.score / self.threshold) if self.threshold > 0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict, whom it names (strongest first), and every certificate that was asked for."""

    verdict: Verdict
    named: tuple[Exceedance, ...]  # certified, every one
    leads: tuple[Exceedance, ...]  # for an investigator's eyes; only if nobody is named
    rule: Rule
    recipients: int
    level: Fraction  # of both tails of all carriers together
    certificates: tuple[Certificate, ...]


def adjudicate(
    readings: Sequence[CarrierScores],
    *,
    level: Number,
    rule: Rule = "certified",
    tails: Sequence[Tail] = TAILS,
) -> Decision:
    """The verdict on one suspect. An empty roster has nobody to name: no-certified-evidence.

    A tail that is not among `tails` is not looked at; its part of the level is spent on nobody.
    """
    recipients = _roster(readings)
    eps = exact_level(level)
    if rule not in ("certified", "paper"):
        raise InputError(f"unknown rule {rule!r}: certified or paper")
    found: dict[Tail, list[Exceedance]] = {tail: [] for tail in TAILS}
    certificates = []
    carriers = len({reading.carrier for reading in readings})
    for reading in readings if recipients else ():
        for tail in tails:
            side = _side(reading, tail)
            own = eps * reading.share * tail_share(tail, rule)
            limits = _thresholds(side, recipients, eps, own=own, carriers=carriers, rule=rule)
            certificates.append(limits.certificate)
            found[tail] += _exceeding(side, tail, limits)
    verdict, chosen = _precedence(found)
    ordered = _ordered(chosen)
    named = ordered[:1] if rule == "paper" else ordered  # "with the largest positive score selected"
    return Decision(
        verdict=verdict,
        named=() if verdict == Verdict.LEAD else named,
        leads=ordered if verdict == Verdict.LEAD else (),
        rule=rule,
        recipients=recipients,
        level=eps,
        certificates=tuple(certificates),
    )


def joined(first: Decision, second: Decision) -> Decision:
    """Two decisions at one level about different scores as one; shares of both together must be at most 1."""
    order = list(Verdict)
    verdict = min(first.verdict, second.verdict, key=order.index)
    told = [each for each in (first, second) if each.verdict == verdict]
    return replace(
        first,
        verdict=verdict,
        named=_ordered(x for each in told for x in each.named),
        leads=_ordered(x for each in told for x in each.leads),
        certificates=(*first.certificates, *second.certificates),
    )


def _ordered(found: Iterable[Exceedance]) -> tuple[Exceedance, ...]:
    """The strongest first."""
    return tuple(sorted(found, key=lambda each: (-each.strength, each.recipient)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thresholds:
    certificate: Certificate
    candidate: Fraction


def _roster(readings: Sequence[CarrierScores]) -> int:
    if not readings:
        raise InputError("an investigation needs at least one carrier")
    if len({(reading.carrier, reading.by) for reading in readings}) != len(readings):
        raise InputError("two readings of one carrier by one score")
    if sum(reading.share for reading in readings) > 1:
        raise InputError("the readings' shares are more than the whole level")
    sizes = {reading.sums.shape for reading in readings}
    if len(sizes) != 1 or len(sizes.copy().pop()) != 1:
        raise InputError("the carriers disagree on the number of recipients")
    return len(readings[0].sums)


def _side(reading: CarrierScores, tail: Tail) -> CarrierScores:
    if tail == "positive":
        return reading
    return replace(reading, coefficients=reading.coefficients.negated(), sums=-reading.sums)


def _thresholds(
    side: CarrierScores, recipients: int, level: Fraction, *, own: Fraction, carriers: int, rule: Rule
) -> _Thresholds:
    length = side.coefficients.biases.length
    z = candidate_threshold(
        length=length, recipients=recipients, level=level, tails=len(TAILS), carriers=carriers
    )
    candidate = Fraction(z)
    if rule == "paper":
        certificate = certify(
            side.coefficients, candidate, recipients=recipients, level=own, method="chernoff"
        )
    else:
        certificate = smallest_threshold(side.coefficients, recipients=recipients, level=own)
    return _Thresholds(certificate=certificate, candidate=candidate)


def _exceeding(side: CarrierScores, tail: Tail, limits: _Thresholds) -> list[Exceedance]:
    """Everybody beyond the certified threshold; as leads, those beyond the candidate who are not."""
    law = InnocentLaw(coefficients=side.coefficients)
    sure = limits.certificate.threshold
    certified = (
        side.sums > law.greatest_sum(sure) if limits.certificate.passes else np.zeros(len(side.sums), bool)
    )
    leads = (side.sums > law.greatest_sum(limits.candidate)) & ~certified
    return [
        Exceedance(
            recipient=int(i),
            carrier=side.carrier,
            by=side.by,
            tail=tail,
            score=side.coefficients.score(int(side.sums[i])),
            threshold=sure if certified[i] else limits.candidate,
            certificate=limits.certificate if certified[i] else None,
        )
        for i in np.flatnonzero(certified | leads)
    ]


def _precedence(found: dict[Tail, list[Exceedance]]) -> tuple[Verdict, list[Exceedance]]:
    for tail, verdict in zip(TAILS, (Verdict.ATTRIBUTE, Verdict.TAMPER), strict=True):
        certified = [each for each in found[tail] if each.certificate is not None]
        if certified:
            return verdict, certified
    leads = found["positive"] or found["negative"]
    return (Verdict.LEAD, leads) if leads else (Verdict.NOTHING, [])
