"""Checkpoints (c2sp.org/tlog-checkpoint): the head of a log as the text of a note.

Three lines: the log's name for itself (its origin), how many entries it has, and the Merkle root over them in
base64. The tree is that of RFC 6962, which is `zktrace.primitives.merkle`.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from zktrace.errors import MalformedFile
from zktrace.primitives.fields import packed
from zktrace.primitives.merkle import HASH_BYTES
from zktrace.primitives.text import shown
from zktrace.transparency.note import encoded

SIZE_LIMIT: Final = (1 << 63) - 1  # entries
TEXT_LIMIT: Final = 1 << 12  # bytes
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_HASH: Final = packed(HASH_BYTES, HASH_BYTES)
_CONTROL: Final = re.compile(r"[\x00-\x1f]")


def read_size(text: str, what: str) -> int:
    """A number of entries in decimal without leading zeros, or MalformedFile."""
    if not _NUMBER.fullmatch(text) or int(text) > SIZE_LIMIT:
        raise MalformedFile(f"{what}: {shown(text[:40])} is no number of entries")
    return int(text)


def read_hash(text: str, what: str) -> bytes:
    """A SHA-256 hash in base64, or MalformedFile."""
    return _HASH.read(text, what)


def hash_text(value: bytes) -> str:
    """A hash as its line has it."""
    return str(_HASH.write(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheckpoint:
    """What a log says of itself at one moment."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()  # further lines, which nobody here makes and nobody believes

    def __post_init__(self) -> None:
        lines = (self.origin, *self.extensions)
        if not all(lines) or any(_CONTROL.search(each) for each in lines):
            raise MalformedFile("a checkpoint: its lines must not be empty, nor have control characters")
        if not 0 <= self.size <= SIZE_LIMIT or len(self.root) != HASH_BYTES:
            raise MalformedFile("a checkpoint: a size or a root that no log has")
        if len(encoded(self.to_text())) > TEXT_LIMIT:
            raise MalformedFile(f"a checkpoint of more than {TEXT_LIMIT} bytes")

    def to_text(self) -> str:
        """The text of its note."""
        lines = (self.origin, str(self.size), hash_text(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` wrote, or MalformedFile."""
        if len(text) > TEXT_LIMIT or not text.endswith("\n"):
            raise MalformedFile(f"a checkpoint: not lines of at most {TEXT_LIMIT} bytes")
        lines = text[:-1].split("\n")
        if len(lines) < 3:
            raise MalformedFile("a checkpoint: has less than three lines")
        origin, size, root, *more = lines
        return cls(
            origin=origin,
            size=read_size(size, "a checkpoint"),
            root=read_hash(root, "the root of a checkpoint"),
            extensions=tuple(more),
        )
