"""Canonical bytes: one encoding for a value, and a reader that refuses every other.

Integers are big-endian. A field is its length (8 bytes) and its bytes, so a sequence of fields can be
taken apart in only one way and no two sequences share an encoding.
"""

from collections.abc import Iterable

from zktrace.errors import MalformedFile


def field(data: bytes) -> bytes:
    """One length-prefixed field."""
    return len(data).to_bytes(8, "big") + data


def fields(parts: Iterable[bytes]) -> bytes:
    """The injective encoding of a sequence of byte strings."""
    return b"".join(field(part) for part in parts)


class ByteReader:
    """Takes a byte string apart from the front; every failure is `error`, and nothing may be left over."""

    def __init__(self, data: bytes, *, what: str, error: type[MalformedFile]) -> None:
        self._data = memoryview(data)
        self._at = 0
        self._what = what
        self._error = error

    def fail(self, reason: str) -> MalformedFile:
        """The error to raise for `reason`."""
        return self._error(f"{self._what}: {reason}")

    def take(self, size: int, name: str) -> bytes:
        """The next `size` bytes."""
        left = len(self._data) - self._at
        if size > left:
            raise self.fail(f"ends inside {name} ({left} bytes left of {size})")
        piece = self._data[self._at : self._at + size]
        self._at += size
        return bytes(piece)

    def expect(self, magic: bytes) -> None:
        """The format marker that a file must begin with."""
        found = bytes(self._data[self._at : self._at + len(magic)])
        if found != magic:
            raise self.fail(f"does not begin with {magic.decode()!r}")
        self._at += len(magic)

    def short(self, name: str) -> bytes:
        """A field of at most 255 bytes with a one-byte length."""
        return self.take(self.take(1, f"the length of {name}")[0], name)

    def finish(self) -> None:
        """The end: trailing bytes are an error."""
        left = len(self._data) - self._at
        if left:
            raise self.fail(f"{left} bytes after the end")


def short(data: bytes) -> bytes:
    """A field of at most 255 bytes with a one-byte length; `Reader.short` reads it back."""
    return len(data).to_bytes(1, "big") + data
