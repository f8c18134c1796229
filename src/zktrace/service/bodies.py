"""Bodies on their way in: not larger than they may be, not slower, and few uploads at a time."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Final

from anyio import fail_after

from zktrace.errors import Denied, LimitExceeded
from zktrace.service.limits import Message, Receive, Send
from zktrace.service.problems import NOT_NOW, TOO_SLOW

IDLE: Final = 60.0  # seconds without a byte, after which nothing more is expected
GRACE: Final = 60.0  # seconds that every body may take
SLOWEST: Final = 8192  # bytes a second of the whole, after those: 64 kbit/s
# what is sent -> how many are on their way at a time: evidence of anybody, models of operators
PLACES: Final = {"evidence": 8, "model": 32}


class UploadPlaces:
    """How many uploads of a kind are on their way."""

    def __init__(self, most: Mapping[str, int] = PLACES) -> None:
        self._most, self._taken = most, Counter[str]()
        self._lock = Lock()

    @contextmanager
    def one(self, kind: str) -> Iterator[None]:
        """A place for the block; Denied if all are taken. What is of no kind needs none."""
        with self._lock:
            if self._taken[kind] >= self._most.get(kind, self._taken[kind] + 1):
                raise Denied("many files are on their way here: try again in a minute", status=NOT_NOW)
            self._taken[kind] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[kind] -= 1


class Pace:
    """How long the next piece of a body may take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()

    def left(self, size: int) -> float:
        """Seconds, if so many bytes have come."""
        until = self._began + GRACE + size / SLOWEST
        return max(min(IDLE, until - self._clock()), 0.0)


class Body:
    """The body of a request, while somebody reads it.

    It takes its place when the first byte is asked for, so after its sender is known, and gives it back when
    all has come. Once an answer has begun nobody reads it, and what still comes counts for nothing.
    """

    def __init__(
        self, receive: Receive, *, limit: int, held: ExitStack, places: UploadPlaces, kind: str
    ) -> None:
        self._receive, self._limit, self._held = receive, limit, held
        self._places, self._kind = places, kind
        self._pace: Pace | None = None
        self._size, self._over = 0, False

    async def take(self) -> Message:
        """The next piece; LimitExceeded if it is too much, Denied if it comes too slowly or too many do."""
        if self._over:
            return await self._receive()
        if self._pace is None:
            self._held.enter_context(self._places.one(self._kind))
            self._pace = Pace()
        try:
            with fail_after(self._pace.left(self._size)):
                message = await self._receive()
        except TimeoutError:
            raise Denied("the body came too slowly, or not to its end", status=TOO_SLOW) from None
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            raise LimitExceeded(f"a body of more than {self._limit} bytes")
        if not message.get("more_body", False):
            self._close()
        return message

    def answered_by(self, send: Send) -> Send:
        """The same answer; with its first message the body is over."""

        async def give(message: Message) -> None:
            self._close()
            await send(message)

        return give

    def _close(self) -> None:
        self._over = True
        self._held.close()
