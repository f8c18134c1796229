"""npz files: a stored zip of npy arrays, read without numpy's loader (which can unpickle and inflate)."""

import re
import struct
from dataclasses import dataclass

import numpy as np

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models.dtypes import ALLOWED, BY_NUMPY, Dtype
from zktrace.models.limits import Limits, byte_size, check_count, check_name_length, check_total, shown_shape
from zktrace.models.state import ModelState, Tensor
from zktrace.models.zip_members import Directory, Member, stored_members
from zktrace.primitives.text import shown

SUFFIX = ".npy"
MAGIC = b"\x93NUMPY"

_AGAIN = "re-save with numpy.savez"
_LENGTH = {1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: struct.Struct("<I")}
_HEADER = re.compile(
    rb" *\{ *'descr' *: *(?P<descr>'[^'\\]*'|\[[^\]]*\]) *,"
    rb" *'fortran_order' *: *(?P<fortran>True|False) *,"
    rb" *'shape' *: *\((?P<shape>[0-9, ]*)\) *,? *\} *\n?"
)
_DESCR = re.compile(r"'(?P<order>[<>|])(?P<kind>[a-zA-Z])(?P<size>[1-9][0-9]{0,2})'")
_SHAPE = re.compile(
    r"|(?:0|[1-9][0-9]{0,19}) *,|(?:0|[1-9][0-9]{0,19})(?: *, *(?:0|[1-9][0-9]{0,19}))+ *,? *"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArrayHeader:
    dtype: Dtype
    big_endian: bool
    fortran: bool
    shape: tuple[int, ...]
    size: int  # bytes of the elements
    begin: int  # of the elements in the member


def read_npz(data: memoryview, directory: Directory, limits: Limits) -> ModelState:
    """The state in the bytes of a whole npz file.

    As views of them, except arrays that are not in C order or not little-endian.
    """
    check_count(len(directory.entries), limits)
    members = stored_members(data, directory, again=_AGAIN)
    headers = {name: _array_header(member, limits) for name, member in members.items()}
    check_total(sum(header.size for header in headers.values()), limits)
    return ModelState(_tensor(members[name], header) for name, header in headers.items())


def _tensor_name(member: Member, limits: Limits) -> str:
    if not member.name.endswith(SUFFIX):
        raise MalformedModel(f"zip member {shown(member.name)}: not an array ({SUFFIX})")
    name = member.name.removesuffix(SUFFIX)
    if "\\" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise MalformedModel(f"zip member {shown(member.name)}: not a plain relative name")
    if name.endswith(SUFFIX):  # numpy gives x.npy for both x.npy and x.npy.npy
        raise MalformedModel(f"zip member {shown(member.name)}: numpy reads such a name in two ways")
    check_name_length(name, limits)
    return name


def _array_header(member: Member, limits: Limits) -> _ArrayHeader:
    """The header of one array, by a grammar of what numpy writes. Nothing is evaluated."""
    name = _tensor_name(member, limits)
    text, begin = _header_text(member, limits)
    match = _HEADER.fullmatch(text)
    if match is None:
        raise MalformedModel(f"tensor {shown(name)}: not the header of an npy array")
    dtype, big_endian = _dtype(name, match["descr"].decode("latin-1"))
    shape = _shape(name, match["shape"].decode())
    size = byte_size(name, dtype, shape, limits)
    if size != len(member.data) - begin:
        raise MalformedModel(
            f"tensor {shown(name)}: {dtype.tag} {shown_shape(shape)} needs {size} bytes, "
            f"the member has {len(member.data) - begin}"
        )
    fortran = match["fortran"] == b"True"
    return _ArrayHeader(
        dtype=dtype, big_endian=big_endian, fortran=fortran, shape=shape, size=size, begin=begin
    )


def _header_text(member: Member, limits: Limits) -> tuple[bytes, int]:
    """The header of the array in this member, and where its elements begin."""
    data = member.data
    if bytes(data[:6]) != MAGIC or len(data) < 8:
        raise MalformedModel(f"zip member {shown(member.name)}: not an npy array")
    length = _LENGTH.get(data[6])
    if length is None or data[7] != 0:
        raise MalformedModel(f"zip member {shown(member.name)}: npy version {data[6]}.{data[7]} is unknown")
    at = 8 + length.size
    if len(data) < at:
        raise MalformedModel(f"zip member {shown(member.name)}: ends inside its header")
    (size,) = length.unpack_from(data, 8)
    if size > limits.max_array_header_bytes:
        raise LimitExceeded(
            f"zip member {shown(member.name)}: array header of {size} bytes, "
            f"the limit is {limits.max_array_header_bytes}"
        )
    if size > len(data) - at:
        raise MalformedModel(f"zip member {shown(member.name)}: ends inside its header")
    return bytes(data[at : at + size]), at + size


def _dtype(name: str, descr: str) -> tuple[Dtype, bool]:
    """The element type and whether it is big-endian."""
    match = _DESCR.fullmatch(descr)
    dtype = BY_NUMPY.get((match["kind"], int(match["size"]))) if match else None
    if match is None or dtype is None or (match["order"] == "|" and dtype.size > 1):
        raise MalformedModel(f"tensor {shown(name)}: dtype {shown(descr)} is not one of {ALLOWED}")
    return dtype, match["order"] == ">"


def _shape(name: str, text: str) -> tuple[int, ...]:
    if _SHAPE.fullmatch(text) is None:
        raise MalformedModel(f"tensor {shown(name)}: shape {shown(text)} is not a tuple of integers")
    return tuple(int(size) for size in text.replace(" ", "").split(",") if size)


def _tensor(member: Member, header: _ArrayHeader) -> Tensor:
    data = member.checked()[header.begin :]
    if (header.big_endian and header.dtype.size > 1) or (header.fortran and len(header.shape) > 1):
        data = _normalised(data, header)
    name = member.name.removesuffix(SUFFIX)
    return Tensor(name=name, dtype=header.dtype.tag, shape=header.shape, data=data)


def _normalised(data: memoryview, header: _ArrayHeader) -> memoryview:
    """The same elements in C order and little-endian: a copy of this one array."""
    kind = f"{header.dtype.numpy}{header.dtype.size}"
    found = np.frombuffer(data, dtype=(">" if header.big_endian else "<") + kind)
    ordered = found.reshape(header.shape, order="F" if header.fortran else "C")
    return np.ascontiguousarray(ordered, dtype="<" + kind).data
