"""A case: all that an investigation found, for printing, for a report, and for a judge."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import Look
from zktrace.certificates.adjudicate import Tail, Verdict
from zktrace.certificates.certificate import Certificate
from zktrace.evidence import Evidence
from zktrace.registry.records import InvestigationRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A station beyond a certified threshold."""

    station: str
    carrier: str
    by: str  # which score named
    tail: Tail
    alignment: str  # how the suspect was read; identity: as it is
    stage: int  # of the look, counted from 1
    score: Fraction
    certificate: Certificate

    @property
    def bound(self) -> Fraction:
        """At most this is the probability that any innocent is beyond the threshold of this stage."""
        return self.certificate.level


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A station beyond a threshold that carries no guarantee. For the operator's eyes."""

    station: str
    carrier: str
    tail: Tail
    score: Fraction
    threshold: Fraction


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CarrierTable:
    """The first stage of one carrier: everybody's score, in the order of the rows."""

    carrier: str
    by: str  # which score
    values: NDArray[np.float64]  # the readout
    scores: NDArray[np.float64]
    positive: Certificate
    negative: Certificate
    candidate: float  # beyond it a score is at least a lead


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """An investigation that has ended."""

    verdict: Verdict
    named: tuple[Named, ...]
    leads: tuple[Lead, ...]
    tables: tuple[CarrierTable, ...]  # of the look that decided
    look: Look  # the one that named somebody; if none did, the first that gave leads, or the first
    failed: tuple[tuple[str, str], ...]  # alignments that could not be found, and why
    stations: tuple[str, ...]  # by row
    investigation: InvestigationRecord
    level: Fraction  # eps of the whole investigation that the thresholds were made for
    place: int  # of the investigation in the log
    verdict_place: int
    evidence: Evidence

    def __repr__(self) -> str:  # scores of those who are not named are secrets
        return f"<Case {self.verdict}: {', '.join(self.names) or 'nobody'}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Whoever is named, each once, in order."""
        return tuple(dict.fromkeys(each.station for each in self.named))
