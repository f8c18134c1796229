"""Scores and thresholds of one look, made again from readout, biases and the accused's rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from zktrace.carriers.split import tail_level
from zktrace.certificates.adjudicate import TAILS, Rule, Tail
from zktrace.certificates.certificate import Certificate, certify, check, smallest_threshold
from zktrace.certificates.law import InnocentLaw
from zktrace.certificates.lengths import candidate_threshold
from zktrace.codes import Biases, Coefficients, sums
from zktrace.codes.checks import Floats
from zktrace.codes.readings import coefficients_of
from zktrace.errors import InvalidCertificate
from zktrace.primitives.gf2 import Bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageScore:
    """What one stage of one carrier scores with, by one score."""

    coefficients: Coefficients  # of the tail: a score counts if it is large

    def total(self, row: bytes) -> int:
        """L of a packed row."""
        packed = np.frombuffer(row, dtype=np.uint8)[None, :]
        return int(sums(packed, self.coefficients)[0])

    def score(self, row: bytes) -> Fraction:
        """S of a packed row, exactly."""
        return self.coefficients.score(self.total(row))


def look(values: Floats, biases: Biases, named: Bits, *, by: str, tail: Tail) -> StageScore:
    """The coefficients of a look by one score, given the rows already named."""
    with np.errstate(all="ignore"):  # a readout beyond floats ends as one that is not finite, and is refused
        found = coefficients_of(values, biases, by, named)
    return StageScore(coefficients=found if tail == "positive" else found.negated())


def own_certificate(
    seen: StageScore,
    *,
    recipients: int,
    level: Fraction,
    stage: int,
    carrier: str,
    carriers: Sequence[str],
    by: str,
    tail: Tail,
    rule: Rule,
) -> Certificate:
    """The certificate that the judge makes, whatever the evidence claims. `level` is the look's."""
    biases = seen.coefficients.biases
    own = tail_level(
        level,
        stage=stage,
        carrier=carrier,
        together=carriers,
        score=by,
        vary=biases.vary,
        tail=tail,
        rule=rule,
    )
    if rule == "certified":
        return smallest_threshold(seen.coefficients, recipients=recipients, level=own)
    z = candidate_threshold(
        length=biases.length,
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
