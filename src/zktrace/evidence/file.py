"""The evidence file `case.zkt.json`: canonical JSON, bounded, everything a judge needs and nothing else.

    format    "zkt-evidence-v1"
    head      of the log that the proofs lead to
    entries   of the log and their proofs: setup, release, enrolment of each accused, investigation, verdict,
              and reservations if a seed was promised by one
    past      shows that the head extends the root that the release's directions come from
    carriers  what an accusation rests on: seeds of biases and directions, the readout, the reference's
    accused   the seeds of each named station's rows, and the proof in its request to enrol
    findings  what is claimed

Nothing that a seed determines is in the file: a judge makes biases, directions and rows itself. Secrets are
opened only as far as an accusation rests on them: a carrier that names nobody stays closed, and a file
without an accusation opens nothing.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import CARRIERS, MOST
from zktrace.derivation.promises import SEED_BYTES
from zktrace.errors import MalformedEvidence, MalformedFile
from zktrace.evidence.findings import ACCUSED_LIMIT, WORK_LIMIT, Findings, judges_work
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.commitment import COMMITMENT_BYTES
from zktrace.primitives.fields import Declared, Form, listed, nested, octets, packed, sized, text, whole
from zktrace.registry.forms import Name
from zktrace.registry.log import HashPath
from zktrace.registry.records import ENTRY_LIMIT, CarrierName
from zktrace.registry.requests import PROOF_LIMIT

FORMAT: Final = "zkt-evidence-v1"
FILE_LIMIT: Final = 1 << 26  # bytes
_VALUES: Final = 1 << 18  # and at most so many values: most of a large file are proofs in base64
LENGTH_LIMIT: Final = 1 << 13  # positions of a code
REFERENCE_LIMIT: Final = 1 << 19  # values of a reference: one a position, or one a position and class
_ENTRIES: Final = 2 * ACCUSED_LIMIT + 5  # an enrolment and at most a reservation for each, and the rest
_INDEX_LIMIT: Final = 1 << 40
_ENTRY_TEXT: Final = text(ENTRY_LIMIT)


def _read_entry(value: object, what: str) -> bytes:
    return _ENTRY_TEXT.read(value, what).encode()


_ENTRY: Final = Form(_read_entry, sized(1, 4 * ENTRY_LIMIT), bytes.decode)
Floats = NDArray[np.float64]
Seed = Annotated[bytes, octets(SEED_BYTES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEntry(Declared):
    """An entry of the log and the proof that it is under the head."""

    what: ClassVar = "an entry"
    index: Annotated[int, whole(0, _INDEX_LIMIT)]
    entry: Annotated[bytes, _ENTRY]  # its canonical text
    path: HashPath


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOpening(Declared):
    """A promised seed of one carrier, and what shows that it was promised."""

    what: ClassVar = "a seed"
    seed: Seed
    others: Annotated[  # commitments to the place's seeds of the other carriers
        tuple[bytes, ...], listed(octets(COMMITMENT_BYTES), high=MOST - 1)
    ]
    path: HashPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierOpening(Declared):
    """How a carrier was read and scored: all that its coefficients are made from."""

    what: ClassVar = "a carrier"
    carrier: CarrierName
    biases: Seed
    directions: Annotated[SeedOpening, nested(SeedOpening)]
    readout: Annotated[bytes, octets(8, 8 * LENGTH_LIMIT)]  # float64, 8 bytes each
    reference: Annotated[bytes, octets(0, 8 * REFERENCE_LIMIT)]  # the shared model's readout in the same
    # form, of the output carrier its scores, row after row; empty in the paper profile

    @property
    def length(self) -> int:
        """Positions of the code."""
        return len(self.readout) // 8

    def values(self) -> Floats:
        """The readout."""
        return np.frombuffer(self.readout, dtype=">f8").astype(np.float64)

    def reference_values(self) -> Floats | None:
        """The reference's readout, if one was taken off."""
        return np.frombuffer(self.reference, dtype=">f8").astype(np.float64) if self.reference else None

    def check(self) -> None:
        """As many values as positions, all finite."""
        if len(self.readout) % 8:
            raise MalformedFile(f"a carrier: has {len(self.readout)} bytes of readout")
        scores = CARRIERS[self.carrier].answers and not len(self.reference) % len(self.readout)
        if self.reference and len(self.reference) != len(self.readout) and not scores:
            raise MalformedFile(f"a carrier: has {len(self.reference)} bytes of reference")
        if not all(
            np.isfinite(each).all() for each in (self.values(), self.reference_values()) if each is not None
        ):
            raise MalformedFile("a readout: must be finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOpening(Declared):
    """The operator's part of a row of one carrier's code."""

    what: ClassVar = "a row"
    carrier: CarrierName
    opening: Annotated[SeedOpening, nested(SeedOpening)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accused(Declared):
    """A named station: what its rows are made of on the carriers that the accusation rests on."""

    what: ClassVar = "an accused"
    station: Name
    request: Annotated[bytes, packed(0, PROOF_LIMIT)]  # the proof in its request; empty if it was lost
    rows: Annotated[tuple[RowOpening, ...], listed(nested(RowOpening), low=1, high=MOST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Declared):
    """A whole file."""

    what: ClassVar = "a file"
    head: Annotated[str, text(200)]
    entries: Annotated[  # in the order of the log
        tuple[LoggedEntry, ...], listed(nested(LoggedEntry), low=1, high=_ENTRIES)
    ]
    past: HashPath  # from the log just before the release to the head
    carriers: Annotated[  # in the order of the findings
        tuple[CarrierOpening, ...], listed(nested(CarrierOpening), high=MOST)
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
        if data.count(b",") >= _VALUES:  # before it is parsed: an empty list takes 3 bytes here, 64 there
            raise MalformedEvidence(f"evidence of more than {_VALUES} values")
        try:
            return cls.from_json(_without_format(from_json(data, what="a file")))
        except MalformedFile as error:
            raise MalformedEvidence(f"evidence: {error}") from None

    @property
    def work(self) -> int:
        """What judging takes: the positions of each stage, and more where many rows are taken out before."""
        return judges_work(
            ([self.carrier(each.carrier).length for each in stage.certificates], len(stage.stations))
            for stage in self.findings.stages
        )

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
