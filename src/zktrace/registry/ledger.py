"""The rules of a registry: a fold over its entries that accepts each or says why not. Knows no database.

    setup          is the first entry and the only one of its kind
    reservation    promises the places that come next
    enrolment      a new name that looks like no other, a new credential and its codeword, the next row, whose
                   seed was promised
    release        a new name that looks like no other, the next number, whose seed was promised; carriers
                   that were set up; the root of the log just before it
    dispatch       to an enrolled station that is not revoked, of a known release
    receipt        of a station for copies of a known release that were dispatched to it, or for rounds of it
                   that are on record; for none of them a second time
    revocation     of an enrolled station, once
    investigation  of a known release, carriers it has, all stations enrolled so far, a budget that is left
                   (0: unpaid, leads only; after one of these no further one is paid for)
    verdict        on an investigation without one; names stations it scored; certified only if paid for

Times are what the operator's clock said; the order is that of the log.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, Self

from zktrace.credentials.keys import PublicKey
from zktrace.derivation.promises import Claim
from zktrace.errors import Error, Refused
from zktrace.primitives.text import shown
from zktrace.registry.records import (
    PLACE,
    RELEASE,
    BroadcastRecord,
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
)
from zktrace.registry.signing import ReceiptRecord
from zktrace.registry.state import CERTIFIED, State

VERDICTS: Final = (*CERTIFIED, "uncertified-lead", "no-certified-evidence")
BUDGET_BITS: Final = 4096  # of the denominator of all that was spent: sums of hostile fractions stay small

_ALIKE: Final = str.maketrans("01i-.", "oll__")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", re.ASCII)


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


def _by_look(names: Sequence[str]) -> dict[str, str]:
    """Names by what they look like. They hold no line end, so all are looked at in one go."""
    return dict(zip(look_alike("\n".join(names)).split("\n"), names, strict=True)) if names else {}


def _check_new(name: str, taken: Mapping[str, str], there: str) -> None:
    """Refused if the name, or one that looks like it, is taken (`taken`: by what they look like)."""
    other = taken.get(look_alike(name))
    if other is not None:
        alike = "" if other == name else f", and {name} looks like it"
        raise Refused(f"{there.format(other)} already{alike}")


class _Taken:
    """What no further record may have, made when the first that wants it is checked."""

    def __init__(self, state: State) -> None:
        self._state = state

    @cached_property
    def stations(self) -> dict[str, str]:
        """What an enrolled name looks like -> the name."""
        return _by_look(list(self._state.by_row))

    @cached_property
    def releases(self) -> dict[str, str]:
        """The same of releases."""
        return _by_look(list(self._state.release_names))

    @cached_property
    def credentials(self) -> dict[bytes, str]:
        """Public key -> whose it is."""
        return dict(zip(self._state.public_keys, self._state.by_row, strict=True))

    @cached_property
    def handed(self) -> set[tuple[str, str, bytes]]:
        """Copies that were dispatched: to whom, of what, and their digests. This is what there must be."""
        return {(each.station, each.release, each.copy) for _, each in self._state.dispatches}

    @cached_property
    def signed(self) -> set[tuple[str, str, bytes | int]]:
        """What was signed for: by whom, of what; a dispatched copy, or a round."""
        return {part for _, each in self._state.receipts for part in signed_for(each)}

    def add(self, record: Record) -> None:
        """A record that the state is about to take."""
        if isinstance(record, DispatchRecord) and "handed" in self.__dict__:
            self.handed.add((record.station, record.release, record.copy))
        elif isinstance(record, ReceiptRecord):
            self.signed.update(signed_for(record))
        if isinstance(record, EnrolmentRecord):
            self.stations[look_alike(record.station)] = record.station
            self.credentials[record.public_key] = record.station
        elif isinstance(record, ReleaseRecord):
            self.releases[look_alike(record.name)] = record.name


class Ledger(State):
    """The state of a registry that keeps the rules. `apply` raises Refused and then has changed nothing."""

    @cached_property
    def _taken(self) -> _Taken:
        return _Taken(self)

    def copy(self) -> Self:
        """The same state, for ever."""
        twin = super().copy()
        twin.__dict__.pop("_taken", None)
        return twin

    def apply(self, entry: Entry) -> None:
        """Take the next entry, or refuse it."""
        self._apply(entry, entry.to_bytes())

    def fold(self, data: bytes) -> Entry:
        """The same from its bytes, and what they say; MalformedFile if they are no entry."""
        entry = Entry.from_bytes(data)
        self._apply(entry, data)
        return entry

    def _apply(self, entry: Entry, data: bytes) -> None:
        self.check(entry.record)
        self._taken.add(entry.record)
        self.take(entry, data)

    def check(self, record: Record) -> None:
        """Refused unless the record may come next."""
        if (self.first is None) != isinstance(record, SetupRecord):
            raise Refused(
                "the first entry of a registry must be its setup, and no other one may be"
                if self.first is None
                else "a registry has one setup, and it has it already"
            )
        match record:
            case ReservationRecord():
                self._check_reservation(record)
            case EnrolmentRecord():
                self._check_enrolment(record)
            case ReleaseRecord():
                self._check_release(record)
            case DispatchRecord():
                if self._revocation(self._row(record.station)) is not None:
                    raise Refused(f"the station {record.station} is revoked: it gets no further copies")
                self.release(record.release)
            case BroadcastRecord():
                self._check_broadcast(record)
            case ReceiptRecord():
                self._check_receipt(record)
            case RevocationRecord():
                if self._revocation(self._row(record.station)) is not None:
                    raise Refused(f"the station {record.station} is revoked already")
            case InvestigationRecord():
                self._check_investigation(record)
            case VerdictRecord():
                self._check_verdict(record)

    def _check_reservation(self, record: ReservationRecord) -> None:
        last = self.offers[record.of][-1].promise
        if record.first != last.first + last.count:
            raise Refused(f"the next {record.of} to promise is {last.first + last.count}, not {record.first}")

    def _check_enrolment(self, record: EnrolmentRecord) -> None:
        check_name(record.station, "station")
        _check_new(record.station, self._taken.stations, "a station {} is enrolled")
        if record.row != len(self.by_row):
            raise Refused(f"the next row is {len(self.by_row)}, not {record.row}")
        self.offer(PLACE, record.row)
        holder = self._taken.credentials.get(record.public_key)
        if holder is not None:
            raise Refused(f"the credential of {record.station} is enrolled already, for {holder}")
        try:
            codeword = PublicKey.from_bytes(record.public_key).codeword(self.setup.identity_bits)
        except Error as error:
            raise Refused(f"{record.station}: {error}") from None
        if codeword != record.codeword:
            raise Refused(f"the codeword of {record.station} is not that of its public key")

    def _check_release(self, record: ReleaseRecord) -> None:
        check_name(record.name, "release")
        _check_new(record.name, self._taken.releases, "a release {} exists")
        if record.number != len(self.release_names):
            raise Refused(f"the next release is number {len(self.release_names)}, not {record.number}")
        self.offer(RELEASE, record.number)
        if record.root != self.root:
            raise Refused("the log has grown since the release was begun: make it again")
        for layout in record.layouts:
            if self.setup.code(layout.carrier) is None:
                raise Refused(f"the carrier {layout.carrier} was not set up in this registry")

    def _check_broadcast(self, record: BroadcastRecord) -> None:
        if not any(each.frozen for each in self.release(record.release).layouts):
            raise Refused(f"the release {record.release} is not guarded: nothing of it is broadcast")
        if record.number != len(self.broadcasts(record.release)):
            raise Refused(
                f"the next broadcast of {record.release} is number {len(self.broadcasts(record.release))}, "
                f"not {record.number}"
            )
        if record.copies > len(self.by_row):
            raise Refused(f"{record.copies} copies, and {len(self.by_row)} stations are enrolled")

    def _check_receipt(self, record: ReceiptRecord) -> None:
        self._row(record.station)
        name, release = record.station, self.release(record.release).name
        rounds = len(self.broadcasts(release)) if record.rounds else 0
        for number in record.rounds:
            if number >= rounds:
                raise Refused(f"there is no broadcast {number} of {release}")
        for copy in () if record.rounds else record.copies:
            if (name, release, copy) not in self._taken.handed:
                raise Refused(f"no copy {copy.hex()[:12]}... of {release} was dispatched to {name}")
        for part in signed_for(record):
            if part in self._taken.signed:
                what = f"broadcast {part[2]!r}" if record.rounds else "this copy"
                raise Refused(f"{name} has signed for {what} of {release} already")

    def _check_investigation(self, record: InvestigationRecord) -> None:
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

    def _check_verdict(self, record: VerdictRecord) -> None:
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
            if self._row(name) >= case.recipients:
                raise Refused(f"the station {name} was enrolled after the investigation began")


def signed_for(record: ReceiptRecord) -> tuple[tuple[str, str, bytes | int], ...]:
    """Who signed for what, one by one."""
    parts: tuple[bytes | int, ...] = record.rounds or record.copies
    return tuple((record.station, record.release, each) for each in parts)


def claim_of(enrolment: EnrolmentRecord) -> Claim:
    """What a station added to its rows."""
    return Claim(nonce=enrolment.nonce, public=enrolment.public_key)
