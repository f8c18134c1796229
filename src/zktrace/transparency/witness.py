"""A witness: it keeps the last checkpoint that it saw of each log, and signs the next one if that extends it.

    witness.keys          its private keys, one a line (mode 0600)
    logs/NAME.vkey        the keys of a log that it watches, one a line; NAME is SHA-256 of the origin
    heads/NAME            the last checkpoint that it cosigned, with the log's signature and its own
    disputes/NAME-...     requests that the log signed and that do not go with that: proof against the log

Who asks does not matter: what counts is the log's own signature. A checkpoint is on disk, durable, before its
cosignature leaves. One process at a time has the folder; threads of it take turns.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, Self

from zktrace.errors import InputError, InvalidProof, MalformedFile, Refused
from zktrace.primitives import merkle
from zktrace.primitives.files import claimed, read_bounded, write_atomic
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import KEY_LIMIT, Kind, Signer, Verifier
from zktrace.transparency.note import NOTE_LIMIT, Note, Signature, encoded
from zktrace.transparency.request import SIZE_TYPE, AddCheckpoint, Answer
from zktrace.transparency.trust import LOG_KINDS, WITNESS_KINDS, read_verifiers

LOGS_LIMIT: Final = 1 << 12
DISPUTES_LIMIT: Final = 8  # requests of each log that are kept: one liar fills no disk, and hides no other
_KEYS_LIMIT: Final = 16  # of a witness, or of a log
_EMPTY: Final = merkle.root([])

Clock = Callable[[], int]


def _now() -> int:
    return int(time.time())


class Witness:
    """The folder of a witness."""

    def __init__(self, root: Path, signers: tuple[Signer, ...], *, clock: Clock = _now) -> None:
        self.root = root
        self.signers = signers
        self._clock = clock
        self._lock = Lock()

    @classmethod
    def create(cls, root: Path, signers: tuple[Signer, ...]) -> Self:
        """A new witness in a new or empty folder."""
        if not 1 <= len(signers) <= _KEYS_LIMIT or any(each.kind not in WITNESS_KINDS for each in signers):
            raise InputError(f"a witness has 1..{_KEYS_LIMIT} keys that cosign")
        with claimed(root, busy="another process has it", mode=0o700):
            if any(root.iterdir()):
                raise Refused(f"{root}: is not empty; a witness gets a folder of its own")
            for folder in ("logs", "heads", "disputes"):
                (root / folder).mkdir(mode=0o700)
            lines = "".join(f"{each.to_text()}\n" for each in signers)
            write_atomic(root / "witness.keys", encoded(lines), secret=True)
        return cls(root, signers)

    @classmethod
    def open(cls, root: Path, *, clock: Clock = _now) -> Self:
        """The witness in a folder, or Refused."""
        path = root / "witness.keys"
        if not path.is_file():
            raise Refused(f"{root}: is no witness (zktrace witness new makes one)")
        if path.stat().st_mode & 0o077:
            raise Refused(f"{path}: others can read it (chmod 600 it, and consider who has)")
        lines = _lines(path)
        return cls(root, tuple(Signer.from_text(each) for each in lines), clock=clock)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Sole use of the folder for this process."""
        with claimed(self.root, busy="another process is using this witness", mode=0o700):
            yield

    def watch(self, keys: tuple[Verifier, ...]) -> str:
        """Watch a log from now on, or with other keys than before; its origin."""
        origins = {each.name for each in keys}
        if len(origins) != 1 or len(keys) > _KEYS_LIMIT or any(each.kind not in LOG_KINDS for each in keys):
            raise InputError(f"a log is watched by 1..{_KEYS_LIMIT} keys that sign for one origin")
        path = self._file("logs", keys[0].name, ".vkey")
        if not path.exists() and sum(1 for _ in path.parent.iterdir()) >= LOGS_LIMIT:
            raise Refused(f"a witness watches at most {LOGS_LIMIT} logs")
        write_atomic(path, encoded("".join(f"{each.to_text()}\n" for each in keys)), replace=True)
        return keys[0].name

    def watched(self) -> tuple[str, ...]:
        """The origins of the logs that it watches."""
        files = (self.root / "logs").glob("[!.]*.vkey")
        return tuple(sorted(read_verifiers(_lines(each))[0].name for each in files))

    def last(self, origin: str) -> LogCheckpoint | None:
        """What it cosigned last of a log, if it did."""
        path = self._file("heads", origin)
        if not path.exists():
            return None
        return LogCheckpoint.from_text(Note.from_bytes(read_bounded(path, limit=NOTE_LIMIT)).text)

    def answer(self, body: bytes) -> Answer:
        """What `add-checkpoint` answers. Whatever a request says, it is an answer and not an exception."""
        try:
            request = AddCheckpoint.from_bytes(body)
            note = Note.from_bytes(request.checkpoint)
            checkpoint = LogCheckpoint.from_text(note.text)
        except InputError as error:
            return Answer(status=400, body=f"{error}\n")
        with self._lock:
            return self._answer(request, note, checkpoint)

    def _answer(self, request: AddCheckpoint, note: Note, new: LogCheckpoint) -> Answer:
        keys = self._keys(new.origin)
        if keys is None:
            return Answer(status=404, body="this log is not watched here\n")
        signed = _signed(note, keys)
        if not signed:
            return Answer(status=403, body="no key of this log signed it\n")
        known = self.last(new.origin) or LogCheckpoint(origin=new.origin, size=0, root=_EMPTY)
        refusal = self._refusal(request, known, new)
        own = Note(text=note.text, signatures=signed)
        return refusal or Answer(status=200, body=self._cosign(new.origin, own))

    def _refusal(self, request: AddCheckpoint, known: LogCheckpoint, new: LogCheckpoint) -> Answer | None:
        """Why a checkpoint that the log signed is not cosigned, if it is not."""
        if request.old > new.size:
            return Answer(status=400, body="the old size is larger than the new one\n")
        forked = new.size == known.size and new.root != known.root and bool(new.size)
        if forked:  # no race can make this: the log signed two heads of one size
            self._dispute(request, new)
        if forked or request.old != known.size:
            return Answer(status=409, body=f"{known.size}\n", kind=SIZE_TYPE)
        if not merkle.extends(known.size, known.root, new.size, new.root, request.path):
            self._dispute(request, new)
            return Answer(status=422, body="the consistency proof does not hold\n")
        return None

    def _cosign(self, origin: str, note: Note) -> str:
        """Signature lines; what they are about is on disk before."""
        at = self._clock()
        made = tuple(each.sign(note.text, at=at) for each in self.signers)
        write_atomic(self._file("heads", origin), note.signed(*made).to_bytes(), replace=True)
        return "".join(each.to_line() for each in made)

    def _keys(self, origin: str) -> tuple[Verifier, ...] | None:
        path = self._file("logs", origin, ".vkey")
        return read_verifiers(_lines(path)) if path.exists() else None

    def _dispute(self, request: AddCheckpoint, new: LogCheckpoint) -> None:
        """Keep what the log signed and should not have: each head once."""
        head = hashlib.sha256(encoded(new.to_text())).hexdigest()
        path, others = (self._file("disputes", new.origin, f"-{ending}") for ending in (head[:16], "*"))
        if not path.exists() and sum(1 for _ in path.parent.glob(others.name)) < DISPUTES_LIMIT:
            write_atomic(path, request.to_bytes())

    def disputes(self) -> tuple[Path, ...]:
        """Requests that a log signed and that do not go with what it signed before."""
        return tuple(sorted((self.root / "disputes").glob("[!.]*")))

    def _file(self, folder: str, origin: str, ending: str = "") -> Path:
        return self.root / folder / f"{hashlib.sha256(encoded(origin)).hexdigest()}{ending}"


def _signed(note: Note, keys: tuple[Verifier, ...]) -> tuple[Signature, ...]:
    """A signature of each key that signed; one that names a key and does not hold counts for nothing."""
    return tuple(each for key in keys for each in _first_that_holds(note, key))


def _first_that_holds(note: Note, key: Verifier) -> tuple[Signature, ...]:
    for each in note.signatures:
        if key.made(each):
            try:
                key.verify(note.text, each)
            except (InvalidProof, MalformedFile):
                continue
            return (each,)
    return ()


def _lines(path: Path) -> list[str]:
    """The lines of a file of keys."""
    try:
        lines = read_bounded(path, limit=_KEYS_LIMIT * (KEY_LIMIT + 1)).decode().split("\n")
    except UnicodeDecodeError:
        raise MalformedFile(f"{path}: not text") from None
    found = [each for each in lines if each]
    if not found:
        raise MalformedFile(f"{path}: has no key")
    return found


def make_signers(name: str, kinds: tuple[Kind, ...]) -> tuple[Signer, ...]:
    """New keys of one name."""
    return tuple(Signer.generate(name, kind) for kind in kinds)
