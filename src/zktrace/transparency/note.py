"""Signed notes (c2sp.org/signed-note): a text, an empty line, and a line for each signature.

What a note says is to be believed only after a signature of a trusted key has been verified
(`zktrace.transparency.keys`). Here bytes are taken apart, within bounds.
"""

import re
from dataclasses import dataclass
from typing import Final, Self

from zktrace.errors import LimitExceeded, MalformedFile
from zktrace.primitives.fields import packed
from zktrace.primitives.text import shown

NOTE_LIMIT: Final = 1 << 18  # bytes: 64 signatures of the largest kind, and a text
SIGNATURES_LIMIT: Final = 64
NAME_LIMIT: Final = 255  # bytes of a key's name: what a cosigned message has room for
ID_BYTES: Final = 4
_SIGNATURE: Final = packed(ID_BYTES + 1, 1 << 13)
_DASH: Final = "\u2014 "
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")


def check_key_name(name: str) -> str:
    """A name that a signature line can carry, or MalformedFile."""
    spaced = any(each.isspace() for each in name)
    if not name or spaced or "+" in name or _CONTROL.search(name) or len(encoded(name)) > NAME_LIMIT:
        raise MalformedFile(
            f"{shown(name)}: not the name of a key (1..{NAME_LIMIT} bytes, without spaces and without '+')"
        )
    return name


def encoded(text: str) -> bytes:
    """UTF-8, or MalformedFile: a lone surrogate has none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise MalformedFile("a note: not UTF-8") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One line: who is said to have signed, with which key, and the bytes."""

    name: str
    key: bytes  # its short identifier
    value: bytes  # what the key made

    def __post_init__(self) -> None:
        check_key_name(self.name)
        if len(self.key) != ID_BYTES or not self.value:
            raise MalformedFile("a signature of a note: too short")

    def to_line(self) -> str:
        """As it stands in a note, with its line end."""
        return f"{_DASH}{self.name} {_SIGNATURE.write(self.key + self.value)}\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """What `to_line` wrote, without the line end; or MalformedFile."""
        name, _, value = line.removeprefix(_DASH).partition(" ")
        if not line.startswith(_DASH) or not value:
            raise MalformedFile(f"{shown(line[:200])}: not a signature line of a note")
        data = _SIGNATURE.read(value, "a signature of a note")
        return cls(name=name, key=data[:ID_BYTES], value=data[ID_BYTES:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A text and its signatures, none of them verified."""

    text: str  # with its last line end
    signatures: tuple[Signature, ...]

    def __post_init__(self) -> None:
        if not self.text.endswith("\n") or _CONTROL.search(self.text):
            raise MalformedFile("a note: its text must be lines without control characters")
        if not 1 <= len(self.signatures) <= SIGNATURES_LIMIT:
            raise MalformedFile(f"a note: must have 1..{SIGNATURES_LIMIT} signatures")

    def to_bytes(self) -> bytes:
        """The whole note."""
        data = encoded(f"{self.text}\n{''.join(each.to_line() for each in self.signatures)}")
        if len(data) > NOTE_LIMIT:
            raise LimitExceeded(f"a note of {len(data)} bytes, the limit is {NOTE_LIMIT}")
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The note that `to_bytes` wrote, or MalformedFile."""
        if len(data) > NOTE_LIMIT:
            raise LimitExceeded(f"a note of {len(data)} bytes, the limit is {NOTE_LIMIT}")
        try:
            whole = data.decode()
        except UnicodeDecodeError:
            raise MalformedFile("a note: not UTF-8") from None
        text, found, lines = whole.rpartition("\n\n")
        if not found:
            raise MalformedFile("a note: no empty line before its signatures")
        return cls(text=f"{text}\n", signatures=read_signatures(lines))

    def signed(self, *more: Signature) -> "Note":
        """The note with further signatures; one of the same key takes the place of the one before."""
        new = {(each.name, each.key) for each in more}
        kept = tuple(each for each in self.signatures if (each.name, each.key) not in new)
        return Note(text=self.text, signatures=(*kept, *more))


def read_signatures(lines: str) -> tuple[Signature, ...]:
    """Signature lines, each with its line end, or MalformedFile."""
    if not lines.endswith("\n"):
        raise MalformedFile("a note: its last line has no end")
    if lines.count("\n") > SIGNATURES_LIMIT:
        raise MalformedFile(f"a note: more than {SIGNATURES_LIMIT} signatures")
    return tuple(Signature.from_line(line) for line in lines[:-1].split("\n"))
