"""What went wrong, as HTTP says it: a status and an `application/problem+json` (RFC 9457) for programs."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from zktrace.errors import (
    Denied,
    Error,
    EvidenceRejected,
    InputError,
    InvalidProof,
    LimitExceeded,
    MissingExtra,
    Refused,
    Rejected,
    Unavailable,
    WorkerDied,
)
from zktrace.primitives.text import one_line

NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})
NOT_SIGNED_IN: Final = 401
NOT_ALLOWED: Final = 403
NOT_THERE: Final = 404
TOO_SLOW: Final = 408
TOO_OFTEN: Final = 429
NOT_NOW: Final = 503
_MINUTE: Final = 60.0
_STATUS: Final[tuple[tuple[type[Error], int], ...]] = (  # the first that fits
    (LimitExceeded, 413),
    (Unavailable, 503),
    (Refused, 409),
    (InputError, 422),
    (Rejected, 422),
    (MissingExtra, 501),
    (WorkerDied, 503),
    (Error, 503),
)
TITLES: Final = {
    400: "Not a request that can be read",
    401: "Sign in first",
    403: "Not for you",
    404: "Not there",
    405: "Not a way to ask for this",
    408: "Too slow",
    409: "Refused",
    411: "Length unknown",
    413: "Too large",
    415: "Another kind of content is expected",
    416: "No such range",
    422: "Cannot be used",
    429: "Too often",
    500: "A fault of ours",
    501: "Not installed here",
    503: "Not now",
}


_TEXT: Final = {"type": "string"}
PROBLEM: Final[dict[str, Any]] = {  # for the document of the API
    "description": "A problem (RFC 9457); `error` is the class of it in the package's tree of errors.",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail", "error"],
                "properties": {
                    **dict.fromkeys(("type", "title", "detail", "error"), _TEXT),
                    "status": {"type": "integer"},
                },
            }
        }
    },
}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {"4XX": PROBLEM, "5XX": PROBLEM}


def not_there(what: str) -> Denied:
    """Nothing is found, or nothing that the visitor may know of: both look alike."""
    return Denied(what, status=NOT_THERE)


def status_of(error: Error) -> int:
    """HTTP's number for one of our errors."""
    if isinstance(error, Denied):
        return error.status
    return next(status for kind, status in _STATUS if isinstance(error, kind))


class Complaints:
    """What a database says of itself: in the log of the service once a minute, and not to visitors.

    It has addresses, paths and names of the operator's machines in it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next = clock, -math.inf

    def instead_of(self, error: Error, place: str) -> Error:
        """The same error without the database's words, if it has any."""
        said = str(error)
        if not said.startswith(f"{place}: "):
            return error
        if self._clock() >= self._next:
            self._next = self._clock() + _MINUTE
            logging.getLogger("uvicorn.error").warning("%s", said)
        away = isinstance(error, Unavailable)
        what = "cannot be had at the moment" if away else "takes this neither now nor later"
        return type(error)(f"the database {what}")


def problem(error: Error, *, places: Mapping[str, str] = NOWHERE) -> dict[str, object]:
    """An error as a JSON problem; `error` is its class, as `--json` says it on the command line.

    Names of `places` in its words are replaced by what they stand for.
    """
    status = status_of(error)

    def told(words: str) -> str:
        for place, name in places.items():
            words = words.replace(place, name)
        return one_line(words, limit=2000)

    facts: dict[str, object] = {
        "type": "about:blank",
        "title": TITLES.get(status, "Refused"),
        "status": status,
        "detail": told(str(error)),
        "error": type(error).__name__,
    }
    if isinstance(error, InvalidProof):
        facts |= {"check": error.check, "round": error.round}
    if isinstance(error, EvidenceRejected):
        facts |= {"step": error.step, "reason": told(error.reason)}
    return facts
