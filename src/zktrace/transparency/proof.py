"""Proofs that an entry is in a log, for offline use (c2sp.org/tlog-proof@v1): file name ending `.tlog-proof`.

    c2sp.org/tlog-proof@v1
    extra BASE64                      here: the entry itself, so that the file needs nothing beside it
    index NUMBER
    BASE64                            the hashes of the inclusion proof, from below

    (the checkpoint, with all its signatures)

The extra bytes are not signed. They are believed because the leaf made of them is under the checkpoint.
"""

from dataclasses import dataclass
from typing import Final, Self

from zktrace.errors import InvalidProof, LimitExceeded, MalformedFile
from zktrace.primitives import merkle
from zktrace.primitives.fields import packed
from zktrace.transparency.checkpoint import hash_text, read_hash, read_size
from zktrace.transparency.note import NOTE_LIMIT, Note
from zktrace.transparency.trust import Trust, TrustedCheckpoint

FORMAT: Final = "c2sp.org/tlog-proof@v1"
EXTRA_LIMIT: Final = 1 << 17  # bytes
PATH_LIMIT: Final = 63  # hashes
FILE_LIMIT: Final = NOTE_LIMIT + 2 * EXTRA_LIMIT
_EXTRA: Final = packed(0, EXTRA_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogProof:
    """That an entry stands at a place of a log under a checkpoint."""

    index: int
    path: tuple[bytes, ...]
    checkpoint: bytes  # the note, byte for byte
    extra: bytes | None = None

    def __post_init__(self) -> None:
        if len(self.path) > PATH_LIMIT or any(len(each) != merkle.HASH_BYTES for each in self.path):
            raise MalformedFile(f"a log proof: must have at most {PATH_LIMIT} hashes")
        if self.extra is not None and len(self.extra) > EXTRA_LIMIT:
            raise LimitExceeded(f"a log proof: {len(self.extra)} extra bytes, the limit is {EXTRA_LIMIT}")
        Note.from_bytes(self.checkpoint)

    def to_bytes(self) -> bytes:
        """The whole file."""
        extra = [] if self.extra is None else [f"extra {_EXTRA.write(self.extra)}"]
        lines = [FORMAT, *extra, f"index {self.index}", *(hash_text(each) for each in self.path), ""]
        return "".join(f"{line}\n" for line in lines).encode() + self.checkpoint

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote, or MalformedFile."""
        if len(data) > FILE_LIMIT:
            raise LimitExceeded(f"a log proof of {len(data)} bytes, the limit is {FILE_LIMIT}")
        head, found, checkpoint = data.partition(b"\n\n")
        try:
            first, *lines = head.decode("ascii").split("\n")
        except UnicodeDecodeError:
            raise MalformedFile("a log proof: not ASCII before its checkpoint") from None
        if first != FORMAT or not found:
            raise MalformedFile(f"a log proof: must begin with {FORMAT} and end in a checkpoint")
        extra = None
        if lines and lines[0].startswith("extra "):
            extra = _EXTRA.read(lines.pop(0).removeprefix("extra "), "a log proof: extra")
        if not lines or not lines[0].startswith("index ") or len(lines) > PATH_LIMIT + 1:
            raise MalformedFile(f"a log proof: must have an index and at most {PATH_LIMIT} hashes")
        index = read_size(lines.pop(0).removeprefix("index "), "a log proof: index")
        path = tuple(read_hash(line, "a log proof") for line in lines)
        return cls(index=index, path=path, checkpoint=checkpoint, extra=extra)

    def verify(self, trust: Trust, entry: bytes | None = None) -> TrustedCheckpoint:
        """The checkpoint, if it is to be trusted and the entry is under it; else InvalidProof.

        Without `entry` it is the extra bytes that are looked for.
        """
        data = self.extra if entry is None else entry
        if data is None:
            raise InvalidProof(
                check="log proof", reason="the file does not hold its entry, and none was given"
            )
        opened = trust.open(self.checkpoint)
        head = opened.checkpoint
        leaf = merkle.leaf_hash(data)
        if not merkle.included(leaf, self.index, head.size, self.path, head.root):
            raise InvalidProof(check="log proof", reason=f"entry {self.index} is not under the checkpoint")
        return opened
