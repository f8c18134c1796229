"""What a ledger remembers, in columns: one item a row, and rows are only ever added.

So the state after some entries is the columns and how many rows of each table it has (`Counts`); it stays
what it is while the columns grow. Records are made when somebody asks for them. A column is a list of texts
or of bytes, or an array of numbers, and its name begins with that of its table.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.promises import NONCE_BYTES, Claim
from zktrace.errors import MalformedFile
from zktrace.primitives import merkle
from zktrace.primitives.commitment import COMMITMENT_BYTES
from zktrace.registry.records import EnrolmentRecord, Entry

if TYPE_CHECKING:
    Numbers = array[int]
else:
    Numbers = array
Counts = dict[str, int]  # table -> its rows

_AT: Final = len("2026-01-31T12:00:00Z")
_NONCE: Final = _AT + NONCE_BYTES
_REQUEST: Final = _NONCE + COMMITMENT_BYTES
_KEY: Final = _REQUEST + 2  # after its length

K = TypeVar("K")
T = TypeVar("T")


def numbers() -> Numbers:
    """An empty column of numbers below 2^64."""
    return array("Q")


@dataclass(eq=False)
class Columns:
    """The tables. A station's number is its row; other tables are in the order of the log."""

    station_names: list[str] = field(default_factory=list)
    station_places: Numbers = field(default_factory=numbers)  # of enrolments in the log
    station_packed: list[bytes] = field(default_factory=list)  # what else an enrolment says
    release_names: list[str] = field(default_factory=list)
    release_places: Numbers = field(default_factory=numbers)
    dispatch_places: Numbers = field(default_factory=numbers)
    dispatch_stations: Numbers = field(default_factory=numbers)  # rows
    dispatch_releases: Numbers = field(default_factory=numbers)  # numbers
    dispatch_firsts: Numbers = field(default_factory=numbers)  # 1: the station's first copy of it; else 0
    dispatch_copies: list[bytes] = field(default_factory=list)
    broadcast_places: Numbers = field(default_factory=numbers)
    broadcast_releases: Numbers = field(default_factory=numbers)  # numbers
    receipt_places: Numbers = field(default_factory=numbers)
    receipt_stations: Numbers = field(default_factory=numbers)  # rows
    receipt_releases: Numbers = field(default_factory=numbers)  # numbers
    revocation_stations: Numbers = field(default_factory=numbers)  # rows
    revocation_times: list[str] = field(default_factory=list)
    offer_places: Numbers = field(default_factory=numbers)  # of the setup and reservations
    case_places: Numbers = field(default_factory=numbers)  # of investigations
    unpaid_places: Numbers = field(default_factory=numbers)  # of those without a budget
    verdict_cases: Numbers = field(default_factory=numbers)  # places of their investigations
    verdict_places: Numbers = field(default_factory=numbers)
    certified_places: Numbers = field(default_factory=numbers)  # of verdicts that are certified
    kept_places: Numbers = field(default_factory=numbers)  # of entries that are kept as they are: all but
    kept_entries: list[bytes] = field(default_factory=list)  # enrolments, dispatches and revocations
    tree: merkle.Tree = field(default_factory=merkle.Tree)  # over all entries

    def __post_init__(self) -> None:
        self.rows = _numbered(self.station_names)
        self.release_numbers = _numbered(self.release_names)
        self.revocations = _numbered(self.revocation_stations)  # row -> which revocation
        self.cases = _numbered(self.case_places)  # place -> which investigation
        self.verdicts = _numbered(self.verdict_cases)  # place of an investigation -> which verdict
        self._read: dict[int, Entry] = {}  # kept entries that somebody asked for

    def counts(self) -> Counts:
        """How many rows each table has; MalformedFile if its columns disagree."""
        found: Counts = {}
        for name in COLUMNS:
            table = table_of(name)
            rows = len(getattr(self, name))
            if found.setdefault(table, rows) != rows:
                raise MalformedFile(f"columns of different lengths: {table}")
        return found

    def cut(self, counts: Counts, size: int) -> "Columns":
        """Columns of their own with the first rows of each table, of a log of `size` entries."""
        parts = {name: getattr(self, name)[: counts[table_of(name)]] for name in COLUMNS}
        return Columns(**parts, tree=merkle.Tree(self.tree.levels(size)))

    def keep(self, place: int, data: bytes) -> None:
        """Keep an entry as it is."""
        self.kept_places.append(place)
        self.kept_entries.append(data)

    def entry(self, place: int) -> Entry:
        """An entry that is kept."""
        found = self._read.get(place)
        if found is None:
            found = Entry.from_bytes(self.kept_entries[bisect_left(self.kept_places, place)])
            self._read[place] = found
        return found

    def add_station(self, place: int, at: str, record: EnrolmentRecord) -> None:
        """The next row."""
        key = record.public_key
        self.station_packed.append(
            b"".join(
                (at.encode(), record.nonce, record.request, len(key).to_bytes(2, "big"), key, record.codeword)
            )
        )
        self.station_places.append(place)
        self.station_names.append(record.station)
        self.rows[record.station] = record.row

    def enrolled_at(self, row: int) -> str:
        """When a station enrolled."""
        return self.station_packed[row][:_AT].decode()

    def enrolment(self, row: int) -> EnrolmentRecord:
        """What is on record of a station."""
        packed = self.station_packed[row]
        claim = self.claim(row)
        return EnrolmentRecord(
            station=self.station_names[row],
            row=row,
            public_key=claim.public,
            codeword=packed[_KEY + len(claim.public) :],
            nonce=claim.nonce,
            request=packed[_NONCE:_REQUEST],
        )

    def claim(self, row: int) -> Claim:
        """What a station added to its rows."""
        return Claim(self.station_packed[row][_AT:_NONCE], self.public_key(row))

    def public_key(self, row: int) -> bytes:
        """A station's public key."""
        packed = self.station_packed[row]
        return packed[_KEY : _KEY + (packed[_REQUEST] << 8 | packed[_REQUEST + 1])]

    def add_dispatch(self, place: int, station: int, release: int, copy: bytes, *, first: bool) -> None:
        """A copy that was given away."""
        self.dispatch_stations.append(station)
        self.dispatch_releases.append(release)
        self.dispatch_firsts.append(first)
        self.dispatch_copies.append(copy)
        self.dispatch_places.append(place)

    def selected(self, table: str, rows: int, *, station: str | None, release: str | None) -> Sequence[int]:
        """Which of the first `rows` dispatches or receipts are of this station and this release."""
        wanted = np.ones(rows, dtype=np.bool_)
        for name, key, known in (
            ("stations", station, self.rows),
            ("releases", release, self.release_numbers),
        ):
            if key is not None:
                column = np.array(getattr(self, f"{table}_{name}")[:rows], dtype=np.int64)
                wanted &= column == known.get(key, -1)
        found: list[int] = np.flatnonzero(wanted).tolist()
        return found

    def stations_of(self, table: str, rows: int, release: str, *, stations: int) -> NDArray[np.bool_]:
        """Which of the first `stations` stand in the first `rows` dispatches or receipts of a release."""
        number, found = self.release_numbers.get(release, -1), np.zeros(stations, dtype=np.bool_)
        releases = np.array(getattr(self, f"{table}_releases")[:rows], dtype=np.int64)
        found[np.array(getattr(self, f"{table}_stations")[:rows], dtype=np.int64)[releases == number]] = True
        return found

    def given(self, dispatches: int, releases: int) -> Iterator[tuple[int, int]]:
        """Of the first dispatches, by release: how many copies there are, and how many stations have one."""
        numbers = np.array(self.dispatch_releases[:dispatches], dtype=np.intp)
        firsts = np.array(self.dispatch_firsts[:dispatches], dtype=np.bool_)
        copies = np.bincount(numbers, minlength=releases).tolist()
        stations = np.bincount(numbers[firsts], minlength=releases).tolist()
        return zip(copies, stations, strict=True)

    def add_broadcast(self, place: int, release: int) -> None:
        """A shared model that was sent out."""
        self.broadcast_places.append(place)
        self.broadcast_releases.append(release)

    def add_receipt(self, place: int, station: int, release: int) -> None:
        """Copies that a station signed for."""
        self.receipt_places.append(place)
        self.receipt_stations.append(station)
        self.receipt_releases.append(release)

    def revoke(self, row: int, at: str) -> None:
        """A station that gets no more."""
        self.revocation_times.append(at)
        self.revocation_stations.append(row)
        self.revocations[row] = len(self.revocation_stations) - 1

    def add_release(self, place: int, name: str) -> None:
        """The next number."""
        self.release_places.append(place)
        self.release_names.append(name)
        self.release_numbers[name] = len(self.release_names) - 1

    def add_case(self, place: int, *, paid: bool) -> None:
        """An investigation."""
        self.case_places.append(place)
        self.cases[place] = len(self.case_places) - 1
        if not paid:
            self.unpaid_places.append(place)

    def add_verdict(self, place: int, case: int, *, certified: bool) -> None:
        """The verdict on the investigation at `case`."""
        if certified:
            self.certified_places.append(place)
        self.verdict_places.append(place)
        self.verdict_cases.append(case)
        self.verdicts[case] = len(self.verdict_cases) - 1


class Enrolled:
    """An enrolled station as the log knows it."""

    __slots__ = ("_columns", "_row", "revoked")

    def __init__(self, columns: Columns, row: int, revoked: str | None) -> None:
        self._columns, self._row = columns, row
        self.revoked = revoked  # when, if it was

    @property
    def enrolment(self) -> EnrolmentRecord:
        """What is on record of it."""
        return self._columns.enrolment(self._row)

    @property
    def index(self) -> int:
        """Of the enrolment in the log."""
        return self._columns.station_places[self._row]

    @property
    def at(self) -> str:
        """When it enrolled."""
        return self._columns.enrolled_at(self._row)


COLUMNS: Final = {each.name: each.type for each in fields(Columns) if each.name != "tree"}  # name -> its type


def table_of(column: str) -> str:
    """The table of a column."""
    return column.partition("_")[0]


def _numbered(keys: Iterable[K]) -> dict[K, int]:
    return {key: number for number, key in enumerate(keys)}


class RowView(Sequence[T]):
    """The first rows of a table, or these; each is made when it is asked for. Equal to what has the same."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, make: Callable[[int], T], rows: int | Sequence[int]) -> None:
        self._make, self._numbers = make, range(rows) if isinstance(rows, int) else rows

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        found = self._numbers[at]
        return self._make(found) if isinstance(found, int) else [self._make(each) for each in found]

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._numbers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(list(self))


class ByName(Mapping[K, T], Generic[K, T]):
    """The first rows of a table by their keys, each made when it is asked for."""

    def __init__(
        self, count: int, *, keys: Sequence[K], numbers: Mapping[K, int], make: Callable[[int], T]
    ) -> None:
        self._keys, self._numbers, self._make = RowView(keys.__getitem__, count), numbers, make

    def number(self, key: K) -> int | None:
        """Which row has this key, if one of these does."""
        found = self._numbers.get(key)
        return found if found is not None and found < len(self._keys) else None

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return self.number(key) is not None  # type: ignore[arg-type]

    def __getitem__(self, key: K) -> T:
        found = self.number(key)
        if found is None:
            raise KeyError(key)
        return self._make(found)

    def __repr__(self) -> str:
        return repr(dict(self))
