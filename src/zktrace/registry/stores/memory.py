"""A log in memory, for tests and dry runs. Threads of one process may share it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock

from zktrace.errors import Refused


class MemoryStore:
    """Forgotten when the process ends."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._lock = RLock()

    def read(self, start: int = 0) -> list[bytes]:
        """The entries from place `start` on."""
        with self._lock:
            return self._entries[start:]

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        with self._lock:
            return _picked(self._entries, places)

    @contextmanager
    def transaction(self) -> Iterator["_MemoryTransaction"]:
        """A block with sole access."""
        with self._lock:
            change = _MemoryTransaction(self._entries)
            yield change
            self._entries.extend(change.added)


class _MemoryTransaction:
    """The log and what was appended to it in this block."""

    def __init__(self, entries: list[bytes]) -> None:
        self._entries = entries
        self.added: list[bytes] = []

    def read(self, start: int) -> list[bytes]:
        """The entries from place `start` on."""
        return [*self._entries, *self.added][start:]

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        return _picked(self.read(0), places)

    def append(self, place: int, data: bytes) -> None:
        """Put an entry at the end, which must be `place`."""
        end = len(self._entries) + len(self.added)
        if place != end:
            raise Refused(f"the log ends at {end}, nothing can be put at {place}")
        self.added.append(data)


def _picked(entries: list[bytes], places: Sequence[int]) -> list[bytes]:
    return [entries[place] for place in sorted(set(places)) if 0 <= place < len(entries)]
