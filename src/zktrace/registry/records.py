"""The records of a registry: what each says, and its one canonical text.

    setup          the code, the seeds that are promised, and the budget, before anybody enrols
    reservation    further seeds that are promised, when those of the setup run out
    enrolment      a station, its credential, and what it added to its rows (`eq_enroll`)
    release        a shared model, and how copies of it are read
    dispatch       a copy of a release that a station was given
    broadcast      a shared model of a guarded release that stations were sent, and who got which copy of it
    receipt        copies that a station signed for (`zktrace.registry.signing`)
    revocation     a station that gets no further copies; its rows are still scored
    investigation  a suspect that is about to be examined, and the budget that is spent on it
    verdict        what an investigation found

An entry of the log is the canonical JSON of {"at", "body", "kind", "v"}; its Merkle leaf is over these bytes.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Literal, Self

from zktrace.carriers import MOST, NAMES, PROFILES, Look, carrier
from zktrace.carriers.looks import Carriers, check_carriers
from zktrace.codes import LAWS, Law
from zktrace.derivation.promises import NONCE_BYTES, TREE_LIMIT
from zktrace.errors import MalformedFile
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.encoding import field, fields
from zktrace.primitives.fields import (
    Declared,
    choice,
    flag,
    fraction,
    listed,
    nested,
    octets,
    table,
    text,
    whole,
)
from zktrace.primitives.text import shown
from zktrace.registry.forms import NAME_LIMIT, WHOLE_LIMIT, Count, Digest, Name
from zktrace.registry.signing import ReceiptRecord

VERSION: Final = 1
ENTRY_LIMIT: Final = 1 << 16  # bytes of an entry
RULE_OF: Final[dict[str, Literal["certified", "paper"]]] = {  # profile -> rule
    "informed": "certified",
    "paper": "paper",
}

RULES: Final = tuple(RULE_OF.values())
LOOKS_LIMIT: Final = 16  # of one investigation
_RECORD_DOMAIN: Final = b"zkt-record-v1"
_OFFER_DOMAIN: Final = b"zkt-offer-v1"

CarrierName = Annotated[str, choice(NAMES)]
Part = Annotated[Fraction, fraction()]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierCode(Declared):
    """The code of one carrier: public numbers, and a commitment to the seed of the secret biases."""

    what: ClassVar = "a carrier's code"
    carrier: CarrierName
    colluders: Annotated[int, whole(2, 1 << 16)]  # c
    biases: Digest  # commitment


PLACE: Final = "place"
RELEASE: Final = "release"
SEEDS: Final = (PLACE, RELEASE)  # what seeds are promised for


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedTree(Declared):
    """Promised seeds: how many, and the Merkle root over the commitments to them."""

    what: ClassVar = "a seed tree"
    count: Annotated[int, whole(1, TREE_LIMIT)]
    root: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRecord(Declared):
    """The first record."""

    kind: ClassVar = "setup"
    what: ClassVar = kind
    title: Name
    code_key: Digest  # commitment
    carriers: Annotated[tuple[CarrierCode, ...], listed(nested(CarrierCode), high=MOST)]
    places: Annotated[SeedTree, nested(SeedTree)]  # of stations' rows
    releases: Annotated[SeedTree, nested(SeedTree)]  # of releases' directions
    identity_bits: Annotated[int, whole(1, 1 << 16)]
    budget: Part  # for all investigations together

    def check(self) -> None:
        """One code a carrier, and a budget."""
        if not self.carriers or len({each.carrier for each in self.carriers}) != len(self.carriers):
            raise MalformedFile("setup: must have one code for each of its carriers, and at least one")
        if not 0 < self.budget < 1:
            raise MalformedFile("budget: must lie between 0 and 1")

    def code(self, name: str) -> CarrierCode | None:
        """The code of a carrier, if it was set up."""
        return next((each for each in self.carriers if each.carrier == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRecord(Declared):
    """Further seeds: places `first` to `first + count - 1`."""

    kind: ClassVar = "reservation"
    what: ClassVar = kind
    of: Annotated[str, choice(SEEDS)]
    first: Count
    seeds: Annotated[SeedTree, nested(SeedTree)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentRecord(Declared):
    """A station at its place: its rows come of the seed promised for it, and of its own nonce and key."""

    kind: ClassVar = "enrolment"
    what: ClassVar = kind
    station: Name
    row: Count  # its place: stations are numbered from 0 in the order of enrolment
    public_key: Annotated[bytes, octets(1, 4096)]
    codeword: Annotated[bytes, octets(1, 8192)]
    nonce: Annotated[bytes, octets(NONCE_BYTES)]  # drawn by the station
    request: Digest  # of the station's request, which proves that key and nonce are its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Declared):
    """How one carrier of a release is read."""

    what: ClassVar = "a layout"
    carrier: CarrierName
    profile: Annotated[str, choice(PROFILES)]
    length: Annotated[int, whole(1, 1 << 20)]  # n_t, positions of the code
    law: Annotated[Law, choice(LAWS)]  # of the code's biases
    dimension: Annotated[int, whole(1, WHOLE_LIMIT)]  # coordinates of a direction
    layers: Annotated[  # where layers are read: how large each is; else empty
        tuple[int, ...], listed(whole(1, WHOLE_LIMIT), high=4096)
    ]
    deviations: Annotated[bytes, octets(0, 4 * 4096)]  # of these layers where they count: big-endian float32
    reference: Digest  # of the reference's own readout; zeros in the paper profile, or if there is none
    probes: Digest  # zeros for a carrier without any
    frozen: Annotated[bool, flag()]  # whether training is kept out of the directions, by a guard

    @property
    def referred(self) -> bool:
        """Whether numbers of the shared model are kept, and taken off what a suspect says."""
        return self.profile == "informed" and not carrier(self.carrier).beside

    def check(self) -> None:
        """A deviation for each layer, or none."""
        if self.deviations and len(self.deviations) != 4 * len(self.layers):
            raise MalformedFile(f"a layout: has {len(self.deviations)} bytes of deviations")
        if self.frozen and (self.profile != "informed" or not carrier(self.carrier).beside):
            raise MalformedFile(
                "a layout: directions are frozen where suspects are read beside the model only"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord(Declared):
    """A shared model whose copies are dispatched."""

    kind: ClassVar = "release"
    what: ClassVar = kind
    name: Name
    number: Count  # releases are numbered from 0: which promised seed its directions come from
    root: Digest  # of the log just before it, from which its directions come too
    model: Digest  # of the shared model's state
    layouts: Annotated[tuple[Layout, ...], listed(nested(Layout), high=MOST)]

    def check(self) -> None:
        """One layout a carrier."""
        if not self.layouts or len({each.carrier for each in self.layouts}) != len(self.layouts):
            raise MalformedFile("release: must have one layout for each of its carriers, and at least one")

    def layout(self, name: str) -> Layout | None:
        """How a carrier is read, if copies of this release carry it."""
        return next((each for each in self.layouts if each.carrier == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchRecord(Declared):
    """A copy that was made for a station."""

    kind: ClassVar = "dispatch"
    what: ClassVar = kind
    station: Name
    release: Name
    copy: Digest  # of the copy's state


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastRecord(Declared):
    """A shared model of a guarded release, as it was sent to stations: to each a copy of its own."""

    kind: ClassVar = "broadcast"
    what: ClassVar = kind
    release: Name
    number: Count  # broadcasts of a release are numbered from 0
    label: Name  # which round of whose counting it was
    model: Digest  # of the shared model's state
    copies: Count  # that were made of it
    root: Digest  # of the Merkle tree over their leaves, in the order of stations' rows

    def check(self) -> None:
        """Somebody got a copy."""
        if not self.copies:
            raise MalformedFile("broadcast: must have been sent to a station or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class RevocationRecord(Declared):
    """A station that gets no further copies."""

    kind: ClassVar = "revocation"
    what: ClassVar = kind
    station: Name
    reason: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationRecord(Declared):
    """Looks that are about to be taken. They are on record, and paid for, before anything is scored."""

    kind: ClassVar = "investigation"
    what: ClassVar = kind
    suspect: Digest  # of its state, or of its scores where it was only queried
    release: Name
    carriers: Carriers
    rule: Annotated[str, choice(RULES)]
    budget: Part  # spent on it; 0: uncertified, it may give leads only
    recipients: Count  # N, the stations enrolled: all are scored, revoked ones too
    looks: Annotated[  # in this order, until one certifies; their shares add up to at most 1
        tuple[Look, ...], listed(nested(Look), high=LOOKS_LIMIT)
    ]

    def check(self) -> None:
        """Looks spend no more than there is, and are at the carriers that are on record."""
        check_carriers(self.carriers, self.what)
        if not 0 <= self.budget < 1:
            raise MalformedFile("investigation: must have a budget in [0, 1)")
        if not self.looks or sum((each.share for each in self.looks), Fraction(0)) > 1:
            raise MalformedFile("investigation: must have looks whose shares add up to at most 1")
        if {name for each in self.looks for name in each.carriers} != set(self.carriers):
            raise MalformedFile("investigation: its looks must be at its carriers, and at all of them")
        if len({(each.alignment, each.carriers) for each in self.looks}) != len(self.looks):
            raise MalformedFile("investigation: must have each look once")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord(Declared):
    """How an investigation ended."""

    kind: ClassVar = "verdict"
    what: ClassVar = kind
    investigation: Count  # its place in the log
    verdict: Name
    named: Annotated[tuple[str, ...], listed(text(NAME_LIMIT), high=4096)]  # stations
    findings: Digest  # of the findings in the evidence file


Record = (
    SetupRecord
    | ReservationRecord
    | EnrolmentRecord
    | ReleaseRecord
    | DispatchRecord
    | BroadcastRecord
    | ReceiptRecord
    | RevocationRecord
    | InvestigationRecord
    | VerdictRecord
)
KINDS: Final[dict[str, type[Record]]] = {
    each.kind: each
    for each in (
        SetupRecord,
        ReservationRecord,
        EnrolmentRecord,
        ReleaseRecord,
        DispatchRecord,
        BroadcastRecord,
        ReceiptRecord,
        RevocationRecord,
        InvestigationRecord,
        VerdictRecord,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record and when it was written (UTC, whole seconds)."""

    at: str
    record: Record

    def to_bytes(self) -> bytes:
        """The canonical text: what the log hashes."""
        return to_json({"at": self.at, "body": self.record.as_json(), "kind": self.record.kind, "v": VERSION})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The entry that `to_bytes` wrote, or MalformedFile."""
        if len(data) > ENTRY_LIMIT:
            raise MalformedFile(f"a registry entry of {len(data)} bytes, at most {ENTRY_LIMIT} are allowed")
        value = table(from_json(data, what="a registry entry"), "an entry", ("at", "body", "kind", "v"))
        if value["v"] != VERSION or type(value["v"]) is not int:
            raise MalformedFile(f"a registry entry of version {shown(str(value['v']))}, this is {VERSION}")
        kind = choice(tuple(KINDS)).read(value["kind"], "kind")
        return cls(at=_moment(value["at"]), record=KINDS[kind].from_json(value["body"]))


def record_digest(record: Record) -> bytes:
    """SHA-256 over what a record says, whenever it was put on record."""
    return hashlib.sha256(
        field(_RECORD_DOMAIN) + to_json({"body": record.as_json(), "kind": record.kind})
    ).digest()


def offer_digest(setup: SetupRecord, record: SetupRecord | ReservationRecord) -> bytes:
    """What a station asks for a place of. That of a reservation has the setup in it: the biases, too, were
    fixed before the station drew its nonce."""
    if isinstance(record, SetupRecord):
        return record_digest(record)
    return hashlib.sha256(fields((_OFFER_DOMAIN, record_digest(setup), record_digest(record)))).digest()


def _moment(value: object) -> str:
    if isinstance(value, str):
        try:
            found = datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            found = None
        if found is not None and found.strftime("%Y-%m-%dT%H:%M:%SZ") == value:
            return value
    raise MalformedFile("at: must be a UTC time such as 2026-01-31T12:00:00Z")
