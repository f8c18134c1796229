"""What every store promises."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol


class Transaction(Protocol):
    """Sole access to the log, from the first read to the commit at the end of the block."""

    def read(self, start: int) -> list[bytes]:
        """The entries from place `start` on, those just appended included."""
        ...

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        ...

    def append(self, place: int, data: bytes) -> None:
        """Put an entry at the end, which must be `place`."""
        ...


class Store(Protocol):
    """An append-only list of byte strings.

    Transactions of any number of processes come one after the other; what a block appended is durable and
    visible when it has ended well, and has never been if it ended with an exception or a kill. Reads see
    whole transactions only. Everything that goes wrong is one of `zktrace.errors`.
    """

    def read(self, start: int = 0) -> list[bytes]:
        """The entries from place `start` on."""
        ...

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A block with sole access."""
        ...
