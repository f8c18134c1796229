"""What a case report shows, as plain values. Scores that are here have been allowed to be shown."""

from dataclasses import dataclass
from fractions import Fraction

from zktrace.errors import InputError

VERDICTS = ("certified-attribute", "certified-tamper", "uncertified-lead", "no-certified-evidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class StationScore:
    """One station on one carrier."""

    station: str
    score: float  # in the unit of its carrier's section
    named: bool = False
    lead: bool = False
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierSection:
    """What one carrier says. Scores and thresholds share one unit, in which they are comparable."""

    carrier: str
    description: str  # profile, length, rule: a sentence
    unit: str  # for the axis, such as "score / certified threshold"
    scores: tuple[StationScore, ...]  # of those that may be shown, in the order of the roster
    threshold: float | None  # above it a score is certified; None: no certificate was found
    candidate: float | None = None  # above it a score is a lead
    opposite: float | None = None  # a negative number; below it a score is certified as a written opposite
    deviation: float | None = None  # of an innocent's score, which has mean 0; no row decides it
    readout: tuple[float, ...] = ()  # real-valued, one value a position
    readout_unit: str = "projection"
    readout_caption: str = ""  # what the values are and what a mark does to them
    others: int = 0  # stations that were scored and are not shown


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStation:
    """An accusation, and what is proved of the way it was made."""

    station: str
    stage_bound: Fraction  # that its stage names any innocent
    investigation_bound: Fraction  # that any stage of any look does
    evidence: str  # carriers, stage, score: a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """One certificate that was asked for."""

    carrier: str
    stage: int  # from 1
    tail: str
    method: str
    threshold: float
    bound: float  # on a false accusation of anybody; rounded up when shown
    allowed: Fraction  # the level it is made for
    passes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """A record of the registry that the case rests on."""

    record: str
    index: int
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryProof:
    """Where the case stands in the append-only log."""

    head: str
    positions: tuple[LogPosition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """The ledger of false-accusation probability after this case."""

    total: Fraction
    spent_before: Fraction
    spent_here: Fraction
    remaining: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """A command that repeats a part of the case, and what it shows."""

    purpose: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """Everything a case report shows, as plain values. Drawing it decides nothing."""

    title: str
    suspect: str  # file name
    digest: str
    verdict: str  # certified-attribute, certified-tamper, uncertified-lead, no-certified-evidence
    sentences: tuple[str, ...]  # the first says in plain words what was found
    carriers: tuple[CarrierSection, ...]
    may_be: tuple[str, ...] = ()  # what an absence of evidence can come from
    named: tuple[NamedStation, ...] = ()
    certificates: tuple[CertificateRow, ...] = ()
    registry: RegistryProof | None = None
    budget: BudgetState | None = None
    rechecks: tuple[Recheck, ...] = ()
    not_proved: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # release, times, versions
    note: str = ""  # such as: simulated data
    warning: str = ""  # to whoever holds the page, above everything else

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise InputError(f"unknown verdict {self.verdict!a}: one of {', '.join(VERDICTS)}")
