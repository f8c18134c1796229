"""What a log says to a witness, and what a witness answers (c2sp.org/tlog-witness, `add-checkpoint`).

    old NUMBER                        entries of the checkpoint that the witness cosigned last
    BASE64                            the hashes of the consistency proof

    (the checkpoint, signed by the log)

The same bytes travel in a file, where a witness has no network.
"""

from dataclasses import dataclass
from typing import Final, Self

from zktrace.errors import LimitExceeded, MalformedFile
from zktrace.transparency.checkpoint import hash_text, read_hash, read_size
from zktrace.transparency.note import NOTE_LIMIT
from zktrace.transparency.proof import PATH_LIMIT

REQUEST_LIMIT: Final = NOTE_LIMIT + (1 << 12)
PATH: Final = "/add-checkpoint"
SIZE_TYPE: Final = "text/x.tlog.size"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCheckpoint:
    """A new checkpoint, and what shows that it extends an older one."""

    old: int
    path: tuple[bytes, ...]
    checkpoint: bytes  # the note

    def to_bytes(self) -> bytes:
        """The body of the request."""
        lines = [f"old {self.old}", *(hash_text(each) for each in self.path), ""]
        return "".join(f"{line}\n" for line in lines).encode() + self.checkpoint

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote, or MalformedFile. The checkpoint is not looked at."""
        if len(data) > REQUEST_LIMIT:
            raise LimitExceeded(f"a request of {len(data)} bytes, the limit is {REQUEST_LIMIT}")
        head, found, checkpoint = data.partition(b"\n\n")
        try:
            first, *lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise MalformedFile("a request: not ASCII before its checkpoint") from None
        if not found or not first.startswith("old ") or len(lines) > PATH_LIMIT:
            raise MalformedFile(
                f"a request: must have an old size, at most {PATH_LIMIT} hashes and a checkpoint"
            )
        old = read_size(first.removeprefix("old "), "a request: old")
        return cls(old=old, path=tuple(read_hash(each, "a request") for each in lines), checkpoint=checkpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a witness says to a request."""

    status: int  # of HTTP
    body: str
    kind: str = "text/plain; charset=utf-8"
