"""The rules of a registry: a fold over its entries that accepts each or says why not. Knows no database.

    setup          is the first entry and the only one of its kind
    reservation    promises the places that come next
    enrolment      a new name that looks like no other, a new credential and its codeword, the next row, whose
                   seed was promised
    release        a new name that looks like no other, the next number, whose seed was promised; carriers
                   that were set up; the root of the log just before it
    dispatch       to an enrolled station that is not revoked, of a known release
    revocation     of an enrolled station, once
    investigation  of a known release, carriers it has, all stations enrolled so far, a budget that is left
                   (0: unpaid, leads only; after one of these no further one is paid for)
    verdict        on an investigation without one; names stations it scored; certified only if paid for

Times are what the operator's clock said; the order is that of the log.
"""

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zktrace.credentials.keys import PublicKey
from zktrace.derivation.promises import Claim, Promise
from zktrace.errors import Error, Refused
from zktrace.primitives import merkle
from zktrace.primitives.text import shown
from zktrace.registry.records import (
    PLACE,
    RELEASE,
    DispatchRecord,
    EnrolmentRecord,
    Entry,
    InvestigationRecord,
    Record,
    ReleaseRecord,
    ReservationRecord,
    RevocationRecord,
    SetupRecord,
    VerdictRecord,
    offer_digest,
)

CERTIFIED: Final = ("certified-attribute", "certified-tamper")
VERDICTS: Final = (*CERTIFIED, "uncertified-lead", "no-certified-evidence")
BUDGET_BITS: Final = 4096  # of the denominator of all that was spent: sums of hostile fractions stay small

_ALIKE: Final = str.maketrans("01i-.", "oll__")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """An enrolled station as the log knows it."""

    enrolment: EnrolmentRecord
    index: int  # of the enrolment in the log
    at: str  # when it enrolled
    revoked: str | None = None  # when, if it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Seeds that an entry promised: what a station asks for a place of, and a release is made from."""

    promise: Promise
    index: int  # of the entry in the log
    digest: bytes  # of its record and, if that is a reservation, of the setup

    def has(self, place: int) -> bool:
        """Whether the seed of this place is among them."""
        return self.promise.first <= place < self.promise.first + self.promise.count


def promised(record: SetupRecord | ReservationRecord, kind: str, carriers: tuple[str, ...]) -> Promise:
    """The seed tree of a record."""
    if isinstance(record, SetupRecord):
        first, tree = 0, record.places if kind == PLACE else record.releases
    else:
        first, tree = record.first, record.seeds
    return Promise(kind=kind, first=first, count=tree.count, root=tree.root, carriers=carriers)


def check_name(name: str, what: str) -> str:
    """A name that can also be a file's: Refused otherwise. Stations and releases have such names."""
    if not _FILE_NAME.fullmatch(name):
        raise Refused(
            f"{shown(name)} is no {what} name: up to 64 letters, digits, '.', '_', '-', and no '.' first"
        )
    return name


def look_alike(name: str) -> str:
    """What names have in common that a reader takes for one: two stations or releases may not share it.

    Small letters for capitals, o for 0, l for 1 and i, _ for - and ., m for rn, w for vv.
    """
    return name.casefold().translate(_ALIKE).replace("rn", "m").replace("vv", "w")


def _check_new(name: str, taken: dict[str, str], there: str) -> None:
    """Refused if the name, or one that looks like it, is taken (`taken`: by what they look like)."""
    other = taken.get(look_alike(name))
    if other is not None:
        alike = "" if other == name else f", and {name} looks like it"
        raise Refused(f"{there.format(other)} already{alike}")


class Ledger:
    """The state of a registry after some entries. `apply` raises Refused and then has changed nothing."""

    def __init__(self) -> None:
        self.size = 0  # entries applied
        self.first: SetupRecord | None = None
        self.stations: dict[str, Enrolled] = {}
        self.by_row: list[str] = []  # names, in the order of their rows
        self.releases: dict[str, tuple[int, ReleaseRecord]] = {}
        self.dispatches: list[tuple[int, DispatchRecord]] = []
        self.investigations: dict[int, InvestigationRecord] = {}
        self.unpaid: list[int] = []  # investigations without a budget
        self.verdicts: dict[int, tuple[int, VerdictRecord]] = {}  # by investigation: (index, verdict)
        self.spent = Fraction(0)
        self.offers: dict[str, list[Offer]] = {PLACE: [], RELEASE: []}
        self.claims: list[Claim] = []  # by row: what each station added to it
        self.frontier: merkle.Frontier = ()  # of the log
        self._credentials: dict[bytes, str] = {}
        self._station_looks: dict[str, str] = {}  # what an enrolled name looks like -> the name
        self._release_looks: dict[str, str] = {}

    @property
    def setup(self) -> SetupRecord:
        """The setup; Refused while there is none."""
        if self.first is None:
            raise Refused("the registry is empty: it has no setup")
        return self.first

    @property
    def remaining(self) -> Fraction:
        """What is left of the false-accusation budget."""
        return self.setup.budget - self.spent

    def station(self, name: str) -> Enrolled:
        """The station called `name`, or Refused."""
        try:
            return self.stations[name]
        except KeyError:
            raise Refused(f"no station {shown(name)} is enrolled") from None

    def release(self, name: str) -> ReleaseRecord:
        """The release called `name`, or Refused."""
        try:
            return self.releases[name][1]
        except KeyError:
            raise Refused(f"there is no release {shown(name)}") from None

    def offer(self, kind: str, place: int) -> Offer:
        """Who promised the seed of a place, or Refused."""
        for each in self.offers[kind]:
            if each.has(place):
                return each
        what = "stations" if kind == PLACE else "releases"
        raise Refused(
            f"seeds were promised for {place} {what}, and all are taken (zktrace reserve adds more)"
        )

    @property
    def root(self) -> bytes:
        """The root over all entries so far."""
        return merkle.frontier_root(self.frontier)

    def copies(self) -> dict[str, int]:
        """How many dispatches to each station are on record."""
        return dict(Counter(each.station for _, each in self.dispatches))

    def copy(self) -> "Ledger":
        """A ledger of its own with the same state."""
        twin = Ledger()
        for name, value in vars(self).items():
            setattr(twin, name, value.copy() if isinstance(value, dict | list) else value)
        twin.offers = {kind: list(each) for kind, each in self.offers.items()}
        return twin

    def apply(self, entry: Entry) -> None:
        """Take the next entry, or refuse it."""
        record = entry.record
        if (self.first is None) != isinstance(record, SetupRecord):
            raise Refused(
                "the first entry of a registry must be its setup, and no other one may be"
                if self.first is None
                else "a registry has one setup, and it has it already"
            )
        self._take(record, entry.at)
        self.frontier = merkle.extended(self.frontier, merkle.leaf_hash(entry.to_bytes()))
        self.size += 1

    def _take(self, record: Record, at: str) -> None:
        match record:
            case SetupRecord():
                self.first = record
                for kind in self.offers:
                    self._promise(record, kind)
            case ReservationRecord():
                self._reserve(record)
            case EnrolmentRecord():
                self._enrol(record, at)
            case ReleaseRecord():
                self._release(record)
            case DispatchRecord():
                self._dispatch(record)
            case RevocationRecord():
                self._revoke(record, at)
            case InvestigationRecord():
                self._investigate(record)
            case VerdictRecord():
                self._conclude(record)

    def _promise(self, record: SetupRecord | ReservationRecord, kind: str) -> None:
        promise = promised(record, kind, tuple(each.carrier for each in self.setup.carriers))
        digest = offer_digest(self.setup, record)
        self.offers[kind].append(Offer(promise=promise, index=self.size, digest=digest))

    def _reserve(self, record: ReservationRecord) -> None:
        last = self.offers[record.of][-1].promise
        if record.first != last.first + last.count:
            raise Refused(f"the next {record.of} to promise is {last.first + last.count}, not {record.first}")
        self._promise(record, record.of)

    def _enrol(self, record: EnrolmentRecord, at: str) -> None:
        check_name(record.station, "station")
        _check_new(record.station, self._station_looks, "a station {} is enrolled")
        if record.row != len(self.by_row):
            raise Refused(f"the next row is {len(self.by_row)}, not {record.row}")
        self.offer(PLACE, record.row)
        holder = self._credentials.get(record.public_key)
        if holder is not None:
            raise Refused(f"the credential of {record.station} is enrolled already, for {holder}")
        try:
            codeword = PublicKey.from_bytes(record.public_key).codeword(self.setup.identity_bits)
        except Error as error:
            raise Refused(f"{record.station}: {error}") from None
        if codeword != record.codeword:
            raise Refused(f"the codeword of {record.station} is not that of its public key")
        self.stations[record.station] = Enrolled(enrolment=record, index=self.size, at=at)
        self.by_row.append(record.station)
        self.claims.append(claim_of(record))
        self._credentials[record.public_key] = record.station
        self._station_looks[look_alike(record.station)] = record.station

    def _release(self, record: ReleaseRecord) -> None:
        check_name(record.name, "release")
        _check_new(record.name, self._release_looks, "a release {} exists")
        if record.number != len(self.releases):
            raise Refused(f"the next release is number {len(self.releases)}, not {record.number}")
        self.offer(RELEASE, record.number)
        if record.root != self.root:
            raise Refused("the log has grown since the release was begun: make it again")
        for layout in record.layouts:
            if self.setup.code(layout.carrier) is None:
                raise Refused(f"the carrier {layout.carrier} was not set up in this registry")
        self.releases[record.name] = (self.size, record)
        self._release_looks[look_alike(record.name)] = record.name

    def _dispatch(self, record: DispatchRecord) -> None:
        if self.station(record.station).revoked is not None:
            raise Refused(f"the station {record.station} is revoked: it gets no further copies")
        self.release(record.release)
        self.dispatches.append((self.size, record))

    def _revoke(self, record: RevocationRecord, at: str) -> None:
        station = self.station(record.station)
        if station.revoked is not None:
            raise Refused(f"the station {record.station} is revoked already")
        self.stations[record.station] = Enrolled(
            enrolment=station.enrolment, index=station.index, at=station.at, revoked=at
        )

    def _investigate(self, record: InvestigationRecord) -> None:
        release = self.release(record.release)
        for carrier in record.carriers:
            if release.layout(carrier) is None:
                raise Refused(f"copies of {release.name} do not carry {carrier}")
        if record.recipients != len(self.by_row):
            raise Refused(
                f"{len(self.by_row)} stations are enrolled, not {record.recipients}: all are scored"
            )
        if record.budget and self.unpaid:
            raise Refused(
                f"entry {self.unpaid[0]} looked without a budget: whoever looks first and pays for what will "
                "hit is bound by no budget, so nothing can be certified any more under this setup"
            )
        if record.budget > self.remaining:
            raise Refused(
                f"the investigation asks for a budget of {record.budget}, {self.remaining} is left "
                f"of {self.setup.budget}"
            )
        spent = self.spent + record.budget
        if spent.denominator.bit_length() > BUDGET_BITS:
            raise Refused("the budget is too fine a fraction beside those spent before: round it")
        self.investigations[self.size] = record
        if not record.budget:
            self.unpaid.append(self.size)
        self.spent = spent

    def _conclude(self, record: VerdictRecord) -> None:
        case = self.investigations.get(record.investigation)
        if case is None:
            raise Refused(f"entry {record.investigation} is no investigation")
        if record.investigation in self.verdicts:
            raise Refused(f"the investigation of entry {record.investigation} has its verdict already")
        if record.verdict not in VERDICTS:
            raise Refused(f"{shown(record.verdict)} is no verdict")
        certified = record.verdict in CERTIFIED
        if certified and case.budget == 0:
            raise Refused("an investigation without a budget ends in no certified verdict")
        if certified and not record.named:
            raise Refused("a certified verdict names somebody")
        if record.verdict == VERDICTS[-1] and record.named:
            raise Refused("a verdict without evidence names nobody")
        if len(set(record.named)) != len(record.named):
            raise Refused("a verdict names a station once")
        for name in record.named:
            if self.station(name).enrolment.row >= case.recipients:
                raise Refused(f"the station {name} was enrolled after the investigation began")
        self.verdicts[record.investigation] = (self.size, record)


def claim_of(enrolment: EnrolmentRecord) -> Claim:
    """What a station added to its rows."""
    return Claim(nonce=enrolment.nonce, public=enrolment.public_key)
