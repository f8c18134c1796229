"""What is known after some entries of a registry, as attributes that are made when they are asked for.

Nothing is checked here: what may come next is said by `zktrace.registry.ledger`.
"""

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Final, Self, TypeVar

import numpy as np

from zktrace.derivation.promises import Claim
from zktrace.errors import InvalidLog, Refused
from zktrace.primitives import merkle
from zktrace.primitives.text import shown
from zktrace.registry.columns import ByName, Columns, Enrolled, RowView
from zktrace.registry.holding import Holding
from zktrace.registry.log import Head
from zktrace.registry.offers import Offer, promised
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
    offer_digest,
)
from zktrace.registry.signing import ReceiptRecord

CERTIFIED: Final = ("certified-attribute", "certified-tamper")
KINDS: Final = (PLACE, RELEASE)  # of promised seeds

R = TypeVar("R", bound=Record)


class State:
    """A registry after some entries.

    A copy costs nothing and stays as it is, whatever the original takes in. It may go its own way; then it
    gets columns of its own.
    """

    def __init__(self, columns: Columns | None = None, *, spent: Fraction = Fraction(0)) -> None:
        self._columns = Columns() if columns is None else columns
        self._own = True  # nobody else adds to the columns
        self._counts = self._columns.counts()
        self.size = len(self._columns.tree)  # entries
        self.spent = spent
        self.offers: Mapping[str, Sequence[Offer]] = dict.fromkeys(KINDS, ())
        for place in self._columns.offer_places:
            kind: type[SetupRecord | ReservationRecord] = ReservationRecord if place else SetupRecord
            self._promise(self._kept(place, kind), place)

    def copy(self) -> Self:
        """The same state, for ever."""
        twin = copy.copy(self)
        twin._own = False
        twin.__dict__.pop("_holders", None)
        return twin

    @property
    def columns(self) -> Columns:
        """What it remembers, in columns that nobody else adds to."""
        if not self._own:
            self._columns, self._own = self._columns.cut(self._counts, self.size), True
        return self._columns

    @property
    def first(self) -> SetupRecord | None:
        """The setup, if there is one."""
        return self._kept(0, SetupRecord) if self.size else None

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

    @property
    def stations(self) -> ByName[str, Enrolled]:
        """By name."""
        columns = self._columns
        return ByName(
            self._counts["station"], keys=columns.station_names, numbers=columns.rows, make=self._enrolled
        )

    @property
    def by_row(self) -> Sequence[str]:
        """Names of stations, in the order of their rows."""
        return RowView(self._columns.station_names.__getitem__, self._counts["station"])

    @property
    def claims(self) -> Sequence[Claim]:
        """By row: what each station added to it."""
        return RowView(self._columns.claim, self._counts["station"])

    @property
    def public_keys(self) -> Sequence[bytes]:
        """By row."""
        return RowView(self._columns.public_key, self._counts["station"])

    @property
    def revoked(self) -> int:
        """How many stations are revoked."""
        return self._counts["revocation"]

    @property
    def releases(self) -> dict[str, tuple[int, ReleaseRecord]]:
        """By name, in the order they were made: place and record."""
        return {name: self._release(name) for name in self.release_names}

    @property
    def release_names(self) -> Sequence[str]:
        """The releases, in the order they were made."""
        return RowView(self._columns.release_names.__getitem__, self._counts["release"])

    @property
    def dispatches(self) -> Sequence[tuple[int, DispatchRecord]]:
        """Places and records, in order."""
        return RowView(self._dispatch, self._counts["dispatch"])

    def dispatched(
        self, *, station: str | None = None, release: str | None = None
    ) -> Sequence[tuple[int, DispatchRecord]]:
        """Those to a station, or of a release: found by their columns, however many others there are."""
        return RowView(self._dispatch, self._selected("dispatch", station, release))

    def broadcasts(self, release: str) -> Sequence[tuple[int, BroadcastRecord]]:
        """Those of a release in their order: places and records."""
        places = self._columns.broadcast_places
        numbers = self._selected("broadcast", None, release)
        return RowView(lambda at: (places[at], self._kept(places[at], BroadcastRecord)), numbers)

    @property
    def receipts(self) -> Sequence[tuple[int, ReceiptRecord]]:
        """Places and records, in order."""
        return RowView(self._receipt, self._counts["receipt"])

    def received(
        self, *, station: str | None = None, release: str | None = None
    ) -> Sequence[tuple[int, ReceiptRecord]]:
        """Those of a station, or for copies of a release."""
        return RowView(self._receipt, self._selected("receipt", station, release))

    def holding(self, release: str) -> Holding:
        """Who has a copy of a release, and who signed for one."""
        rows, counts, columns = self._counts["station"], self._counts, self._columns
        revoked = np.zeros(rows, dtype=np.bool_)
        revoked[columns.revocation_stations[: counts["revocation"]]] = True
        held, receipts = (
            columns.stations_of(table, counts[table], release, stations=rows)
            for table in ("dispatch", "receipt")
        )
        return Holding(names=self.by_row, held=held, receipts=receipts, revoked=revoked)

    @property
    def investigations(self) -> Mapping[int, InvestigationRecord]:
        """By place."""
        columns, places = self._columns, self._columns.case_places
        return ByName(
            self._counts["case"],
            keys=places,
            numbers=columns.cases,
            make=lambda number: self._kept(places[number], InvestigationRecord),
        )

    @property
    def unpaid(self) -> Sequence[int]:
        """Places of investigations without a budget."""
        return RowView(self._columns.unpaid_places.__getitem__, self._counts["unpaid"])

    @property
    def verdicts(self) -> Mapping[int, tuple[int, VerdictRecord]]:
        """By place of the investigation: (place, verdict)."""
        columns = self._columns

        def make(number: int) -> tuple[int, VerdictRecord]:
            place = columns.verdict_places[number]
            return place, self._kept(place, VerdictRecord)

        numbers = columns.verdicts
        return ByName(self._counts["verdict"], keys=columns.verdict_cases, numbers=numbers, make=make)

    @property
    def certified(self) -> Sequence[int]:
        """Places of certified verdicts."""
        return RowView(self._columns.certified_places.__getitem__, self._counts["certified"])

    @property
    def leaves(self) -> merkle.Leaves:
        """The leaf hashes of all entries so far."""
        return self._columns.tree.leaves(self.size)

    @property
    def root(self) -> bytes:
        """The root over all entries so far."""
        return merkle.root(self.leaves)

    @property
    def head(self) -> Head:
        """Their head."""
        return Head(size=self.size, root=self.root)

    def station(self, name: str) -> Enrolled:
        """The station called `name`, or Refused."""
        return self._enrolled(self._row(name))

    def release(self, name: str) -> ReleaseRecord:
        """The release called `name`, or Refused."""
        return self._release(name)[1]

    def at(self, investigation: int) -> str:
        """When an investigation was put on record."""
        return self._columns.entry(investigation).at

    def offer(self, kind: str, place: int) -> Offer:
        """Who promised the seed of a place, or Refused."""
        for each in self.offers[kind]:
            if each.has(place):
                return each
        what = "stations" if kind == PLACE else "releases"
        raise Refused(
            f"seeds were promised for {place} {what}, and all are taken (zktrace reserve adds more)"
        )

    def copies(self) -> dict[str, int]:
        """How many dispatches to each station are on record."""
        names = self._columns.station_names
        rows = Counter(self._columns.dispatch_stations[: self._counts["dispatch"]])
        return {names[row]: count for row, count in rows.items()}

    def given(self) -> dict[str, tuple[int, int]]:
        """By release: how many copies of it are on record, and how many stations have one."""
        pairs = self._columns.given(self._counts["dispatch"], self._counts["release"])
        return dict(zip(self.release_names, pairs, strict=True))

    def take(self, entry: Entry, data: bytes) -> None:
        """The next entry and its bytes, whatever it says."""
        columns, place, record = self.columns, self.size, entry.record
        match record:
            case EnrolmentRecord():
                columns.add_station(place, entry.at, record)
            case DispatchRecord():
                pair = columns.rows[record.station], columns.release_numbers[record.release]
                columns.add_dispatch(place, *pair, record.copy, first=pair not in self._holders)
                self._holders.add(pair)
            case RevocationRecord():
                columns.revoke(columns.rows[record.station], entry.at)
            case _:
                columns.keep(place, data)
        match record:
            case SetupRecord() | ReservationRecord():
                columns.offer_places.append(place)
                self._promise(record, place)
            case ReleaseRecord():
                columns.add_release(place, record.name)
            case BroadcastRecord():
                columns.add_broadcast(place, columns.release_numbers[record.release])
            case ReceiptRecord():
                pair = columns.rows[record.station], columns.release_numbers[record.release]
                columns.add_receipt(place, *pair)
            case InvestigationRecord():
                columns.add_case(place, paid=bool(record.budget))
                self.spent += record.budget
            case VerdictRecord():
                columns.add_verdict(place, record.investigation, certified=record.verdict in CERTIFIED)
        columns.tree.append(merkle.leaf_hash(data))
        self._counts = columns.counts()
        self.size += 1

    def _selected(self, table: str, station: str | None, release: str | None) -> Sequence[int]:
        """Rows of dispatches or receipts that are of this station and this release."""
        return self._columns.selected(table, self._counts[table], station=station, release=release)

    def _dispatch(self, number: int) -> tuple[int, DispatchRecord]:
        columns = self._columns
        return columns.dispatch_places[number], DispatchRecord(
            station=columns.station_names[columns.dispatch_stations[number]],
            release=columns.release_names[columns.dispatch_releases[number]],
            copy=columns.dispatch_copies[number],
        )

    def _receipt(self, number: int) -> tuple[int, ReceiptRecord]:
        place = self._columns.receipt_places[number]
        return place, self._kept(place, ReceiptRecord)

    @cached_property
    def _holders(self) -> set[tuple[int, int]]:
        """Who has a copy of what: (row, number of the release). For `take`, which keeps it up."""
        end = self._counts["dispatch"]
        columns = self._columns
        return set(zip(columns.dispatch_stations[:end], columns.dispatch_releases[:end], strict=True))

    def _promise(self, record: SetupRecord | ReservationRecord, place: int) -> None:
        setup, kinds = (record, KINDS) if isinstance(record, SetupRecord) else (self.setup, (record.of,))
        carriers, digest = tuple(each.carrier for each in setup.carriers), offer_digest(setup, record)
        for kind in kinds:
            offer = Offer(promise=promised(record, kind, carriers), index=place, digest=digest)
            self.offers = {**self.offers, kind: (*self.offers[kind], offer)}

    def _kept(self, place: int, kind: type[R]) -> R:
        found = self._columns.entry(place).record
        if not isinstance(found, kind):
            raise InvalidLog(f"entry {place} is no {kind.kind}")
        return found

    def _row(self, name: str) -> int:
        """The row of a station, or Refused."""
        row = self.stations.number(name)
        if row is None:
            raise Refused(f"no station {shown(name)} is enrolled")
        return row

    def _release(self, name: str) -> tuple[int, ReleaseRecord]:
        """Place and record of a release, or Refused."""
        number = self._columns.release_numbers.get(name)
        if number is None or number >= self._counts["release"]:
            raise Refused(f"there is no release {shown(name)}")
        place = self._columns.release_places[number]
        return place, self._kept(place, ReleaseRecord)

    def _revocation(self, row: int) -> str | None:
        """When a station was revoked, if it was."""
        number = self._columns.revocations.get(row)
        if number is None or number >= self._counts["revocation"]:
            return None
        return self._columns.revocation_times[number]

    def _enrolled(self, row: int) -> Enrolled:
        return Enrolled(self._columns, row, self._revocation(row))
