"""Whom one believes about a log: its own keys, witnesses, and how many of these must have signed.

A checkpoint that is opened under such a trust has been signed by one of the log's keys, where there are
any, and cosigned by enough witnesses. A witness is a name: one that signs with several keys is still one.
Signatures of keys that are not known say nothing and are passed over; one of a known key that does not hold
is an error, whatever else is in the note.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from zktrace.errors import InputError, InvalidLog, InvalidProof
from zktrace.primitives.text import listing, shown
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import Kind, Verifier
from zktrace.transparency.note import Note

KEYS_LIMIT: Final = 64  # of logs, and of witnesses
LOG_KINDS: Final = (Kind.NOTE, Kind.ML_DSA_COSIGNATURE)
WITNESS_KINDS: Final = (Kind.COSIGNATURE, Kind.ML_DSA_COSIGNATURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosigned:
    """A witness that signed, and when by its clock (seconds since 1970; 0 if it does not say)."""

    name: str
    at: int

    def __str__(self) -> str:
        """For a sentence."""
        return f"{shown(self.name)} ({moment(self.at)})" if self.at else shown(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedCheckpoint:
    """A checkpoint whose signatures were verified."""

    checkpoint: LogCheckpoint
    note: Note
    signed: tuple[str, ...]  # keys of the log that did
    witnesses: tuple[Cosigned, ...]  # in the order of the trust

    def __str__(self) -> str:
        """Whose it is, for a sentence."""
        who = listing([str(each) for each in self.witnesses]) or "no trusted witness"
        return f"a checkpoint of {shown(self.checkpoint.origin)} at {self.checkpoint.size}, cosigned by {who}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Keys, and how many witnesses are needed, whichever of its keys each of them signs with."""

    logs: tuple[Verifier, ...] = ()
    witnesses: tuple[Verifier, ...] = ()
    quorum: int = 0

    def __post_init__(self) -> None:
        for what, keys, kinds in (("log", self.logs, LOG_KINDS), ("witness", self.witnesses, WITNESS_KINDS)):
            if len(keys) > KEYS_LIMIT:
                raise InputError(f"at most {KEYS_LIMIT} keys of a {what} are taken")
            for key in keys:
                if key.kind not in kinds:
                    raise InputError(
                        f"{shown(key.name)}: its kind of key, {key.kind.value:#04x}, is no {what}'s"
                    )
        publics = [each.public for each in (*self.logs, *self.witnesses)]
        if len(set(publics)) != len(publics):
            raise InputError("a key is there twice: each counts once, whatever names it has")
        if not 0 <= self.quorum <= len(self.names):
            raise InputError(f"{self.quorum} of {len(self.names)} witnesses cannot be asked for")

    @property
    def names(self) -> tuple[str, ...]:
        """The witnesses, each once."""
        return tuple(dict.fromkeys(each.name for each in self.witnesses))

    @property
    def empty(self) -> bool:
        """Whether nothing would be asked of a checkpoint."""
        return not self.logs and not self.quorum

    def open(self, data: bytes) -> TrustedCheckpoint:
        """The checkpoint in a note; InvalidProof unless the log and enough witnesses signed it."""
        if self.empty:
            raise InputError("no key of a log and no witness is trusted: any checkpoint would do")
        note = Note.from_bytes(data)
        checkpoint = LogCheckpoint.from_text(note.text)
        signed = tuple(key.name for key in self.logs if _verified(note, key) is not None)
        if self.logs and checkpoint.origin not in signed:
            raise InvalidProof(
                check="checkpoint", reason=f"no trusted key of the log {shown(checkpoint.origin)} signed it"
            )
        times = [(key.name, _verified(note, key)) for key in self.witnesses]
        signed_at = {name: [at for who, at in times if who == name and at is not None] for name in self.names}
        witnesses = tuple(Cosigned(name=name, at=max(at)) for name, at in signed_at.items() if at)
        if len(witnesses) < self.quorum:
            raise InvalidProof(
                check="checkpoint",
                reason=f"{len(witnesses)} of the trusted witnesses cosigned it "
                f"({listing([each.name for each in witnesses]) or 'nobody'}), {self.quorum} are needed",
            )
        return TrustedCheckpoint(checkpoint=checkpoint, note=note, signed=signed, witnesses=witnesses)


def _verified(note: Note, key: Verifier) -> int | None:
    """When a key signed (0: it does not say), or None if it did not; InvalidProof for a bad signature."""
    times = [key.verify(note.text, each) or 0 for each in note.signatures if key.made(each)]
    return max(times) if times else None


def check_one_log(opened: Iterable[TrustedCheckpoint]) -> None:
    """InvalidLog if two checkpoints of one origin and size have different roots: the log shows two faces."""
    seen: dict[tuple[str, int], TrustedCheckpoint] = {}
    for each in opened:
        place = each.checkpoint.origin, each.checkpoint.size
        other = seen.setdefault(place, each)
        if other.checkpoint.root != each.checkpoint.root:
            raise InvalidLog(
                f"a fork: {other} has the root {other.checkpoint.root.hex()}, "
                f"{each} has {each.checkpoint.root.hex()}: the log shows two faces"
            )


def moment(at: int) -> str:
    """Seconds since 1970 for a person, whatever somebody's clock said."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{at} seconds after 1970"


def read_verifiers(lines: Iterable[str]) -> tuple[Verifier, ...]:
    """Keys as people write them, one each."""
    return tuple(Verifier.from_text(each.strip()) for each in lines)
