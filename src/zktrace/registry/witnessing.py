"""The log of a workspace as strangers see it: checkpoints that it signs, and witnesses that cosign them.

secrets/log.keys      the keys that sign for the log, one a line: all of one name, the log's origin
log/witnesses         the witnesses that are asked, a line each: its key, and its address if it has one
log/checkpoint        the last checkpoint that was signed, with the cosignatures that came

A log that signed a head never signs another that does not extend it, whatever database stands there now.
"""

import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zktrace.errors import CannotTell, InputError, InvalidLog, MalformedFile, Refused
from zktrace.primitives import merkle
from zktrace.primitives.files import claimed, read_bounded, write_atomic
from zktrace.primitives.text import shown
from zktrace.registry.log import Extension, Head
from zktrace.registry.workspace import Home
from zktrace.transparency.asking import Ask, Witnessed, ask, over_http, taken
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import KEY_LIMIT, Kind, Signer, Verifier
from zktrace.transparency.note import NOTE_LIMIT, Note
from zktrace.transparency.proof import LogProof
from zktrace.transparency.request import AddCheckpoint
from zktrace.transparency.trust import KEYS_LIMIT, LOG_KINDS, WITNESS_KINDS, TrustedCheckpoint, check_one_log

_URL_LIMIT: Final = 2000  # characters
_LIST_LIMIT: Final = KEYS_LIMIT * (KEY_LIMIT + _URL_LIMIT)

Clock = Callable[[], int]
Reach = Callable[[str], Ask]  # the address of a witness -> how it is asked


def _now() -> int:
    return int(time.time())


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWitness:
    """A witness that is asked for cosignatures."""

    key: Verifier
    url: str = ""  # none: it is asked by files

    def to_line(self) -> str:
        """As it stands in the list."""
        return f"{self.key.to_text()} {self.url}".strip()


class PublicLog:
    """What a workspace shows of its log."""

    def __init__(self, home: Home, *, clock: Clock = _now) -> None:
        self._home, self._clock = home, clock
        self._folder = home.root / "log"

    @property
    def keys_path(self) -> Path:
        """Where the keys that sign lie."""
        return self._home.root / "secrets" / "log.keys"

    def make_keys(self, origin: str, kinds: Sequence[Kind]) -> tuple[Verifier, ...]:
        """Keys that sign for the log from now on, under a name that is its own for ever."""
        if not kinds or len(set(kinds)) != len(kinds) or not set(kinds) <= set(LOG_KINDS):
            raise InputError("a log signs with one key or more, each of another kind")
        made = tuple(Signer.generate(origin, kind) for kind in kinds)
        lines = "".join(f"{each.to_text()}\n" for each in made)
        write_atomic(self.keys_path, lines.encode(), secret=True)
        return tuple(each.verifier for each in made)

    def signers(self) -> tuple[Signer, ...]:
        """The keys that sign; Refused if there are none."""
        path = self.keys_path
        if not path.is_file():
            raise Refused("the log has no key to sign checkpoints with (zktrace log key makes one)")
        data = read_bounded(path, limit=_LIST_LIMIT)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise Refused(f"{path}: others can read it (chmod 600 it, and consider who has)")
        found = tuple(Signer.from_text(each) for each in data.decode("utf-8", "replace").splitlines())
        if len({each.name for each in found}) != 1 or any(each.kind not in LOG_KINDS for each in found):
            raise MalformedFile(f"{path}: must be keys of one name that sign for a log")
        return found

    def witnesses(self) -> tuple[KnownWitness, ...]:
        """The witnesses that are asked."""
        path = self._folder / "witnesses"
        if not path.exists():
            return ()
        lines = read_bounded(path, limit=_LIST_LIMIT).decode("utf-8", "replace").splitlines()
        pairs = (line.partition(" ") for line in lines)
        return tuple(KnownWitness(key=Verifier.from_text(key), url=url) for key, _, url in pairs)

    def add_witness(self, key: Verifier, url: str = "") -> None:
        """Ask this witness too, or at another address than before."""
        if key.kind not in WITNESS_KINDS:
            raise InputError(f"{shown(key.name)}: keys of kind {key.kind.value:#04x} are no witness's")
        if url:
            over_http(url)  # InputError for what is no address
        if len(url) > _URL_LIMIT or not url.isprintable():
            raise InputError(f"{shown(url)}: not the address of a witness")
        with self._alone():
            others = [each for each in self.witnesses() if each.key.public != key.public]
            if len(others) >= KEYS_LIMIT:
                raise InputError(f"at most {KEYS_LIMIT} witnesses are asked")
            lines = [each.to_line() for each in (*others, KnownWitness(key=key, url=url))]
            self._write("witnesses", "".join(f"{line}\n" for line in lines).encode())

    def last(self) -> Note | None:
        """The last checkpoint that was signed, with its cosignatures."""
        path = self._folder / "checkpoint"
        return Note.from_bytes(read_bounded(path, limit=NOTE_LIMIT)) if path.exists() else None

    def sign(self) -> Note:
        """A checkpoint of the log as it is now; InvalidLog if it does not extend the last one."""
        with self._alone():
            return self._sign()

    def cosign(self, *, reach: Reach = over_http) -> tuple[Note, tuple[Witnessed, ...]]:
        """A checkpoint of the log as it is now, with the cosignatures of all witnesses that answer."""
        with self._alone():
            old = self.last()
            note = self._sign()
            found = [self._asked(note, old, each, reach) for each in self.witnesses()]
            return self._keep(note, found), tuple(found)

    def request(self, name: str, *, old: int | None = None) -> AddCheckpoint:
        """The same request in a file, for a witness without a network."""
        with self._alone():
            before = self.last()
            note, witness = self._sign(), self._keys_of(name)
            since = max(_cosigned(before, each.key) for each in witness) if old is None else old
            size = LogCheckpoint.from_text(note.text).size
            if not 0 <= since <= size:
                raise Refused(f"the log has {size} entries, it never had {since}")
            path = self._path(since, size) if 0 < since < size else ()
            return AddCheckpoint(old=since, path=tuple(path), checkpoint=note.to_bytes())

    def take(self, name: str, answer: str) -> tuple[Note, Witnessed]:
        """What a witness answered in a file, put under the last checkpoint if it is a cosignature of that."""
        with self._alone():
            note = self.last()
            if note is None:
                raise Refused("the log has signed no checkpoint yet (zktrace log checkpoint)")
            found = [taken(note, each.key, answer) for each in self._keys_of(name)]
            return self._keep(note, found), next((each for each in found if each.signature), found[0])

    def proof(self, index: int) -> LogProof:
        """An entry with its proof under the last checkpoint that was signed."""
        note = self.last()
        if note is None:
            raise Refused("the log has signed no checkpoint yet (zktrace log checkpoint)")
        size = LogCheckpoint.from_text(note.text).size
        if not 0 <= index < size:
            raise Refused(f"the last checkpoint has {size} entries, there is no entry {index} under it")
        registry = self._home.registry
        path = registry.inclusion(index, size).path
        entry = registry.entry(index).to_bytes()
        return LogProof(index=index, path=path, checkpoint=note.to_bytes(), extra=entry)

    def _sign(self) -> Note:
        """The last checkpoint, if nothing was added since; or a new one."""
        signers, at = self.signers(), self._clock()
        leaves, last = self._home.registry.leaves(), self.last()
        new = LogCheckpoint(origin=signers[0].name, size=len(leaves), root=merkle.root(leaves))
        if last is not None:
            _check_extends(leaves, LogCheckpoint.from_text(last.text), new)
            if last.text == new.to_text() and all(_made(last, each.verifier) for each in signers):
                return last
        note = Note(text=new.to_text(), signatures=tuple(each.sign(new.to_text(), at=at) for each in signers))
        self._write("checkpoint", note.to_bytes())
        return note

    def _asked(self, note: Note, old: Note | None, witness: KnownWitness, reach: Reach) -> Witnessed:
        if not witness.url:
            return Witnessed(name=witness.key.name, reason="it has no address: it is asked by files")
        size = LogCheckpoint.from_text(note.text).size
        known = _cosigned(old, witness.key)
        return ask(
            note, witness.key, path=lambda since: self._path(since, size), by=reach(witness.url), old=known
        )

    def _keep(self, note: Note, found: Sequence[Witnessed]) -> Note:
        whole = note.signed(*(each.signature for each in found if each.signature is not None))
        self._write("checkpoint", whole.to_bytes())
        return whole

    def _path(self, old: int, size: int) -> list[bytes]:
        return merkle.consistency_proof(self._home.registry.leaves(size), old)

    def _keys_of(self, name: str) -> list[KnownWitness]:
        """A witness by its name: as many as it has keys."""
        found = [each for each in self.witnesses() if each.key.name == name]
        if not found:
            raise Refused(f"no witness {shown(name)} is known (zktrace log witness adds one)")
        return found

    def _write(self, name: str, data: bytes) -> None:
        write_atomic(self._folder / name, data, secret=True, replace=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with claimed(self._folder, busy="a checkpoint is just being signed; try again", mode=0o700):
            yield


def head_of(checkpoint: LogCheckpoint) -> Head:
    """A checkpoint's size and root, as the head that other rooms know."""
    return Head(size=checkpoint.size, root=checkpoint.root)


def _made(note: Note, key: Verifier) -> bool:
    return any(key.made(each) for each in note.signatures)


def _cosigned(note: Note | None, key: Verifier) -> int:
    """The size up to which a witness is known to have cosigned; 0 if nothing is known."""
    return LogCheckpoint.from_text(note.text).size if note is not None and _made(note, key) else 0


def _check_extends(leaves: merkle.Hashes, old: LogCheckpoint, new: LogCheckpoint) -> None:
    """InvalidLog if the log would show two faces: after an old backup was put in its place, for one."""
    if old.origin != new.origin:
        raise InvalidLog(
            f"the last checkpoint is of {shown(old.origin)}, the keys are of {shown(new.origin)}"
        )
    if old.size > new.size or merkle.root(leaves[: old.size]) != old.root:
        raise InvalidLog(
            f"the log of {new.size} entries does not extend the checkpoint of {old.size} that it signed: "
            "another one would be a fork"
        )


def check_same_log(
    one: TrustedCheckpoint, other: TrustedCheckpoint, proof: Extension | None
) -> tuple[TrustedCheckpoint, TrustedCheckpoint]:
    """The older and the newer of two checkpoints of one log.

    InvalidLog if they are of two, which is proof against whoever signed both; CannotTell if nothing shows it.
    """
    if one.checkpoint.origin != other.checkpoint.origin:
        raise CannotTell("the checkpoints are of logs with different names")
    check_one_log((one, other))
    old, new = sorted((one, other), key=lambda each: each.checkpoint.size)
    if old.checkpoint.size < new.checkpoint.size:
        if proof is None:
            raise CannotTell(
                f"nothing shows that {new.checkpoint.size} entries extend {old.checkpoint.size}: give a "
                f"consistency proof (zktrace log prove --since {head_of(old.checkpoint).to_text()})"
            )
        proof.verify(head_of(old.checkpoint), head_of(new.checkpoint))
    return old, new
