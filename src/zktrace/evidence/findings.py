"""Findings: what an investigation claims. Their digest is in the log; every claim can be recomputed.

    verdict   one of the four
    level     eps, the probability that the thresholds were made for
    looks     those that were taken, in the order of the plan on record: each carrier with the digest of its
              readout, none where an alignment could not be found
    stages    who was named at each stage of the last look, on which carrier and tail, by which score, with
              what value and certificate

Leads are not findings: nobody is accused by them, so neither the log nor a judge is told their names.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Final

from zktrace.carriers import MOST
from zktrace.carriers.split import SCORES
from zktrace.certificates.adjudicate import TAILS, Tail, Verdict
from zktrace.certificates.certificate import Certificate
from zktrace.certificates.stages import MAX_STAGES
from zktrace.errors import MalformedFile
from zktrace.evidence.certificates import CERTIFICATE
from zktrace.primitives.canonical import to_json
from zktrace.primitives.encoding import field
from zktrace.primitives.fields import (
    Declared,
    Form,
    choice,
    distinct,
    fraction,
    listed,
    made_as,
    nested,
)
from zktrace.registry.forms import Digest, Name
from zktrace.registry.records import LOOKS_LIMIT, CarrierName

ACCUSED_LIMIT: Final = 256  # stations that one verdict may name
WORK_LIMIT: Final = 1 << 18  # positions to certify over all stages and scores: a judge's minute
_SHORTEST: Final = 1 << 10  # what a shorter code counts as
_ROWS: Final = 128  # taken out of a readout, they take no longer than its certificate
CERTIFIED: Final = (Verdict.ATTRIBUTE, Verdict.TAMPER)
_DOMAIN: Final = b"zkt-findings-v1"
ScoreName = Annotated[str, choice(SCORES)]


def judges_work(stages: Iterable[tuple[Sequence[int], int]]) -> int:
    """What judging stages takes: of each the lengths of the codes that name, and how many it names.

    The positions of each stage, once a score, and more where many rows are taken out before.
    """
    found = rows = 0
    for lengths, named in stages:
        found += sum(max(each, _SHORTEST) for each in lengths) * (_ROWS + rows) // _ROWS
        rows += named
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming(Declared):
    """A station beyond a certified threshold."""

    what: ClassVar = "a naming"
    station: Name
    carrier: CarrierName
    by: ScoreName
    score: Annotated[Fraction, fraction()]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedScore(Declared):
    """A score that named somebody, and its certificate."""

    what: ClassVar = "a certified score"
    carrier: CarrierName
    by: ScoreName
    certificate: Annotated[Certificate, CERTIFICATE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Declared):
    """One stage: who was named that had not been before, and the certificate of each score that named."""

    what: ClassVar = "a stage"
    tail: Annotated[Tail, choice(TAILS)]
    certificates: Annotated[
        tuple[CertifiedScore, ...], listed(nested(CertifiedScore), low=1, high=len(SCORES) * MOST)
    ]
    named: Annotated[  # strongest first
        tuple[Naming, ...], listed(nested(Naming), low=1, high=ACCUSED_LIMIT * len(SCORES) * MOST)
    ]

    @property
    def stations(self) -> tuple[str, ...]:
        """Who was named, each once, in order."""
        return tuple(dict.fromkeys(each.station for each in self.named))

    def check(self) -> None:
        """Nobody and nothing twice, and a certificate for whatever names."""
        scores = [(each.carrier, each.by) for each in self.certificates]
        distinct(scores, "the scores of a stage")
        distinct([(each.station, each.carrier, each.by) for each in self.named], "the stations of a stage")
        if {(each.carrier, each.by) for each in self.named} != set(scores):
            raise MalformedFile("a stage: must have a certificate for each score that names, and no other")


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierClaim(Declared):
    """A carrier that was read, and the digest of what was read."""

    what: ClassVar = "a carrier"
    carrier: CarrierName
    readout: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class LookClaim:
    """What was read at one look."""

    carriers: tuple[CarrierClaim, ...]

    def __post_init__(self) -> None:
        _CLAIMS.check(self.carriers, "a look")
        distinct([each.carrier for each in self.carriers], "the carriers of a look")


_CLAIMS: Final = listed(nested(CarrierClaim), high=MOST)


def _read_look(value: object, _what: str) -> LookClaim:
    return LookClaim(carriers=_CLAIMS.read(value, "a look"))


_LOOK: Final = Form(_read_look, made_as(LookClaim), lambda look: _CLAIMS.write(look.carriers))
_VERDICTS: Final = choice([str(each) for each in Verdict])
_VERDICT: Final = Form(lambda value, what: Verdict(_VERDICTS.read(value, what)), made_as(Verdict), str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Declared):
    """What an investigation claims."""

    what: ClassVar = "findings"
    verdict: Annotated[Verdict, _VERDICT]
    level: Annotated[Fraction, fraction()]
    looks: Annotated[  # all before the last one named nobody
        tuple[LookClaim, ...], listed(_LOOK, low=1, high=LOOKS_LIMIT)
    ]
    stages: Annotated[  # of the last look; empty if nobody is named
        tuple[Stage, ...], listed(nested(Stage), high=MAX_STAGES)
    ]

    @property
    def carriers(self) -> tuple[CarrierClaim, ...]:
        """What was read at the last look."""
        return self.looks[-1].carriers

    @property
    def stations(self) -> tuple[str, ...]:
        """Everybody named, in the order of being named."""
        return tuple(dict.fromkeys(name for stage in self.stages for name in stage.stations))

    @property
    def naming_carriers(self) -> tuple[str, ...]:
        """The carriers that an accusation rests on, in the order of the look."""
        used = {each.carrier for stage in self.stages for each in stage.certificates}
        return tuple(each.carrier for each in self.carriers if each.carrier in used)

    def digest(self) -> bytes:
        """What the verdict in the log fixes."""
        return hashlib.sha256(field(_DOMAIN) + to_json(self.as_json())).digest()

    def check(self) -> None:
        """A certified verdict names somebody, no other does, and nobody is named at two stages."""
        if not 0 < self.level < 1:
            raise MalformedFile("level: must lie between 0 and 1")
        if (self.verdict in CERTIFIED) != bool(self.stages):
            raise MalformedFile(
                f"stages: must be there for a certified verdict and for no other ({self.verdict})"
            )
        distinct([name for stage in self.stages for name in stage.stations], "the stations named")
        known = {each.carrier for each in self.carriers}
        if not all(each.carrier in known for stage in self.stages for each in stage.certificates):
            raise MalformedFile("a stage: names on a carrier that was not read")
        if len(self.stations) > ACCUSED_LIMIT:
            raise MalformedFile(f"stages: name more than {ACCUSED_LIMIT} stations")
