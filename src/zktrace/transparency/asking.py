"""A log asks its witnesses for cosignatures (c2sp.org/tlog-witness), and takes those that hold.

A witness that does not answer, or answers nonsense, costs its cosignature and nothing else: what it sent is
bounded, and is believed only as far as its signature holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from zktrace.errors import InputError, InvalidLog, InvalidProof, MalformedFile
from zktrace.primitives.text import shown
from zktrace.transparency.checkpoint import LogCheckpoint, read_size
from zktrace.transparency.keys import Verifier
from zktrace.transparency.note import Note, Signature, read_signatures
from zktrace.transparency.request import PATH, AddCheckpoint, Answer

ANSWER_LIMIT: Final = 1 << 18  # bytes
PATIENCE: Final = 20.0  # seconds

Path = Callable[[int], Sequence[bytes]]  # an old size -> the consistency proof from it
Ask = Callable[[AddCheckpoint], Answer]  # hands a request to a witness


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """What came of asking one witness: its signature, or why there is none."""

    name: str
    signature: Signature | None = None
    at: int = 0  # when it signed, by its clock
    reason: str = ""
    forked: bool = False  # it has seen another log under this name


def ask(note: Note, key: Verifier, *, path: Path, by: Ask, old: int = 0) -> Witnessed:
    """One witness, told since which size the log grew; if it knows another, it is asked again from there."""
    checkpoint = LogCheckpoint.from_text(note.text)
    answer = _asked(note, checkpoint, path, by, min(old, checkpoint.size))
    if answer.status == 409:
        try:
            known = read_size(answer.body.removesuffix("\n"), "an answer")
        except MalformedFile:
            return Witnessed(name=key.name, reason="it answered 409 without the size that it knows")
        if known > checkpoint.size:
            reason = f"it has seen {known} entries already, this checkpoint has {checkpoint.size}"
            return Witnessed(name=key.name, reason=reason)
        answer = _asked(note, checkpoint, path, by, known)
        if answer.status == 409 and known == checkpoint.size:
            return Witnessed(
                name=key.name, reason=f"it cosigned another head of {known} entries", forked=True
            )
    if answer.status == 422:
        reason = "it has seen a log that this one does not extend"
        return Witnessed(name=key.name, reason=reason, forked=True)
    if answer.status != 200:
        said = {403: "it does not take the log's key", 404: "it does not watch this log"}.get(
            answer.status, ""
        )
        return Witnessed(name=key.name, reason=said or f"it answered {answer.status}")
    return taken(note, key, answer.body)


def _asked(note: Note, checkpoint: LogCheckpoint, path: Path, by: Ask, old: int) -> Answer:
    steps = tuple(path(old)) if 0 < old < checkpoint.size else ()
    return by(AddCheckpoint(old=old, path=steps, checkpoint=note.to_bytes()))


def taken(note: Note, key: Verifier, body: str) -> Witnessed:
    """A witness's answer: its cosignature, if there is one and it holds."""
    try:
        for each in read_signatures(body):
            if key.made(each):
                at = key.verify(note.text, each)
                return Witnessed(name=key.name, signature=each, at=at or 0)
    except (InvalidProof, MalformedFile) as error:
        return Witnessed(name=key.name, reason=f"its answer does not hold ({error})")
    return Witnessed(name=key.name, reason="its answer has no signature of the key that is known")


def over_http(url: str, *, patience: float = PATIENCE) -> Ask:
    """Asks a witness at its submission prefix."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == -1
        or parts.query
        or parts.fragment
    ):
        raise InputError(f"{shown(url)}: not the address of a witness (http://HOST:PORT or https://HOST)")
    host, secure = parts.hostname, parts.scheme == "https"

    def by(request: AddCheckpoint) -> Answer:
        kind = HTTPSConnection if secure else HTTPConnection
        connection = kind(host, port, timeout=patience)
        try:
            connection.request("POST", parts.path.rstrip("/") + PATH, body=request.to_bytes())
            response = connection.getresponse()
            body = response.read(ANSWER_LIMIT + 1)
            return Answer(status=response.status, body=body.decode() if len(body) <= ANSWER_LIMIT else "")
        except (OSError, HTTPException, UnicodeDecodeError) as error:
            return Answer(status=0, body=f"{type(error).__name__}")
        finally:
            connection.close()

    return by


def check_fork(found: Sequence[Witnessed]) -> None:
    """InvalidLog if a witness has seen another log under the same name."""
    for each in found:
        if each.forked:
            raise InvalidLog(f"a fork: {shown(each.name)} did not cosign, {each.reason}")
