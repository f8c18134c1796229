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
from typing import Annotated, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import MalformedEvidence, MalformedFile
from zktrace.evidence.findings import ACCUSED_LIMIT, Findings
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.commitment import OPENING_BYTES
from zktrace.primitives.fields import Declared, Form, listed, nested, octets, text, whole
from zktrace.registry.log import HashPath
from zktrace.registry.records import CARRIERS, ENTRY_LIMIT, Carrier, Name

FORMAT: Final = "zkt-evidence-v1"
FILE_LIMIT: Final = 1 << 24  # bytes
LENGTH_LIMIT: Final = 1 << 13  # positions of a code
WORK_LIMIT: Final = 1 << 17  # positions to certify over all stages and carriers: a judge's minute
_SHORTEST: Final = 1 << 10  # what a shorter code counts as
_ROWS: Final = 32  # taken out of a readout, they take as long as its certificate
REFERENCE_LIMIT: Final = 1 << 19  # values of a reference: one a position, or one a position and class
SEED_BYTES: Final = 32
_ENTRIES: Final = ACCUSED_LIMIT + 4
_INDEX_LIMIT: Final = 1 << 40
_ENTRY_TEXT: Final = text(ENTRY_LIMIT)

Floats = NDArray[np.float64]
Opening = Annotated[bytes, octets(OPENING_BYTES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEntry(Declared):
    """An entry of the log and the proof that it is under the head."""

    what: ClassVar = "an entry"
    index: Annotated[int, whole(0, _INDEX_LIMIT)]
    entry: Annotated[  # its canonical text
        bytes, Form(lambda value, what: _ENTRY_TEXT.read(value, what).encode(), bytes.decode)
    ]
    path: HashPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierOpening(Declared):
    """How a carrier was read and scored: all that its coefficients are made from."""

    what: ClassVar = "a carrier"
    carrier: Carrier
    thresholds: Annotated[bytes, octets(4, 4 * LENGTH_LIMIT)]  # T_b of the biases, 4 bytes each
    bias_opening: Opening
    direction_seed: Annotated[bytes, octets(SEED_BYTES)]
    readout: Annotated[bytes, octets(8, 8 * LENGTH_LIMIT)]  # float64, 8 bytes each
    reference: Annotated[bytes, octets(0, 8 * REFERENCE_LIMIT)]  # the shared model's readout in the same
    # form, of the output carrier its scores, row after row; empty in the paper profile

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

    def check(self) -> None:
        """As many values as positions, all finite."""
        if len(self.thresholds) % 4 or len(self.readout) != 8 * self.length:
            raise MalformedFile(
                f"a carrier: has {len(self.readout)} bytes of readout for {self.length} positions"
            )
        scores = self.carrier == "output" and not len(self.reference) % len(self.readout)
        if self.reference and len(self.reference) != len(self.readout) and not scores:
            raise MalformedFile(f"a carrier: has {len(self.reference)} bytes of reference")
        if not all(
            np.isfinite(each).all() for each in (self.values(), self.reference_values()) if each is not None
        ):
            raise MalformedFile("a readout: must be finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOpening(Declared):
    """A row of one carrier's code, and what opens its commitment."""

    what: ClassVar = "a row"
    carrier: Carrier
    row: Annotated[bytes, octets(1, LENGTH_LIMIT // 8)]  # packed
    opening: Opening


@dataclass(frozen=True, slots=True, kw_only=True)
class Accused(Declared):
    """A named station and its rows of the carriers that the accusation rests on."""

    what: ClassVar = "an accused"
    station: Name
    rows: Annotated[tuple[RowOpening, ...], listed(nested(RowOpening), low=1, high=len(CARRIERS))]

    def row(self, carrier: str) -> RowOpening:
        """The row of a carrier that the accusation rests on."""
        return next(each for each in self.rows if each.carrier == carrier)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Declared):
    """A whole file."""

    what: ClassVar = "a file"
    head: Annotated[str, text(200)]
    entries: Annotated[  # in the order of the log
        tuple[LoggedEntry, ...], listed(nested(LoggedEntry), low=1, high=_ENTRIES)
    ]
    carriers: Annotated[  # in the order of the findings
        tuple[CarrierOpening, ...], listed(nested(CarrierOpening), high=len(CARRIERS))
    ]
    accused: Annotated[  # in the order of being named
        tuple[Accused, ...], listed(nested(Accused), high=ACCUSED_LIMIT)
    ]
    findings: Annotated[Findings, nested(Findings)]

    def to_bytes(self) -> bytes:
        """The canonical text."""
        data = to_json({"format": FORMAT, **self.as_json()})
        if len(data) > FILE_LIMIT:
            raise MalformedEvidence(f"evidence of {len(data)} bytes, at most {FILE_LIMIT} are allowed")
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The evidence that `to_bytes` wrote, or MalformedEvidence."""
        if len(data) > FILE_LIMIT:
            raise MalformedEvidence(f"evidence of {len(data)} bytes, at most {FILE_LIMIT} are allowed")
        try:
            return cls.from_json(_without_format(from_json(data, what="a file")))
        except MalformedFile as error:
            raise MalformedEvidence(f"evidence: {error}") from None

    @property
    def work(self) -> int:
        """What judging takes: the positions of each stage, and more where many rows are taken out before."""
        found = rows = 0
        for stage in self.findings.stages:
            lengths = [max(self.carrier(name).length, _SHORTEST) for name, _ in stage.certificates]
            found += sum(lengths) * (_ROWS**2 + rows**2) // _ROWS**2
            rows += len(stage.stations)
        return found

    def carrier(self, name: str) -> CarrierOpening:
        """How a carrier that names somebody was read."""
        return next(each for each in self.carriers if each.carrier == name)

    def check(self) -> None:
        """The parts are about the same stations and carriers, in their one order."""
        places = [each.index for each in self.entries]
        if sorted(set(places)) != places:
            raise MalformedFile("entries: must be in the order of the log, each once")
        used = self.findings.naming_carriers
        order = f"in order: {', '.join(used) or 'none'}"
        if tuple(each.carrier for each in self.carriers) != used:
            raise MalformedFile(f"carriers: must be those that name somebody, {order}")
        if tuple(each.station for each in self.accused) != self.findings.stations:
            raise MalformedFile("accused: must be the stations that the findings name, in order")
        for each in self.accused:
            if tuple(row.carrier for row in each.rows) != used:
                raise MalformedFile(f"rows: must be those of the carriers that name, {order}")
        if self.work > WORK_LIMIT:
            raise MalformedFile(
                f"stages: take a judge {self.work} positions, at most {WORK_LIMIT} are allowed"
            )


def _without_format(value: object) -> object:
    """The fields of a file of this version."""
    if not isinstance(value, dict) or value.pop("format", None) != FORMAT:
        raise MalformedFile(f"format: must be {FORMAT}")
    return value
