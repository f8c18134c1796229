"""What every request passes first: its size, and how often its sender asks; and headers on every answer."""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import IPv6Network, ip_address
from threading import Lock
from typing import Any, Final

from zktrace.errors import Denied, LimitExceeded
from zktrace.service.problems import TOO_OFTEN

BODY_LIMIT: Final = 1 << 16  # bytes, where nothing larger is expected
SENDERS: Final = 10_000  # that are remembered
# kind of a request -> how many a minute of one sender: what costs much, and what could be guessed at
RATES: Final = {"login": 20, "challenges": 30, "enter": 30, "judge": 20, "export": 20, "": 1200}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # by "no-referrer" our own forms would come from nowhere
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
UNSAFE: Final = ("POST", "PUT", "PATCH", "DELETE")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def kind_of(method: str, path: str) -> str:
    """What a request counts as, if it is of a kind: the page to sign in asks what the API does."""
    if path == "/api/v1/log/export":
        return "export"
    parts = path.removeprefix("/api/v1").split("/")
    kind = parts[1] if method in UNSAFE and parts[1:] else ""
    return "login" if kind == "sign-in" else kind


def sender_of(scope: Scope) -> str:
    """Whom a request counts for: an IPv4 address, or the /64 of an IPv6 one, which one house has whole."""
    address = str((scope.get("client") or ("local", 0))[0])
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found) >> 64 << 64, 64)))


class Rates:
    """How many requests a sender has left: a bucket that fills evenly."""

    def __init__(
        self, rates: dict[str, int] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rates = RATES if rates is None else rates
        self._clock = clock
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, sender: str, what: str) -> None:
        """Denied if there were too many."""
        kind = what if what in self._rates else ""
        rate, now = self._rates[kind], self._clock()
        with self._lock:
            left, at = self._left.pop((sender, kind), (float(rate), now))
            left = _filled(rate, left, now - at)
            self._left[sender, kind] = (max(left - 1, 0.0), now)
            if len(self._left) > SENDERS:
                self._make_room(now)
        if left < 1:
            raise Denied(f"more than {rate} such requests a minute: wait a little", status=TOO_OFTEN)

    def _make_room(self, now: float) -> None:
        """Forget whose bucket is full again, of whom nothing is known; the oldest only if that is too little.

        A tenth of the room is made at once: not every request of a flood has to look through all of it.
        """
        for key, (left, at) in list(self._left.items()):
            rate = self._rates[key[1]]
            if _filled(rate, left, now - at) >= rate:
                del self._left[key]
        while len(self._left) > SENDERS - SENDERS // 10:
            self._left.popitem(last=False)


def _filled(rate: int, left: float, seconds: float) -> float:
    return min(rate, left + seconds * rate / 60)


def check_size(headers: dict[str, str], limit: int) -> None:
    """LimitExceeded for a body that says that it is too large."""
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise Denied("the length of the body is not a number", status=400)
    if len(length) > 18 or int(length) > limit:
        raise LimitExceeded(f"a body of {length[:30]} bytes, the limit is {limit}")


def headers_of(*, secure: bool) -> dict[str, str]:
    """What every answer says to browsers."""
    return HEADERS | ({"strict-transport-security": "max-age=31536000"} if secure else {})


def dressed(send: Send, *, secure: bool) -> Send:
    """The same answer with the headers that every one has, unless it has its own."""

    async def give(message: Message) -> None:
        if message["type"] == "http.response.start":
            found = list(message.get("headers", ()))
            known = {name.lower() for name, _ in found}
            found += [
                (name.encode(), value.encode())
                for name, value in headers_of(secure=secure).items()
                if name.encode() not in known
            ]
            message = {**message, "headers": found}
        await send(message)

    return give
