"""The records of a registry: what each says, and its one canonical text.

    setup          the code and the budget, before anybody enrols
    enrolment      a station, its credential, and commitments to its rows (`eq_enroll`)
    release        a shared model, and how copies of it are read
    dispatch       a copy of a release that a station was given
    revocation     a station that gets no further copies; its rows are still scored
    investigation  a suspect that is about to be examined, and the budget that is spent on it
    verdict        what an investigation found

An entry of the log is the canonical JSON of {"at", "body", "kind", "v"}; its Merkle leaf is over these bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from zktrace.errors import MalformedFile
from zktrace.primitives.canonical import fraction_text, from_json, read_fraction, to_json
from zktrace.primitives.commitment import COMMITMENT_BYTES
from zktrace.primitives.text import shown

VERSION: Final = 1
ENTRY_LIMIT: Final = 1 << 16  # bytes of an entry
NAME_LIMIT: Final = 100  # characters
CARRIERS: Final = ("weight", "feature", "output")
PROFILES: Final = ("informed", "paper")
RULES: Final = ("certified", "paper")
IDENTITY: Final = "identity"
ALIGNMENTS: Final[dict[str, tuple[str, ...]]] = {  # how a suspect may be read, and on which carriers
    IDENTITY: CARRIERS,
    "channels": ("weight",),
    "procrustes": ("feature",),
    "ridge": ("feature",),
}
LOOKS_LIMIT: Final = 16  # of one investigation
_WHOLE_LIMIT: Final = 1 << 40


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_LIMIT or not value.isprintable():
        raise MalformedFile(f"{what}: must be 1..{NAME_LIMIT} printable characters")
    return value


def _digest(value: object, what: str) -> bytes:
    """32 bytes in lower-case hexadecimal."""
    return _hexadecimal(value, what, low=COMMITMENT_BYTES, high=COMMITMENT_BYTES)


def _hexadecimal(value: object, what: str, *, low: int, high: int) -> bytes:
    if isinstance(value, str) and low <= len(value) / 2 <= high and value == value.lower():
        try:
            found = bytes.fromhex(value)
        except ValueError:
            found = b""
        if found.hex() == value and found:
            return found
    raise MalformedFile(f"{what}: must be {low}..{high} bytes in hexadecimal")


def _whole(value: object, what: str, *, low: int = 0, high: int = _WHOLE_LIMIT) -> int:
    if type(value) is not int or not low <= value <= high:
        raise MalformedFile(f"{what}: must be a whole number in {low}..{high}")
    return value


def _one_of(value: object, what: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed or not isinstance(value, str):
        raise MalformedFile(f"{what}: must be one of {', '.join(allowed)}")
    return value


def _object(value: object, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise MalformedFile(f"{what}: must have exactly the fields {', '.join(keys)}")
    return value


def _list(value: object, what: str, *, limit: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > limit:
        raise MalformedFile(f"{what}: must be a list of at most {limit}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierCode:
    """The code of one carrier: public numbers, and a commitment to the secret biases."""

    carrier: str
    length: int  # n_t
    colluders: int  # c
    biases: bytes  # commitment

    def as_json(self) -> dict[str, Any]:
        """For a record."""
        return {
            "biases": self.biases.hex(),
            "carrier": self.carrier,
            "colluders": self.colluders,
            "length": self.length,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = _object(value, "a carrier's code", ("biases", "carrier", "colluders", "length"))
        return cls(
            carrier=_one_of(body["carrier"], "carrier", CARRIERS),
            length=_whole(body["length"], "length", low=1, high=1 << 20),
            colluders=_whole(body["colluders"], "colluders", low=2, high=1 << 16),
            biases=_digest(body["biases"], "biases"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The first record."""

    kind: ClassVar = "setup"
    title: str
    code_key: bytes  # commitment
    carriers: tuple[CarrierCode, ...]
    identity_bits: int
    budget: Fraction  # for all investigations together

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {
            "budget": fraction_text(self.budget),
            "carriers": [each.as_json() for each in self.carriers],
            "code_key": self.code_key.hex(),
            "identity_bits": self.identity_bits,
            "title": self.title,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        keys = ("budget", "carriers", "code_key", "identity_bits", "title")
        body = _object(value, "setup", keys)
        carriers = tuple(
            CarrierCode.from_json(each) for each in _list(body["carriers"], "carriers", limit=len(CARRIERS))
        )
        if not carriers or len({each.carrier for each in carriers}) != len(carriers):
            raise MalformedFile("setup: must have one code for each of its carriers, and at least one")
        return cls(
            title=_name(body["title"], "title"),
            code_key=_digest(body["code_key"], "code_key"),
            carriers=carriers,
            identity_bits=_whole(body["identity_bits"], "identity_bits", low=1, high=1 << 16),
            budget=_budget(body["budget"], "budget"),
        )

    def code(self, carrier: str) -> CarrierCode | None:
        """The code of a carrier, if it was set up."""
        return next((each for each in self.carriers if each.carrier == carrier), None)


def _budget(value: object, what: str) -> Fraction:
    found = read_fraction(value, what=what)
    if not 0 < found < 1:
        raise MalformedFile(f"{what}: must lie between 0 and 1")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A station, the row that is its own, and what binds both."""

    kind: ClassVar = "enrolment"
    station: str
    row: int  # index in the code: stations are numbered from 0 in the order of enrolment
    public_key: bytes
    codeword: bytes
    commitments: tuple[tuple[str, bytes], ...]  # (carrier, Com(w || X || A || y; rho)), in the setup's order

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {
            "codeword": self.codeword.hex(),
            "commitments": [[carrier, value.hex()] for carrier, value in self.commitments],
            "public_key": self.public_key.hex(),
            "row": self.row,
            "station": self.station,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        keys = ("codeword", "commitments", "public_key", "row", "station")
        body = _object(value, "enrolment", keys)
        pairs = []
        for each in _list(body["commitments"], "commitments", limit=len(CARRIERS)):
            if len(_list(each, "commitment", limit=2)) != 2:
                raise MalformedFile("commitment: must be a carrier and a hash")
            pairs.append((_one_of(each[0], "carrier", CARRIERS), _digest(each[1], "commitment")))
        return cls(
            station=_name(body["station"], "station"),
            row=_whole(body["row"], "row"),
            public_key=_hexadecimal(body["public_key"], "public_key", low=1, high=4096),
            codeword=_hexadecimal(body["codeword"], "codeword", low=1, high=8192),
            commitments=tuple(pairs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one carrier of a release is read."""

    carrier: str
    profile: str
    dimension: int  # coordinates of a direction
    layers: tuple[int, ...]  # weight carrier: sizes of the BatchNorm layers; else empty
    directions: bytes  # commitment to the seed of the directions
    reference: bytes  # digest of the reference's own readout; zeros in the paper profile
    probes: bytes  # digest of the probes; zeros for the weight carrier

    def as_json(self) -> dict[str, Any]:
        """For a record."""
        return {
            "carrier": self.carrier,
            "dimension": self.dimension,
            "directions": self.directions.hex(),
            "layers": list(self.layers),
            "probes": self.probes.hex(),
            "profile": self.profile,
            "reference": self.reference.hex(),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        keys = ("carrier", "dimension", "directions", "layers", "probes", "profile", "reference")
        body = _object(value, "a layout", keys)
        return cls(
            carrier=_one_of(body["carrier"], "carrier", CARRIERS),
            profile=_one_of(body["profile"], "profile", PROFILES),
            dimension=_whole(body["dimension"], "dimension", low=1, high=1 << 24),
            layers=tuple(
                _whole(each, "layers", low=1, high=1 << 24)
                for each in _list(body["layers"], "layers", limit=4096)
            ),
            directions=_digest(body["directions"], "directions"),
            reference=_digest(body["reference"], "reference"),
            probes=_digest(body["probes"], "probes"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A shared model whose copies are dispatched."""

    kind: ClassVar = "release"
    name: str
    model: bytes  # digest of the shared model's state
    layouts: tuple[Layout, ...]

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {
            "layouts": [each.as_json() for each in self.layouts],
            "model": self.model.hex(),
            "name": self.name,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = _object(value, "release", ("layouts", "model", "name"))
        layouts = tuple(
            Layout.from_json(each) for each in _list(body["layouts"], "layouts", limit=len(CARRIERS))
        )
        if not layouts or len({each.carrier for each in layouts}) != len(layouts):
            raise MalformedFile("release: must have one layout for each of its carriers, and at least one")
        return cls(name=_name(body["name"], "name"), model=_digest(body["model"], "model"), layouts=layouts)

    def layout(self, carrier: str) -> Layout | None:
        """How a carrier is read, if copies of this release carry it."""
        return next((each for each in self.layouts if each.carrier == carrier), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """A copy that was made for a station."""

    kind: ClassVar = "dispatch"
    station: str
    release: str
    copy: bytes  # digest of the copy's state

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {"copy": self.copy.hex(), "release": self.release, "station": self.station}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = _object(value, "dispatch", ("copy", "release", "station"))
        return cls(
            station=_name(body["station"], "station"),
            release=_name(body["release"], "release"),
            copy=_digest(body["copy"], "copy"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """A station that gets no further copies."""

    kind: ClassVar = "revocation"
    station: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {"reason": self.reason, "station": self.station}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = _object(value, "revocation", ("reason", "station"))
        return cls(station=_name(body["station"], "station"), reason=_name(body["reason"], "reason"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One way in which a suspect will be read, and what it may spend of the investigation's budget."""

    alignment: str  # identity: as it is
    carriers: tuple[str, ...]
    share: Fraction

    def as_json(self) -> dict[str, Any]:
        """For a record."""
        return {
            "alignment": self.alignment,
            "carriers": list(self.carriers),
            "share": fraction_text(self.share),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        body = _object(value, "a look", ("alignment", "carriers", "share"))
        alignment = _one_of(body["alignment"], "alignment", tuple(ALIGNMENTS))
        carriers = _carriers(body["carriers"], "a look", ALIGNMENTS[alignment])
        share = read_fraction(body["share"], what="share")
        if not 0 < share <= 1:
            raise MalformedFile("share: must lie above 0 and at most at 1")
        return cls(alignment=alignment, carriers=carriers, share=share)


def planned(carriers: Sequence[str], aligned: Sequence[tuple[str, str]] = ()) -> tuple[Look, ...]:
    """The fixed plan: the suspect as it is on `carriers`, then each (alignment, carrier) by itself.

    Reading it as it is may spend half of the budget and all alignments, in equal parts, the other half; what
    is alone may spend all.
    """
    first = Fraction(1, 2) if aligned else Fraction(1)
    rest = (first if carriers else Fraction(1)) / max(len(aligned), 1)
    looks = [Look(alignment=IDENTITY, carriers=tuple(carriers), share=first)] if carriers else []
    looks += [Look(alignment=name, carriers=(carrier,), share=rest) for name, carrier in aligned]
    return tuple(looks)


def _carriers(value: object, what: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(_one_of(each, "carrier", allowed) for each in _list(value, what, limit=len(CARRIERS)))
    if not found or len(set(found)) != len(found):
        raise MalformedFile(f"{what}: must have carriers, each once")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """Looks that are about to be taken. They are on record, and paid for, before anything is scored."""

    kind: ClassVar = "investigation"
    suspect: bytes  # digest of its state, or of its scores where it was only queried
    release: str
    carriers: tuple[str, ...]
    rule: str
    budget: Fraction  # spent on it; 0: uncertified, it may give leads only
    recipients: int  # N, the stations enrolled: all are scored, revoked ones too
    looks: tuple[Look, ...]  # in this order, until one certifies; their shares add up to at most 1

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {
            "budget": fraction_text(self.budget),
            "carriers": list(self.carriers),
            "looks": [each.as_json() for each in self.looks],
            "recipients": self.recipients,
            "release": self.release,
            "rule": self.rule,
            "suspect": self.suspect.hex(),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        keys = ("budget", "carriers", "looks", "recipients", "release", "rule", "suspect")
        body = _object(value, "investigation", keys)
        carriers = _carriers(body["carriers"], "investigation", CARRIERS)
        budget = read_fraction(body["budget"], what="budget")
        if not 0 <= budget < 1:
            raise MalformedFile("investigation: must have a budget in [0, 1)")
        looks = tuple(Look.from_json(each) for each in _list(body["looks"], "looks", limit=LOOKS_LIMIT))
        _check_looks(looks, carriers)
        return cls(
            suspect=_digest(body["suspect"], "suspect"),
            release=_name(body["release"], "release"),
            carriers=carriers,
            rule=_one_of(body["rule"], "rule", RULES),
            budget=budget,
            recipients=_whole(body["recipients"], "recipients"),
            looks=looks,
        )


def _check_looks(looks: tuple[Look, ...], carriers: tuple[str, ...]) -> None:
    """Looks spend no more than there is, and are at the carriers that are on record."""
    if not looks or sum((each.share for each in looks), Fraction(0)) > 1:
        raise MalformedFile("investigation: must have looks whose shares add up to at most 1")
    if {name for each in looks for name in each.carriers} != set(carriers):
        raise MalformedFile("investigation: its looks must be at its carriers, and at all of them")
    if len({(each.alignment, each.carriers) for each in looks}) != len(looks):
        raise MalformedFile("investigation: must have each look once")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an investigation ended."""

    kind: ClassVar = "verdict"
    investigation: int  # its place in the log
    verdict: str
    named: tuple[str, ...]  # stations
    findings: bytes  # digest of the findings in the evidence file

    def as_json(self) -> dict[str, Any]:
        """The body of the record."""
        return {
            "findings": self.findings.hex(),
            "investigation": self.investigation,
            "named": list(self.named),
            "verdict": self.verdict,
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made."""
        keys = ("findings", "investigation", "named", "verdict")
        body = _object(value, "verdict", keys)
        return cls(
            investigation=_whole(body["investigation"], "investigation"),
            verdict=_name(body["verdict"], "verdict"),
            named=tuple(_name(each, "named") for each in _list(body["named"], "named", limit=4096)),
            findings=_digest(body["findings"], "findings"),
        )


Record = Setup | Enrolment | Release | Dispatch | Revocation | Investigation | Verdict
KINDS: Final[dict[str, type[Record]]] = {
    each.kind: each for each in (Setup, Enrolment, Release, Dispatch, Revocation, Investigation, Verdict)
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
        value = _object(from_json(data, what="a registry entry"), "an entry", ("at", "body", "kind", "v"))
        if value["v"] != VERSION or type(value["v"]) is not int:
            raise MalformedFile(f"a registry entry of version {shown(str(value['v']))}, this is {VERSION}")
        kind = _one_of(value["kind"], "kind", tuple(KINDS))
        return cls(at=_moment(value["at"]), record=KINDS[kind].from_json(value["body"]))


def _moment(value: object) -> str:
    if isinstance(value, str):
        try:
            found = datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            found = None
        if found is not None and found.strftime("%Y-%m-%dT%H:%M:%SZ") == value:
            return value
    raise MalformedFile("at: must be a UTC time such as 2026-01-31T12:00:00Z")
