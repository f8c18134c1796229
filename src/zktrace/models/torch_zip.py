"""A torch checkpoint (zip format) turned into a safetensors file, by the standard library alone.

Runs in a child process (`torch_child`); nothing here or below imports numpy, torch or safetensors.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Literal

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models import zip_members
from zktrace.models.dtypes import ALLOWED, BY_TAG, Dtype
from zktrace.models.limits import Limits, byte_size, check_count, check_name_length, check_total, shown_shape
from zktrace.models.safetensors_header import Slot, build_header, file_order
from zktrace.models.torch_pickle import TensorView, read_pickle
from zktrace.models.zip_members import Member, read_directory, stored_members
from zktrace.primitives.text import shown

PICKLE = "data.pkl"
VERSION = "version"
BYTE_ORDER = "byteorder"

_AGAIN = "re-save with torch.save"
# What torch.save writes. torch finds members without regard to case and reads some that are not there by
# default, so a member of any other name might be read by it and not by us.
_KNOWN = re.compile(
    r"data\.pkl|byteorder|version|data/(?:0|[1-9][0-9]*)|"
    r"\.format_version|\.storage_alignment|\.data/serialization_id"
)
_VERSION = re.compile(rb"(?:[1-9]|10)\n?")  # those that torch reads
_NUMBERS = {
    ".format_version": re.compile(rb"[0-9]{1,9}"),
    ".storage_alignment": re.compile(rb"[0-9]{1,9}"),
    ".data/serialization_id": re.compile(rb"[0-9]{1,63}"),
}
_SHARED = 2  # tensors may share storages, but together they are at most so many times the file,
_SPARE = 1 << 20  # and this many bytes
# Unsigned integers as wide as an element: the bits are moved as they are.
_FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A tensor whose every element has been found to lie inside its storage."""

    layout: Slot
    view: TensorView
    storage: memoryview  # bytes


def is_checkpoint(data: memoryview, limits: Limits) -> bool:
    """Whether a file is a zip archive that has to be read as a checkpoint, if it can be read at all."""
    if bytes(data[:4]) != zip_members.MAGIC:
        return False
    return has_pickle([entry.name for entry in read_directory(data, limits).entries])


def has_pickle(names: Iterable[str]) -> bool:
    """Whether the members of an archive are those of a checkpoint, of tensors and not of code."""
    inside = {name.partition("/")[2] for name in names}
    code = "constants.pkl" in inside or any(name.startswith("code/") for name in inside)
    return PICKLE in inside and not code


def convert(data: memoryview, out: IO[bytes], limits: Limits) -> None:
    """Write the state dict of a whole checkpoint to `out` as a safetensors file."""
    archive = _Archive(data, limits)
    views = read_pickle(archive.pickle(), limits)
    check_count(len(views), limits)
    sources = [_source(name, view, archive, limits) for name, view in views.items()]
    total = sum(source.layout.size for source in sources)
    check_total(total, limits)
    if total > _SHARED * len(data) + _SPARE:
        raise LimitExceeded(
            f"its tensors share storages so much that {len(data)} bytes of file become {total}; "
            "save each tensor as a clone"
        )
    sources.sort(key=lambda source: file_order(source.layout))
    out.write(build_header(source.layout for source in sources))
    for source in sources:
        _write(source, out)
    out.flush()


class _Archive:
    """The members of a checkpoint, all under one folder."""

    def __init__(self, data: memoryview, limits: Limits) -> None:
        directory = read_directory(data, limits)
        members = stored_members(data, directory, again=_AGAIN)
        self._limits = limits
        self._members = _in_one_folder(members)
        self._checked: dict[str, memoryview] = {}
        if _VERSION.fullmatch(self._short(VERSION)) is None:
            raise MalformedModel("the checkpoint is of a version that torch does not read")
        if BYTE_ORDER in self._members and self._short(BYTE_ORDER) != b"little":
            raise MalformedModel("the checkpoint is not little-endian; re-save it on a little-endian machine")
        for name, number in _NUMBERS.items():
            if name in self._members and number.fullmatch(self._short(name)) is None:
                raise MalformedModel(f"member {name!r} of the checkpoint is not a number")

    def pickle(self) -> bytes:
        """The pickle that describes the checkpoint."""
        data = self._get(PICKLE)
        if len(data) > self._limits.max_header_bytes:
            raise LimitExceeded(f"pickle of {len(data)} bytes, the limit is {self._limits.max_header_bytes}")
        return bytes(data)

    def storage(self, key: str) -> memoryview:
        """The bytes of a storage."""
        return self._get(f"data/{key}")

    def _short(self, name: str) -> bytes:
        """The content of a member of a few letters; longer ones are cut, and mean nothing."""
        return bytes(self._get(name)[:64])

    def _get(self, name: str) -> memoryview:
        """The bytes of a member; its CRC-32 is computed once. torch can be told to write 0 instead of it."""
        if name not in self._checked:
            member = self._members.get(name)
            if member is None:
                raise MalformedModel(f"the checkpoint has no member {shown(name)}")
            self._checked[name] = member.data if member.crc == 0 else member.checked()
        return self._checked[name]


def _in_one_folder(members: Mapping[str, Member]) -> dict[str, Member]:
    """Members by their name inside the one folder of the archive."""
    folders = {name.partition("/")[0] for name in members}
    if len(folders) != 1:
        raise MalformedModel("a torch checkpoint has exactly one folder")
    inside = {name.partition("/")[2]: member for name, member in members.items()}
    strange = next((name for name in inside if _KNOWN.fullmatch(name) is None), None)
    if strange is not None:
        raise MalformedModel(f"the checkpoint has a member {shown(strange)}, which torch.save does not write")
    return inside


def _source(name: str, view: TensorView, archive: _Archive, limits: Limits) -> _Source:
    """The tensor, provided that it stays inside its storage and does not repeat elements of it."""
    check_name_length(name, limits)
    dtype = BY_TAG.get(view.tag)
    if dtype is None:
        raise MalformedModel(f"tensor {shown(name)}: dtype {shown(view.tag)} is not one of {ALLOWED}")
    size = byte_size(name, dtype, view.shape, limits)
    storage = archive.storage(view.storage.key)
    unit = dtype.size if view.storage.tag is not None else 1
    if view.storage.count * unit != len(storage):
        raise MalformedModel(
            f"tensor {shown(name)}: its storage has {len(storage)} bytes, "
            f"the pickle says {view.storage.count * unit}"
        )
    _check_inside(name, view, len(storage) // dtype.size)
    layout = Slot(name=name, dtype=dtype, shape=view.shape, size=size)
    return _Source(layout=layout, view=view, storage=storage)


def _check_inside(name: str, view: TensorView, available: int) -> None:
    count = math.prod(view.shape)
    last = view.offset + sum((size - 1) * step for size, step in zip(view.shape, view.strides, strict=True))
    if count > available or (count and last >= available):
        raise MalformedModel(
            f"tensor {shown(name)}: {count} elements of shape {shown_shape(view.shape)} reach outside "
            f"a storage of {available}"
        )
    if any(size > 1 and step == 0 for size, step in zip(view.shape, view.strides, strict=True)):
        raise MalformedModel(f"tensor {shown(name)}: an expanded view; save tensor.contiguous()")


def _write(source: _Source, out: IO[bytes]) -> None:
    if source.layout.size == 0:
        return
    if _is_contiguous(source.view):
        begin = source.view.offset * source.layout.dtype.size
        out.write(source.storage[begin : begin + source.layout.size])
    else:
        out.write(_gathered(source.storage, source.view, source.layout.dtype))


def _is_contiguous(view: TensorView) -> bool:
    """Whether the elements lie in C order without gaps; the stride of a dimension of size 1 means nothing."""
    expected = 1
    for size, step in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if size > 1 and step != expected:
            return False
        expected *= size
    return True


def _gathered(storage: memoryview, view: TensorView, dtype: Dtype) -> bytearray:
    """The elements of a strided view in C order.

    Copies whole lines along the longest dimension, strided on both sides, so that the loop is short.
    """
    result = bytearray(math.prod(view.shape) * dtype.size)
    target = memoryview(result).cast(_FORMATS[dtype.size])
    source = storage[: len(storage) // dtype.size * dtype.size].cast(_FORMATS[dtype.size])
    steps = [math.prod(view.shape[axis + 1 :]) for axis in range(len(view.shape))]
    along = max(range(len(view.shape)), key=lambda axis: view.shape[axis])
    others = [axis for axis in range(len(view.shape)) if axis != along]
    for index in itertools.product(*(range(view.shape[axis]) for axis in others)):
        to = sum(i * steps[axis] for i, axis in zip(index, others, strict=True))
        at = view.offset + sum(i * view.strides[axis] for i, axis in zip(index, others, strict=True))
        target[_line(to, view.shape[along], steps[along])] = source[
            _line(at, view.shape[along], view.strides[along])
        ]
    return result


def _line(start: int, count: int, step: int) -> slice:
    return slice(start, start + (count - 1) * step + 1, step)
