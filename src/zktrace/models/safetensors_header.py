"""The header of a safetensors file, both ways, within bounds.

A file is the length of its header (8 bytes, little-endian), the header (JSON) and the data. The header maps
each name to its element type, its shape and its place in the data. The places must tile the data exactly:
no hole, no overlap, nothing after the end.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models.dtypes import ALLOWED, BY_SAFETENSORS, Dtype
from zktrace.models.json_objects import json_object
from zktrace.models.limits import (
    METADATA,
    Limits,
    byte_size,
    check_count,
    check_name_length,
    check_total,
    shown_shape,
)
from zktrace.primitives.text import shown

LENGTH_BYTES = 8
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a tensor lies: bytes `start` to `stop`, counted from the beginning of the data."""

    name: str
    dtype: Dtype
    shape: tuple[int, ...]
    start: int
    stop: int


def parse_header(data: memoryview, limits: Limits) -> tuple[int, tuple[Place, ...]]:
    """Where the data begins in a whole file, and the place of every tensor in it."""
    begin = _data_begin(data, limits)
    header = json_object(bytes(data[LENGTH_BYTES:begin]), limits, what="the safetensors header")
    _check_metadata(header.pop(METADATA, {}))
    check_count(len(header), limits)
    places = sorted((_place(name, entry, limits) for name, entry in header.items()), key=_position)
    _check_tiling(places, len(data) - begin)
    check_total(len(data) - begin, limits)
    return begin, tuple(places)


def _data_begin(data: memoryview, limits: Limits) -> int:
    if len(data) < LENGTH_BYTES:
        raise MalformedModel("ends inside the length of the safetensors header")
    size = int.from_bytes(data[:LENGTH_BYTES], "little")
    if size > limits.max_header_bytes:
        raise LimitExceeded(f"safetensors header of {size} bytes, the limit is {limits.max_header_bytes}")
    if size > len(data) - LENGTH_BYTES:
        raise MalformedModel(f"safetensors header of {size} bytes in a file of {len(data)}")
    return LENGTH_BYTES + size


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise MalformedModel(f"{METADATA} of the safetensors header does not map text to text")


def _place(name: str, entry: object, limits: Limits) -> Place:
    check_name_length(name, limits)
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise MalformedModel(f"tensor {shown(name)}: needs exactly dtype, shape and data_offsets")
    code = entry["dtype"] if isinstance(entry["dtype"], str) else "(not text)"
    dtype = BY_SAFETENSORS.get(code)
    if dtype is None:
        raise MalformedModel(f"tensor {shown(name)}: dtype {shown(code)} is not one of {ALLOWED}")
    shape, offsets = _counts(entry["shape"]), _counts(entry["data_offsets"])
    if shape is None or offsets is None or len(offsets) != 2:
        raise MalformedModel(
            f"tensor {shown(name)}: shape and offsets must be lists of non-negative integers"
        )
    start, stop = offsets
    if stop - start != byte_size(name, dtype, shape, limits):
        raise MalformedModel(f"tensor {shown(name)}: its bytes do not fit {dtype.tag} {shown_shape(shape)}")
    return Place(name=name, dtype=dtype, shape=shape, start=start, stop=stop)


def _counts(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
        return None
    return tuple(value)


def _position(place: Place) -> tuple[int, int]:
    return place.start, place.stop


def _check_tiling(places: Iterable[Place], size: int) -> None:
    end = 0
    for place in places:
        if place.start != end:
            fault = "overlaps its predecessor" if place.start < end else "leaves a hole before it"
            raise MalformedModel(f"tensor {shown(place.name)}: {fault}")
        end = place.stop
    if end != size:
        raise MalformedModel(f"the tensors take {end} bytes, the data of the file has {size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A tensor to be written: everything but its bytes."""

    name: str
    dtype: Dtype
    shape: tuple[int, ...]
    size: int  # bytes


def file_order(layout: Slot) -> tuple[int, bytes]:
    """Sort key: wide elements first, so that every tensor starts at a multiple of its element size."""
    return -layout.dtype.size, layout.name.encode()


def build_header(layouts: Iterable[Slot], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes before the data, for tensors whose data follows in this order."""
    header: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    at = 0
    for layout in layouts:
        header[layout.name] = {
            "dtype": layout.dtype.safetensors,
            "shape": list(layout.shape),
            "data_offsets": [at, at + layout.size],
        }
        at += layout.size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text
