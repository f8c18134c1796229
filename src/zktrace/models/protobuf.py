"""The wire format of protocol buffers, as far as ONNX needs it: fields of a message, views of its bytes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import LimitExceeded, MalformedModel

VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5  # wire types; 3 and 4 are groups, which nothing writes any more

_LONGEST = 10  # bytes of a number
_PART = 1 << 18  # bytes whose numbers are made at a time


@dataclass(slots=True, kw_only=True)
class Fuel:
    """How many fields may still be looked at, in all messages of a file together."""

    fields: int

    def spend(self) -> None:
        """One field more."""
        self.fields -= 1
        if self.fields < 0:
            raise LimitExceeded("more ONNX fields than the limit allows")


def fields(message: memoryview, fuel: Fuel) -> Iterator[tuple[int, int, int | memoryview]]:
    """Number, wire type and value of each field: a number, or the bytes it has."""
    at = 0
    while at < len(message):
        fuel.spend()
        tag, at = _number(message, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise MalformedModel("an ONNX field without a number")
        if kind == VARINT:
            value, at = _number(message, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _number(message, at)
        elif kind in (WIDE, NARROW):
            size = 8 if kind == WIDE else 4
        else:
            raise MalformedModel("an ONNX field of an unknown kind")
        if size > len(message) - at:
            raise MalformedModel("ends inside an ONNX field")
        yield number, kind, message[at : at + size]
        at += size


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """The number at this byte, below 2^64, and where it ends."""
    value = 0
    for shift, octet in enumerate(message[at : at + _LONGEST]):
        value |= (octet & 0x7F) << 7 * shift
        if octet < 0x80:
            if value >> 64:
                break
            return value, at + shift + 1
    raise MalformedModel("an ONNX number that does not end")


def count_numbers(packed: memoryview) -> int:
    """How many numbers a packed field has; they are not made for that."""
    if len(packed) and packed[-1] >= 0x80:
        raise MalformedModel("an ONNX number that does not end")
    parts = (np.frombuffer(packed[at : at + _PART], np.uint8) for at in range(0, len(packed), _PART))
    return sum(int(np.count_nonzero(octets < 0x80)) for octets in parts)


def numbers(packed: memoryview) -> Iterator[NDArray[np.uint64]]:
    """The numbers of a packed field, a bounded part at a time."""
    at = 0
    while at < len(packed):
        octets = np.frombuffer(packed[at : at + _PART], np.uint8)
        ends = np.flatnonzero(octets < 0x80)
        if not len(ends):
            raise MalformedModel("an ONNX number that does not end")
        yield _unpacked(octets, ends)
        at += int(ends[-1]) + 1


def _unpacked(octets: NDArray[np.uint8], ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The numbers whose last bytes are at `ends`; what a number has beyond 64 bits is lost."""
    begins = np.concatenate((np.zeros(1, ends.dtype), ends[:-1] + 1))
    sizes = ends - begins + 1
    if sizes.max() > _LONGEST:
        raise MalformedModel("an ONNX number that does not end")
    found = np.zeros(len(ends), dtype=np.uint64)
    for at in range(int(sizes.max())):
        longer = sizes > at
        part = (octets[begins[longer] + at] & 0x7F).astype(np.uint64)
        found[longer] |= part << np.uint64(7 * at)
    return found
