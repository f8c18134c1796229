"""GGUF files: mapped; plain tensors are views of them, quantised ones are made when they are asked for.

A file is a header (numbers of tensors and of metadata entries), the metadata, a table of the tensors, and
the data. Metadata is passed over: only the alignment of the data is taken from it. The tensors must tile the
data but for the padding, so that none is read twice.
"""

import math
import struct
from dataclasses import dataclass
from functools import partial

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models.dtypes import BY_TAG
from zktrace.models.gguf_blocks import QUANTISED, Quantised, pieces
from zktrace.models.limits import Limits, byte_size, check_count, check_name_length, check_total
from zktrace.models.state import LazyTensor, ModelState, Tensor
from zktrace.primitives.text import shown

MAGIC = b"GGUF"

_VERSIONS = (2, 3)
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes a value, by its type
_UINT32, _STRING, _ARRAY = 4, 8, 9
_PLAIN = {
    0: "float32",
    1: "float16",
    24: "int8",
    25: "int16",
    26: "int32",
    27: "int64",
    28: "float64",
    30: "bfloat16",
}
_ALIGNMENT = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_LARGEST_ALIGNMENT = 1 << 16
_LONGEST_KEY = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of the table of tensors."""

    name: str
    shape: tuple[int, ...]
    tag: str  # element type of what is read
    blocks: Quantised | None  # what is in the file, unless the elements themselves
    offset: int  # from the beginning of the data
    size: int  # bytes in the file


class _Cursor:
    """Numbers and texts one after the other, within a bound."""

    def __init__(self, data: memoryview, limit: int) -> None:
        self.at = 0
        self._data = data[:limit]
        self._cut = len(data) > limit

    def skip(self, count: int) -> int:
        """Pass over so many bytes; where they begin."""
        begin = self.at
        if count > len(self._data) - begin:
            if self._cut:
                raise LimitExceeded(f"GGUF metadata of more than {len(self._data)} bytes, the limit")
            raise MalformedModel("ends inside its GGUF header")
        self.at += count
        return begin

    def small(self) -> int:
        """An unsigned number of 4 bytes."""
        return int(struct.unpack_from("<I", self._data, self.skip(4))[0])

    def large(self) -> int:
        """An unsigned number of 8 bytes."""
        return int(struct.unpack_from("<Q", self._data, self.skip(8))[0])

    def text(self, longest: int) -> str:
        size = self.large()
        if size > longest:
            raise LimitExceeded(f"a GGUF name of {size} bytes, the limit is {longest}")
        begin = self.skip(size)
        try:
            return bytes(self._data[begin : begin + size]).decode()
        except UnicodeDecodeError as error:
            raise MalformedModel("a GGUF name is not UTF-8") from error


def read_gguf(data: memoryview, limits: Limits) -> ModelState:
    """The state in the bytes of a whole GGUF file."""
    cursor = _Cursor(data, limits.max_metadata_bytes)
    cursor.skip(len(MAGIC))
    version = cursor.small()
    if version not in _VERSIONS:
        raise MalformedModel(f"GGUF of version {version:#x}; versions 2 and 3, little-endian, are read here")
    tensors, entries = cursor.large(), cursor.large()
    check_count(tensors, limits)
    if entries > limits.max_tensors:
        raise LimitExceeded(f"{entries} GGUF metadata entries, the limit is {limits.max_tensors}")
    alignment = _alignment(cursor, entries)
    lines = [_line(cursor, limits) for _ in range(tensors)]
    check_total(sum(line.size for line in lines), limits)
    begin = cursor.at + -cursor.at % alignment
    _check_tiling(lines, len(data) - begin, alignment)
    return ModelState(_tensor(line, data[begin + line.offset :][: line.size]) for line in lines)


def _alignment(cursor: _Cursor, entries: int) -> int:
    """What the data is aligned to, from the metadata, the rest of which is passed over."""
    found, keys = _DEFAULT_ALIGNMENT, set()
    for _ in range(entries):
        key, kind = cursor.text(_LONGEST_KEY), cursor.small()
        if key in keys:
            raise MalformedModel(f"GGUF metadata has {shown(key)} twice")
        keys.add(key)
        if key != _ALIGNMENT:
            _pass_over(cursor, kind)
            continue
        found = cursor.small() if kind == _UINT32 else 0
        if not 1 <= found <= _LARGEST_ALIGNMENT or found & (found - 1):
            raise MalformedModel("the GGUF alignment is not a power of two that makes sense")
    return found


def _pass_over(cursor: _Cursor, kind: int) -> None:
    """Pass over one value: a number, a text, or an array of either."""
    count = 1
    if kind == _ARRAY:
        kind, count = cursor.small(), cursor.large()
    if kind in _FIXED:
        cursor.skip(count * _FIXED[kind])
    elif kind == _STRING:
        cursor.skip(8 * count)  # so many lengths at the least: bounds the loop
        cursor.at -= 8 * count
        for _ in range(count):
            cursor.skip(cursor.large())
    else:
        raise MalformedModel(f"GGUF metadata of an unknown type ({kind})")


def _line(cursor: _Cursor, limits: Limits) -> _Line:
    name = cursor.text(limits.max_name_bytes)
    check_name_length(name, limits)
    dims = cursor.small()
    if dims > limits.max_dims:
        raise LimitExceeded(f"tensor {shown(name)}: {dims} dimensions, the limit is {limits.max_dims}")
    shape = tuple(reversed([cursor.large() for _ in range(dims)]))  # the fastest comes first in the file
    kind, offset = cursor.small(), cursor.large()
    blocks = QUANTISED.get(kind)
    if blocks is None and kind not in _PLAIN:
        known = ", ".join([*_PLAIN.values(), *(each.name for each in QUANTISED.values())])
        raise MalformedModel(f"tensor {shown(name)}: GGUF type {kind} is not one of {known}")
    tag = _PLAIN.get(kind, "float32")
    size = byte_size(name, BY_TAG[tag], shape, limits)
    if blocks is not None:
        if not shape or shape[-1] % blocks.count:
            raise MalformedModel(f"tensor {shown(name)}: its rows are no whole blocks of {blocks.name}")
        size = math.prod(shape) // blocks.count * blocks.size
    return _Line(name=name, shape=shape, tag=tag, blocks=blocks, offset=offset, size=size)


def _check_tiling(lines: list[_Line], available: int, alignment: int) -> None:
    end = 0
    for line in sorted(lines, key=lambda each: (each.offset, each.size)):
        if line.offset != end + -end % alignment:
            raise MalformedModel(f"tensor {shown(line.name)}: does not begin where its predecessor ends")
        end = line.offset + line.size
    if not end <= available <= end + -end % alignment:
        raise MalformedModel(f"the tensors take {end} bytes, the data of the file has {available}")


def _tensor(line: _Line, data: memoryview) -> Tensor:
    if line.blocks is None:
        return Tensor(name=line.name, dtype=line.tag, shape=line.shape, data=data)
    make = partial(pieces, line.blocks, data)
    return LazyTensor(name=line.name, dtype=line.tag, shape=line.shape, make=make)
