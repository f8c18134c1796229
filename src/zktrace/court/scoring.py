"""Scores and thresholds of one look, made again from readout, biases and the accused's rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from zktrace.carriers import parts
from zktrace.certificates.adjudicate import TAILS, Rule, Tail, carrier_share
from zktrace.certificates.certificate import Certificate, certify, check, smallest_threshold
from zktrace.certificates.law import InnocentLaw
from zktrace.certificates.lengths import candidate_threshold
from zktrace.certificates.stages import stage_level
from zktrace.codes import Biases, Coefficients, soft, sums, symmetric, without
from zktrace.codes.checks import Floats
from zktrace.errors import InvalidCertificate
from zktrace.primitives.gf2 import Bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageScore:
    """What one stage of one carrier scores with."""

    coefficients: Coefficients  # of the tail: a score counts if it is large

    def total(self, row: bytes) -> int:
        """L of a packed row."""
        packed = np.frombuffer(row, dtype=np.uint8)[None, :]
        return int(sums(packed, self.coefficients)[0])

    def score(self, row: bytes) -> Fraction:
        """S of a packed row, exactly."""
        return self.coefficients.score(self.total(row))


def look(values: Floats, biases: Biases, named: Bits, *, rule: Rule, tail: Tail) -> StageScore:
    """The coefficients of a look after the rows `named` were taken out of the readout."""
    with np.errstate(all="ignore"):  # a readout beyond floats ends as one that is not finite, and is refused
        if rule == "paper":
            found = symmetric((values > 0).astype(np.uint8), biases)
        else:
            found = soft(without(values, biases, named) if len(named) else values, biases)
    return StageScore(coefficients=found if tail == "positive" else found.negated())


def tail_level(level: Fraction, *, stage: int, carrier: str, carriers: Sequence[str], rule: Rule) -> Fraction:
    """The level of one tail of a carrier, one of those of a look, at one stage (counted from 1)."""
    both = stage_level(level, stage, rule)
    return both * carrier_share(parts(carrier), [parts(each) for each in carriers], rule) / len(TAILS)


def own_certificate(
    seen: StageScore,
    *,
    recipients: int,
    level: Fraction,
    stage: int,
    carrier: str,
    carriers: Sequence[str],
    rule: Rule,
) -> Certificate:
    """The certificate that the judge makes, whatever the evidence claims."""
    own = tail_level(level, stage=stage, carrier=carrier, carriers=carriers, rule=rule)
    if rule == "certified":
        return smallest_threshold(seen.coefficients, recipients=recipients, level=own)
    z = candidate_threshold(
        length=seen.coefficients.biases.length,
        recipients=recipients,
        level=level,
        tails=len(TAILS),
        carriers=len(carriers),
    )
    return certify(seen.coefficients, Fraction(z), recipients=recipients, level=own, method="chernoff")


def compare(claimed: Certificate, own: Certificate, seen: StageScore) -> None:
    """InvalidCertificate unless the claim is the judge's own certificate, or holds beside it.

    Another machine may have chosen another tilt: then the claim's inequality is evaluated by itself.
    """
    if claimed == own:
        return
    for name in ("method", "law", "recipients", "level", "required", "passes"):
        theirs, ours = getattr(claimed, name), getattr(own, name)
        if theirs != ours:
            raise InvalidCertificate(f"the certificate claims {name} {theirs}, recomputed it is {ours}")
    if own.method == "chernoff" and claimed.threshold != own.threshold:
        raise InvalidCertificate(f"the threshold {claimed.threshold} is not the candidate {own.threshold}")
    check(claimed, seen.coefficients)


def beyond(seen: StageScore, row: bytes, threshold: Fraction) -> bool:
    """Whether a row's score is above a threshold, decided by whole numbers."""
    return seen.total(row) > InnocentLaw(coefficients=seen.coefficients).greatest_sum(threshold)
