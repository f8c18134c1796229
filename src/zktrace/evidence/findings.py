"""Findings: what an investigation claims. Their digest is in the log; every claim can be recomputed.

    verdict   one of the four
    level     eps, the probability that the thresholds were made for
    looks     those that were taken, in the order of the plan on record: each carrier with the digest of its
              readout, none where an alignment could not be found
    stages    who was named at each stage of the last look, on which carrier and tail, with what score and
              certificate

Leads are not findings: nobody is accused by them, so neither the log nor a judge is told their names.
"""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, cast

from zktrace.certificates.adjudicate import TAILS, Tail, Verdict
from zktrace.certificates.certificate import Certificate
from zktrace.certificates.stages import MAX_STAGES
from zktrace.evidence.certificates import certificate_json, read_certificate
from zktrace.evidence.reading import choice, distinct, fail, octets, ratio, sequence, table, text
from zktrace.primitives.canonical import fraction_text, to_json
from zktrace.primitives.encoding import field
from zktrace.registry.records import CARRIERS, LOOKS_LIMIT, NAME_LIMIT

ACCUSED_LIMIT: Final = 4096  # stations that one verdict may name
CERTIFIED: Final = (Verdict.ATTRIBUTE, Verdict.TAMPER)
_DOMAIN: Final = b"zkt-findings-v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """A station beyond a certified threshold."""

    station: str
    carrier: str
    score: Fraction

    def as_json(self) -> dict[str, Any]:
        """For findings."""
        return {"carrier": self.carrier, "score": fraction_text(self.score), "station": self.station}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = table(value, "a naming", ("carrier", "score", "station"))
        return cls(
            station=text(body["station"], "station", high=NAME_LIMIT),
            carrier=choice(body["carrier"], "carrier", CARRIERS),
            score=ratio(body["score"], "a score"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage: who was named that had not been before, and the certificate of each carrier that named."""

    tail: Tail
    certificates: tuple[tuple[str, Certificate], ...]  # (carrier, certificate)
    named: tuple[Naming, ...]  # strongest first

    @property
    def stations(self) -> tuple[str, ...]:
        """Who was named, each once, in order."""
        return tuple(dict.fromkeys(each.station for each in self.named))

    def as_json(self) -> dict[str, Any]:
        """For findings."""
        certificates = [
            {"carrier": carrier, "certificate": certificate_json(certificate)}
            for carrier, certificate in self.certificates
        ]
        named = [each.as_json() for each in self.named]
        return {"certificates": certificates, "named": named, "tail": self.tail}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = table(value, "a stage", ("certificates", "named", "tail"))
        pairs = []
        for each in sequence(body["certificates"], "certificates", low=1, high=len(CARRIERS)):
            pair = table(each, "a carrier's certificate", ("carrier", "certificate"))
            carrier = choice(pair["carrier"], "carrier", CARRIERS)
            pairs.append((carrier, read_certificate(pair["certificate"])))
        limit = ACCUSED_LIMIT * len(CARRIERS)
        named = tuple(Naming.from_json(each) for each in sequence(body["named"], "named", low=1, high=limit))
        distinct([carrier for carrier, _ in pairs], "the carriers of a stage")
        distinct([(each.station, each.carrier) for each in named], "the stations of a stage")
        if {each.carrier for each in named} != {carrier for carrier, _ in pairs}:
            raise fail("a stage", "must have a certificate for each carrier that names, and no other")
        return cls(
            tail=cast(Tail, choice(body["tail"], "tail", TAILS)), certificates=tuple(pairs), named=named
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierClaim:
    """A carrier that was read, and the digest of what was read."""

    carrier: str
    readout: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LookClaim:
    """What was read at one look."""

    carriers: tuple[CarrierClaim, ...]

    def as_json(self) -> list[dict[str, Any]]:
        """For findings."""
        return [{"carrier": each.carrier, "readout": each.readout.hex()} for each in self.carriers]

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        carriers = []
        for each in sequence(value, "a look", high=len(CARRIERS)):
            pair = table(each, "a carrier", ("carrier", "readout"))
            digest = octets(pair["readout"], "the digest of a readout", low=32, high=32)
            carriers.append(
                CarrierClaim(carrier=choice(pair["carrier"], "carrier", CARRIERS), readout=digest)
            )
        distinct([each.carrier for each in carriers], "the carriers of a look")
        return cls(carriers=tuple(carriers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What an investigation claims."""

    verdict: Verdict
    level: Fraction
    looks: tuple[LookClaim, ...]  # all before the last one named nobody
    stages: tuple[Stage, ...]  # of the last look; empty if nobody is named

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
        used = {carrier for stage in self.stages for carrier, _ in stage.certificates}
        return tuple(each.carrier for each in self.carriers if each.carrier in used)

    def digest(self) -> bytes:
        """What the verdict in the log fixes."""
        return hashlib.sha256(field(_DOMAIN) + to_json(self.as_json())).digest()

    def as_json(self) -> dict[str, Any]:
        """For an evidence file."""
        return {
            "level": fraction_text(self.level),
            "looks": [each.as_json() for each in self.looks],
            "stages": [each.as_json() for each in self.stages],
            "verdict": str(self.verdict),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = table(value, "findings", ("level", "looks", "stages", "verdict"))
        looks = sequence(body["looks"], "looks", low=1, high=LOOKS_LIMIT)
        level = ratio(body["level"], "level")
        if not 0 < level < 1:
            raise fail("level", "must lie between 0 and 1")
        stages = sequence(body["stages"], "stages", high=MAX_STAGES)
        found = cls(
            verdict=Verdict(choice(body["verdict"], "verdict", [str(each) for each in Verdict])),
            level=level,
            looks=tuple(LookClaim.from_json(each) for each in looks),
            stages=tuple(Stage.from_json(each) for each in stages),
        )
        _coherent(found)
        return found


def _coherent(findings: Findings) -> None:
    """A certified verdict names somebody, no other does, and nobody is named at two stages."""
    if (findings.verdict in CERTIFIED) != bool(findings.stages):
        raise fail("stages", f"must be there for a certified verdict and for no other ({findings.verdict})")
    distinct([name for stage in findings.stages for name in stage.stations], "the stations named")
    known = {each.carrier for each in findings.carriers}
    if not all(carrier in known for stage in findings.stages for carrier, _ in stage.certificates):
        raise fail("a stage", "names on a carrier that was not read")
    if len(findings.stations) > ACCUSED_LIMIT:
        raise fail("stages", f"name more than {ACCUSED_LIMIT} stations")
