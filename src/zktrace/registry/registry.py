"""A registry: the rules of the ledger over whatever store keeps the entries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from threading import RLock

from zktrace.errors import Error, InputError, InvalidLog, Refused
from zktrace.primitives import merkle
from zktrace.primitives.text import shown
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Extension, Head, Inclusion, ProvenEntry
from zktrace.registry.records import Entry, Record
from zktrace.registry.stores.contract import Store, Transaction

Clock = Callable[[], datetime]
Source = Record | Callable[[Ledger], Record]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class _View:
    """The part of a log that has been read: entries, leaf hashes, and the ledger they fold to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.leaves: list[bytes] = []
        self.ledger = Ledger()

    def take(self, data: bytes) -> None:
        """The next entry of the store; InvalidLog if it should not be there."""
        place = len(self.leaves)
        try:
            entry = Entry.from_bytes(data)
            self.ledger.apply(entry)
        except Error as error:
            raise InvalidLog(f"entry {place}: {error}") from error
        self.entries.append(entry)
        self.leaves.append(merkle.leaf_hash(data))

    def snapshot(self) -> "Snapshot":
        """As it is now."""
        return Snapshot(entries=tuple(self.entries), leaves=tuple(self.leaves), ledger=self.ledger.copy())


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """A log at one moment: its ledger, its head, and proofs under it."""

    ledger: Ledger
    entries: Sequence[Entry]
    leaves: merkle.Hashes

    @cached_property
    def head(self) -> Head:
        """The head over all entries."""
        return Head.of_leaves(self.leaves)

    def entry(self, index: int) -> Entry:
        """One entry, or Refused."""
        _within(index, len(self.entries))
        return self.entries[index]

    def inclusion(self, index: int) -> tuple[bytes, ...]:
        """The path that shows that entry `index` is under the head."""
        _within(index, len(self.leaves))
        return tuple(merkle.inclusion_proof(self.leaves, index))

    def consistency(self, old: int) -> tuple[bytes, ...]:
        """The path that shows that the log extends itself as it was with `old` entries."""
        return tuple(merkle.consistency_proof(self.leaves, old))


class Registry:
    """Reads and extends one log. Safe to share between threads; processes open their own."""

    def __init__(self, store: Store, *, clock: Clock = _utc_now) -> None:
        self._store = store
        self._clock = clock
        self._lock = RLock()
        self._view = _View()

    def add(self, source: Source) -> int:
        """Append a record, or the one that `source` makes of the ledger as it is under the lock.

        One transaction: the record is checked against everything before it, and is on record, durably, when
        its index is returned. A callable must not keep or change the ledger. If a rule or the callable
        raises, nothing was added; if a database is lost at the very end, the log has to be asked.
        """
        with self._lock:
            try:
                with self._store.transaction() as change:
                    view = self._fresh(change)
                    record = source(view.ledger) if callable(source) else source
                    data = _encoded(record, self._clock())
                    index = len(view.leaves)
                    self._take_new(view, data)
                    change.append(index, data)
            except BaseException:
                self._view = _View()  # it may be ahead of the store
                raise
            return index

    def ledger(self) -> Ledger:
        """The state after all entries: a copy of the caller's own."""
        with self._lock:
            return self._read().ledger.copy()

    def snapshot(self) -> "Snapshot":
        """The log as it is now: one read of the database."""
        with self._lock:
            return self._read().snapshot()

    def known(self) -> "Snapshot":
        """The log as it was last read or extended here. The database is asked only if it never was."""
        with self._lock:
            return (self._view if self._view.leaves else self._read()).snapshot()

    def entries(self) -> list[Entry]:
        """All entries, in order."""
        with self._lock:
            return list(self._read().entries)

    def entry(self, index: int) -> Entry:
        """One entry, or Refused."""
        entries = self.entries()
        _within(index, len(entries))
        return entries[index]

    def head(self) -> Head:
        """The head over all entries."""
        return Head.of_leaves(self._leaves())

    def inclusion(self, index: int, size: int | None = None) -> Inclusion:
        """Shows that entry `index` is in the log, or in the log when it had `size` entries."""
        leaves = self.leaves(size)
        _within(index, len(leaves))
        path = merkle.inclusion_proof(leaves, index)
        return Inclusion(index=index, size=len(leaves), path=tuple(path))

    def leaves(self, size: int | None = None) -> list[bytes]:
        """The leaf hashes of all entries, or of the first `size`."""
        leaves = self._leaves()
        if size is not None and not 0 <= size <= len(leaves):
            raise Refused(f"the log has {len(leaves)} entries, not {size}")
        return leaves[:size]

    def prove(self, index: int) -> ProvenEntry:
        """An entry and its inclusion under the present head."""
        with self._lock:
            view = self._read()
            _within(index, len(view.entries))
            path = tuple(merkle.inclusion_proof(view.leaves, index))
            inclusion = Inclusion(index=index, size=len(view.leaves), path=path)
            return ProvenEntry(entry=view.entries[index], inclusion=inclusion)

    def consistency(self, old_size: int) -> list[bytes]:
        """Shows that the log extends itself as it was with `old_size` entries."""
        leaves = self._leaves()
        if not 0 <= old_size <= len(leaves):
            raise Refused(f"the log has {len(leaves)} entries, it never had {old_size}")
        return merkle.consistency_proof(leaves, old_size)

    def prove_extends(self, old: Head) -> Extension:
        """Shows that the log under the present head extends an older one; InvalidLog if it does not."""
        leaves = self._leaves()
        check_extends(leaves, old)
        path = merkle.consistency_proof(leaves, old.size)
        return Extension(old=old.size, new=len(leaves), path=tuple(path))

    def verify(self, *, extends: Head | None = None) -> Head:
        """Read the whole log anew and check every entry and rule, and that it extends an older head."""
        return verified(self._store.read(), extends=extends)[1]

    def _leaves(self) -> list[bytes]:
        with self._lock:
            return list(self._read().leaves)

    def _read(self) -> _View:
        return self._fresh(self._store)

    def _fresh(self, source: Store | Transaction) -> _View:
        """The view brought up to the store: only what is new is read, if the old end is still there."""
        known = len(self._view.leaves)
        found = source.read(max(known - 1, 0))
        if known and (not found or merkle.leaf_hash(found[0]) != self._view.leaves[-1]):
            self._view, known = _View(), 0  # another log stands there now, a backup for one
            found = source.read(0)
        try:
            for data in found[1:] if known else found:
                self._view.take(data)
        except InvalidLog:
            self._view = _View()
            raise
        return self._view

    @staticmethod
    def _take_new(view: _View, data: bytes) -> None:
        try:
            view.take(data)
        except InvalidLog as error:  # it is not in the log and will not be
            raise error.__cause__ or error from None


def _encoded(record: Record, moment: datetime) -> bytes:
    at = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        return Entry(at=at, record=record).to_bytes()
    except ValueError as error:
        raise InputError(f"this cannot be put on record ({shown(str(error))})") from None


def _within(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise Refused(f"there is no entry {index} in a log of {size}")


def verified(lines: list[bytes], *, extends: Head | None = None) -> tuple[list[Entry], Head]:
    """Entries and head of a whole log from its bytes, if every rule holds and it extends an older head."""
    view = _View()
    for data in lines:
        view.take(data)
    if not view.entries:
        raise InvalidLog("the log is empty")
    if extends is not None:
        check_extends(view.leaves, extends)
    return view.entries, Head.of_leaves(view.leaves)


def check_extends(leaves: merkle.Hashes, old: Head) -> None:
    """InvalidLog unless the log begins with all entries of the older head."""
    if old.size > len(leaves):
        raise InvalidLog(f"the log has {len(leaves)} entries, the head is of {old.size}: entries are missing")
    if merkle.root(leaves[: old.size]) != old.root:
        raise InvalidLog(f"the first {old.size} entries of the log are not those of the head")
