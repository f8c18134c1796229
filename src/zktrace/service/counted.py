"""What is made of the log as it is, once for each head: most of those who ask come between two entries."""

from collections.abc import Callable
from typing import Generic, TypeVar

from zktrace.registry.ledger import Ledger

T = TypeVar("T")


class Counted(Generic[T]):
    """The last thing that was made; it is everybody's, and not to be changed."""

    def __init__(self, make: Callable[[Ledger], T]) -> None:
        self._make = make
        self._last: tuple[bytes, T] | None = None

    def of(self, ledger: Ledger) -> T:
        """Of this log. Two who ask at once may both make it: the outcome is the same."""
        root, last = ledger.root, self._last
        if last is None or last[0] != root:
            last = self._last = root, self._make(ledger)
        return last[1]
