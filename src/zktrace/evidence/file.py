"""The evidence file `case.zkt.json`: canonical JSON, bounded, everything a judge needs and nothing else.

    format    "zkt-evidence-v1"
    head      of the log that the proofs lead to
    entries   of the log and their proofs: setup, release, enrolment of each accused, investigation, verdict
    carriers  what an accusation rests on: biases, directions, the readout, the reference's readout
    accused   each named station's rows and their openings
    findings  what is claimed

Secrets are opened only as far as an accusation rests on them: a carrier that names nobody stays closed, and
a file without an accusation opens nothing.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import MalformedEvidence, MalformedFile
from zktrace.evidence.findings import ACCUSED_LIMIT, Findings
from zktrace.evidence.reading import choice, fail, number, octets, sequence, table, text
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.commitment import OPENING_BYTES
from zktrace.primitives.merkle import HASH_BYTES, PROOF_LIMIT
from zktrace.registry.records import CARRIERS, ENTRY_LIMIT, NAME_LIMIT

FORMAT: Final = "zkt-evidence-v1"
FILE_LIMIT: Final = 1 << 24  # bytes
LENGTH_LIMIT: Final = 1 << 16  # positions of a code
REFERENCE_LIMIT: Final = 1 << 19  # values of a reference: one a position, or one a position and class
SEED_BYTES: Final = 32
_ENTRIES: Final = ACCUSED_LIMIT + 4
_INDEX_LIMIT: Final = 1 << 40

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEntry:
    """An entry of the log and the proof that it is under the head."""

    index: int
    entry: bytes  # its canonical text
    path: tuple[bytes, ...]

    def as_json(self) -> dict[str, Any]:
        """For the file."""
        return {
            "entry": self.entry.decode(),
            "index": self.index,
            "path": [each.hex() for each in self.path],
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = table(value, "an entry", ("entry", "index", "path"))
        path = tuple(
            octets(each, "a hash", low=HASH_BYTES, high=HASH_BYTES)
            for each in sequence(body["path"], "path", high=PROOF_LIMIT)
        )
        return cls(
            index=number(body["index"], "index", high=_INDEX_LIMIT),
            entry=text(body["entry"], "entry", high=ENTRY_LIMIT).encode(),
            path=path,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierOpening:
    """How a carrier was read and scored: all that its coefficients are made from."""

    carrier: str
    thresholds: bytes  # T_b of the biases, 4 bytes each
    bias_opening: bytes
    direction_seed: bytes
    readout: bytes  # float64, 8 bytes each
    reference: bytes  # the shared model's readout in the same form, of the output carrier its scores, row
    # after row; empty in the paper profile

    @property
    def length(self) -> int:
        """Positions of the code."""
        return len(self.thresholds) // 4

    def bias_thresholds(self) -> NDArray[np.uint32]:
        """T_b."""
        return np.frombuffer(self.thresholds, dtype=">u4").astype(np.uint32)

    def values(self) -> Floats:
        """The readout."""
        return np.frombuffer(self.readout, dtype=">f8").astype(np.float64)

    def reference_values(self) -> Floats | None:
        """The reference's readout, if one was taken off."""
        return np.frombuffer(self.reference, dtype=">f8").astype(np.float64) if self.reference else None

    def as_json(self) -> dict[str, Any]:
        """For the file."""
        return {
            "bias_opening": self.bias_opening.hex(),
            "carrier": self.carrier,
            "direction_seed": self.direction_seed.hex(),
            "readout": self.readout.hex(),
            "reference": self.reference.hex(),
            "thresholds": self.thresholds.hex(),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        keys = ("bias_opening", "carrier", "direction_seed", "readout", "reference", "thresholds")
        body = table(value, "a carrier", keys)
        found = cls(
            carrier=choice(body["carrier"], "carrier", CARRIERS),
            thresholds=octets(body["thresholds"], "thresholds", low=4, high=4 * LENGTH_LIMIT),
            bias_opening=octets(body["bias_opening"], "bias_opening", low=OPENING_BYTES, high=OPENING_BYTES),
            direction_seed=octets(body["direction_seed"], "direction_seed", low=SEED_BYTES, high=SEED_BYTES),
            readout=octets(body["readout"], "readout", low=8, high=8 * LENGTH_LIMIT),
            reference=octets(body["reference"], "reference", low=0, high=8 * REFERENCE_LIMIT),
        )
        if len(found.thresholds) % 4 or len(found.readout) != 8 * found.length:
            raise fail("a carrier", f"has {len(found.readout)} bytes of readout for {found.length} positions")
        scores = found.carrier == "output" and not len(found.reference) % len(found.readout)
        if found.reference and len(found.reference) != len(found.readout) and not scores:
            raise fail("a carrier", f"has {len(found.reference)} bytes of reference")
        if not all(
            np.isfinite(each).all() for each in (found.values(), found.reference_values()) if each is not None
        ):
            raise fail("a readout", "must be finite")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOpening:
    """A row of one carrier's code, and what opens its commitment."""

    carrier: str
    row: bytes  # packed
    opening: bytes

    def as_json(self) -> dict[str, Any]:
        """For the file."""
        return {"carrier": self.carrier, "opening": self.opening.hex(), "row": self.row.hex()}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = table(value, "a row", ("carrier", "opening", "row"))
        return cls(
            carrier=choice(body["carrier"], "carrier", CARRIERS),
            row=octets(body["row"], "row", low=1, high=LENGTH_LIMIT // 8),
            opening=octets(body["opening"], "opening", low=OPENING_BYTES, high=OPENING_BYTES),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Accused:
    """A named station and its rows of the carriers that the accusation rests on."""

    station: str
    rows: tuple[RowOpening, ...]

    def as_json(self) -> dict[str, Any]:
        """For the file."""
        return {"rows": [each.as_json() for each in self.rows], "station": self.station}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = table(value, "an accused", ("rows", "station"))
        rows = sequence(body["rows"], "rows", low=1, high=len(CARRIERS))
        return cls(
            station=text(body["station"], "station", high=NAME_LIMIT),
            rows=tuple(RowOpening.from_json(each) for each in rows),
        )

    def row(self, carrier: str) -> RowOpening:
        """The row of a carrier that the accusation rests on."""
        return next(each for each in self.rows if each.carrier == carrier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A whole file."""

    head: str
    entries: tuple[LoggedEntry, ...]  # in the order of the log
    carriers: tuple[CarrierOpening, ...]  # in the order of the findings
    accused: tuple[Accused, ...]  # in the order of being named
    findings: Findings

    def to_bytes(self) -> bytes:
        """The canonical text."""
        data = to_json(
            {
                "accused": [each.as_json() for each in self.accused],
                "carriers": [each.as_json() for each in self.carriers],
                "entries": [each.as_json() for each in self.entries],
                "findings": self.findings.as_json(),
                "format": FORMAT,
                "head": self.head,
            }
        )
        if len(data) > FILE_LIMIT:
            raise MalformedEvidence(f"evidence of {len(data)} bytes, at most {FILE_LIMIT} are allowed")
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The evidence that `to_bytes` wrote, or MalformedEvidence."""
        if len(data) > FILE_LIMIT:
            raise MalformedEvidence(f"evidence of {len(data)} bytes, at most {FILE_LIMIT} are allowed")
        try:
            found = cls._from_json(from_json(data, what="evidence"))
        except MalformedEvidence:
            raise
        except MalformedFile as error:
            raise MalformedEvidence(str(error)) from None
        _coherent(found)
        return found

    @classmethod
    def _from_json(cls, value: object) -> Self:
        if isinstance(value, dict) and value.get("format") != FORMAT:
            raise fail("format", f"must be {FORMAT}")
        body = table(value, "a file", ("accused", "carriers", "entries", "findings", "format", "head"))
        entries = sequence(body["entries"], "entries", low=1, high=_ENTRIES)
        carriers = sequence(body["carriers"], "carriers", high=len(CARRIERS))
        accused = sequence(body["accused"], "accused", high=ACCUSED_LIMIT)
        return cls(
            head=text(body["head"], "head", high=200),
            entries=tuple(LoggedEntry.from_json(each) for each in entries),
            carriers=tuple(CarrierOpening.from_json(each) for each in carriers),
            accused=tuple(Accused.from_json(each) for each in accused),
            findings=Findings.from_json(body["findings"]),
        )

    def carrier(self, name: str) -> CarrierOpening:
        """How a carrier that names somebody was read."""
        return next(each for each in self.carriers if each.carrier == name)


def _coherent(evidence: Evidence) -> None:
    """The parts are about the same stations and carriers, in their one order."""
    places = [each.index for each in evidence.entries]
    if sorted(set(places)) != places:
        raise fail("entries", "must be in the order of the log, each once")
    used = evidence.findings.naming_carriers
    if tuple(each.carrier for each in evidence.carriers) != used:
        raise fail("carriers", f"must be those that name somebody, in order: {', '.join(used) or 'none'}")
    if tuple(each.station for each in evidence.accused) != evidence.findings.stations:
        raise fail("accused", "must be the stations that the findings name, in order")
    for each in evidence.accused:
        if tuple(row.carrier for row in each.rows) != used:
            raise fail("rows", f"must be those of the carriers that name, in order: {', '.join(used)}")
