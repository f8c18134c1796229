"""A registry: the rules of the ledger over whatever store keeps the entries."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import RLock

from zktrace.errors import Error, InputError, InvalidLog, Refused
from zktrace.primitives import merkle
from zktrace.registry import cache
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Extension, Head, Inclusion, ProvenEntry
from zktrace.registry.records import Entry, Record
from zktrace.registry.stores.contract import Store, Transaction

Clock = Callable[[], datetime]
Source = Record | Callable[[Ledger], Record]


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """A log at one moment: its ledger, and proofs under its head."""

    ledger: Ledger
    pick: Callable[[Ledger, Sequence[int]], list[bytes]]

    @property
    def head(self) -> Head:
        """The head over all entries."""
        return self.ledger.head

    def entries(self, places: Sequence[int]) -> list[Entry]:
        """Some entries, in one read of the database."""
        return [Entry.from_bytes(data) for data in self.lines(places)]

    def lines(self, places: Sequence[int]) -> list[bytes]:
        """Their bytes; InvalidLog if another log stands there by now."""
        return self.pick(self.ledger, places)

    def inclusion(self, index: int) -> tuple[bytes, ...]:
        """The path that shows that entry `index` is under the head."""
        return tuple(merkle.inclusion_proof(self.ledger.leaves, index))

    def consistency(self, old: int) -> tuple[bytes, ...]:
        """The path that shows that the log extends itself as it was with `old` entries."""
        return tuple(merkle.consistency_proof(self.ledger.leaves, old))


class _Added:
    """A record on its way into the log."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.index: int | None = None
        self.settled = False
        self._error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """It did not get there. The first reason counts."""
        self._error = self._error or error

    def result(self) -> int:
        """Its place in the log."""
        if self._error is not None:
            raise self._error
        if self.index is None:
            raise InvalidLog("an entry that has no place")
        return self.index


class Registry:
    """Reads and extends one log. Safe to share between threads; processes open their own.

    What was read is remembered, so only new entries are; with `cache`, a file, also by the next process.
    """

    def __init__(self, store: Store, *, clock: Clock = _utc_now, cache: Path | None = None) -> None:
        self._store = store
        self._clock = clock
        self._lock = RLock()
        self._waiting: deque[_Added] = deque()
        self._ledger: Ledger | None = None  # of the part of the log that has been read
        self._cache = cache
        self._cached = 0  # entries in the cache
        self._asks = count(1)  # numbers whoever asks for the state
        self._served = 0  # all up to this number asked before what is known was read

    def add(self, source: Source) -> int:
        """Append a record, or the one that `source` makes of the ledger as it is under the lock.

        One transaction: the record is checked against everything before it, and is on record, durably, when
        its index is returned. If a rule or the callable raises, nothing was added; if a database is lost at
        the very end, the log has to be asked.
        """
        added = _Added(source)
        self._waiting.append(added)
        with self._lock:  # whoever comes first adds what others of this process wait to add, too
            if not added.settled:
                self._add_waiting()
        return added.result()

    def _add_waiting(self) -> None:
        """One transaction for all that wait: a commit takes as long for many entries as for one."""
        mine = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            self._fresh(self._store)  # what other processes added is read before the lock they wait for
            with self._store.transaction() as change:
                ledger, self._ledger = self._fresh(change), None  # if it is not to be, it is read again
                for each in mine:
                    self._append(change, ledger, each)
        except BaseException as error:
            for each in mine:
                each.fail(error)
        else:
            self._ledger = ledger
            self._put_aside()
        finally:
            for each in mine:
                each.settled = True

    def _append(self, change: Transaction, ledger: Ledger, added: "_Added") -> None:
        """An entry at the end of ledger and store; what the rules have against it is for who asked for it."""
        try:
            record = added.source(ledger.copy()) if callable(added.source) else added.source
            data = _encoded(record, self._clock())
            ledger.check(Entry.from_bytes(data).record)
        except Exception as error:
            added.fail(error)
            return
        change.append(ledger.size, data)
        added.index = ledger.size
        fold(ledger, data)

    def ledger(self) -> Ledger:
        """The state after all entries. It stays as it is; taking it costs nothing but the new entries.

        Of many who ask at a time one reads, for all who asked before it began.
        """
        number = next(self._asks)
        with self._lock:
            known = self._ledger
            if known is None or self._served < number:
                latest = next(self._asks)
                known = self._fresh(self._store)
                self._served = latest
                self._put_aside()
            return known.copy()

    def snapshot(self) -> "Snapshot":
        """The log as it is now: one read of the database."""
        return Snapshot(ledger=self.ledger(), pick=self._pick)

    def known(self) -> "Snapshot":
        """The log as it was last read or extended here. The database is asked only if it never was."""
        with self._lock:
            known = None if self._ledger is None else self._ledger.copy()
        return self.snapshot() if known is None else Snapshot(ledger=known, pick=self._pick)

    def lines(self) -> list[bytes]:
        """The bytes of all entries, as the store has them now."""
        return self._store.read()

    def entries(self) -> list[Entry]:
        """All entries, in order; InvalidLog if one should not be there."""
        lines = self.lines()
        return verified(lines)[0] if lines else []

    def entry(self, index: int) -> Entry:
        """One entry, or Refused."""
        with self._lock:
            known = self._ledger.copy() if self._ledger and 0 <= index < self._ledger.size else None
        if known is not None:
            with suppress(InvalidLog):  # unless another log stands there now
                return self._entry(known, index)
        return self._entry(self.ledger(), index)

    def head(self) -> Head:
        """The head over all entries."""
        return self.ledger().head

    def inclusion(self, index: int, size: int | None = None) -> Inclusion:
        """Shows that entry `index` is in the log, or in the log when it had `size` entries."""
        leaves = self.leaves(size)
        path = merkle.inclusion_proof(leaves, index)
        return Inclusion(index=index, size=len(leaves), path=tuple(path))

    def leaves(self, size: int | None = None) -> merkle.Leaves:
        """The leaf hashes of all entries, or of the first `size`."""
        leaves = self.ledger().leaves
        if size is not None and not 0 <= size <= len(leaves):
            raise Refused(f"the log has {len(leaves)} entries, not {size}")
        return leaves[:size]

    def prove(self, index: int) -> ProvenEntry:
        """An entry and its inclusion under the present head."""
        ledger = self.ledger()
        path = tuple(merkle.inclusion_proof(ledger.leaves, index))
        inclusion = Inclusion(index=index, size=ledger.size, path=path)
        return ProvenEntry(entry=self._entry(ledger, index), inclusion=inclusion)

    def consistency(self, old_size: int) -> list[bytes]:
        """Shows that the log extends itself as it was with `old_size` entries."""
        return merkle.consistency_proof(self.ledger().leaves, old_size)

    def prove_extends(self, old: Head) -> Extension:
        """Shows that the log under the present head extends an older one; InvalidLog if it does not."""
        leaves = self.ledger().leaves
        check_extends(leaves, old)
        path = merkle.consistency_proof(leaves, old.size)
        return Extension(old=old.size, new=len(leaves), path=tuple(path))

    def verify(self, *, extends: Head | None = None) -> Head:
        """Read the whole log anew and check every entry and rule, and that it extends an older head."""
        return verified(self.lines(), extends=extends)[1]

    def _entry(self, ledger: Ledger, index: int) -> Entry:
        """An entry as the store has it, if it is still the one that the ledger was made of."""
        return Entry.from_bytes(self._pick(ledger, [index])[0])

    def _pick(self, ledger: Ledger, places: Sequence[int]) -> list[bytes]:
        """The bytes of some entries, in one read of the database."""
        for index in places:
            if not 0 <= index < ledger.size:
                raise Refused(f"there is no entry {index} in a log of {ledger.size}")
        order = sorted(set(places))
        lines = self._store.pick(order)
        if len(lines) != len(order):
            raise InvalidLog("entries that were there before are missing")
        found = dict(zip(order, lines, strict=True))
        for index, data in found.items():
            if merkle.leaf_hash(data) != ledger.leaves[index]:
                raise InvalidLog(f"entry {index} is not the one that was there before")
        return [found[index] for index in places]

    def _fresh(self, source: Store | Transaction) -> Ledger:
        """The ledger brought up to the store: only what is new is read, if the old end is still there."""
        if self._ledger is None:
            self._ledger = (self._cache and cache.load(self._cache, source.pick)) or Ledger()
            self._cached = self._ledger.size
        known = self._ledger.size
        found = source.read(max(known - 1, 0))
        if known and (not found or merkle.leaf_hash(found[0]) != self._ledger.leaves[-1]):
            self._ledger, self._cached, known = Ledger(), 0, 0  # another log stands there, a backup for one
            found = source.read(0)
        return self._fold(found[1:] if known else found)

    def _fold(self, lines: list[bytes]) -> Ledger:
        """The ledger with further entries of the store; InvalidLog at the first that should not be there."""
        ledger, self._ledger = self._ledger or Ledger(), None  # stopped in the middle, it is made again
        try:
            for data in lines:
                fold(ledger, data)
        except InvalidLog:
            self._ledger = ledger  # of all entries before
            raise
        self._ledger = ledger
        return ledger

    def _put_aside(self) -> None:
        """Keep what was read for the next process, if that is worth it."""
        if self._cache and self._ledger and cache.due(self._cached, self._ledger.size):
            cache.save(self._cache, self._ledger)
            self._cached = self._ledger.size


def fold(ledger: Ledger, data: bytes) -> Entry:
    """Take the next entry of a log; InvalidLog if it should not be there."""
    try:
        return ledger.fold(data)
    except Error as error:
        raise InvalidLog(f"entry {ledger.size}: {error}") from error


def _encoded(record: Record, moment: datetime) -> bytes:
    at = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        return Entry(at=at, record=record).to_bytes()
    except InputError as error:
        raise InputError(f"this cannot be put on record ({error})") from None


def verified(lines: list[bytes], *, extends: Head | None = None) -> tuple[list[Entry], Head]:
    """Entries and head of a whole log from its bytes, if every rule holds and it extends an older head."""
    ledger = Ledger()
    entries = [fold(ledger, data) for data in lines]
    if not entries:
        raise InvalidLog("the log is empty")
    if extends is not None:
        check_extends(ledger.leaves, extends)
    return entries, ledger.head


def check_extends(leaves: merkle.Hashes, old: Head) -> None:
    """InvalidLog unless the log begins with all entries of the older head."""
    if old.size > len(leaves):
        raise InvalidLog(f"the log has {len(leaves)} entries, the head is of {old.size}: entries are missing")
    if merkle.root(leaves[: old.size]) != old.root:
        raise InvalidLog(f"the first {old.size} entries of the log are not those of the head")
