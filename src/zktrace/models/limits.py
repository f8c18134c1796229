"""What a model file may claim, decided before anything of the claimed size is allocated."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from zktrace.errors import InputError, LimitExceeded, MalformedModel
from zktrace.models.dtypes import Dtype
from zktrace.primitives.text import shown

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds on a model file. A claim beyond one of them raises `LimitExceeded`."""

    max_file_bytes: int = 64 * _GIB  # of all files of a model together, which are mapped
    max_loaded_bytes: int = 4 * _GIB  # of one file that is converted or checked as a whole: zip, ONNX
    max_total_bytes: int = 64 * _GIB  # of all tensors together that are not made on demand, and of each
    max_shards: int = 4_096  # files of one model
    max_tensors: int = 65_536
    max_dims: int = 8
    max_name_bytes: int = 512
    max_header_bytes: int = 16 * _MIB  # safetensors header, index of shards, zip directory, pickle
    max_metadata_bytes: int = 64 * _MIB  # header of a GGUF file: vocabularies, which are passed over
    max_fields: int = 4_000_000  # of the messages of an ONNX file
    max_array_header_bytes: int = 4 * _KIB  # of one array in an npz
    max_members: int = 262_144  # of a zip archive
    max_pickle_steps: int = 4_000_000
    child_cpu_seconds: int = 60  # and one more for each 64 MiB of the file
    child_wall_seconds: int = 180  # likewise
    child_spare_bytes: int = 512 * _MIB  # address space of the child beyond twice the file

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if type(value) is not int or value < 1:
                raise InputError(f"{each.name} must be a positive integer, not {value!r}")


DEFAULT_LIMITS = Limits()


def extra_seconds(file_bytes: int) -> int:
    """What a file of this size may take longer than a small one."""
    return file_bytes >> 26


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

METADATA = "__metadata__"  # reserved by safetensors: a tensor of this name could be opened but not saved


def check_name(name: str) -> bytes:
    """The UTF-8 bytes of a name that is neither empty nor reserved and has no control characters."""
    if not name:
        raise MalformedModel("a tensor has an empty name")
    if name == METADATA:
        raise MalformedModel(f"a tensor cannot be named {METADATA}")
    if _CONTROL.search(name) is not None:
        raise MalformedModel(f"tensor {shown(name)}: control characters in the name")
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise MalformedModel(f"tensor {shown(name)}: the name is not valid Unicode") from error


def check_name_length(name: str, limits: Limits) -> None:
    """Refuse a name that is wrong or longer than allowed."""
    size = len(check_name(name))
    if size > limits.max_name_bytes:
        raise LimitExceeded(
            f"tensor {shown(name)}: name of {size} bytes, the limit is {limits.max_name_bytes}"
        )


def check_count(count: int, limits: Limits) -> None:
    """Refuse a file without tensors or with too many."""
    if count == 0:
        raise MalformedModel("holds no tensors")
    if count > limits.max_tensors:
        raise LimitExceeded(f"{count} tensors, the limit is {limits.max_tensors}")


def byte_size(name: str, dtype: Dtype, shape: Sequence[int], limits: Limits) -> int:
    """Bytes of a tensor of this shape.

    The bound applies to the product of the *non-zero* dimensions, so an empty tensor of shape (0, 2^60) is
    refused as well.
    """
    if len(shape) > limits.max_dims:
        raise LimitExceeded(f"tensor {shown(name)}: {len(shape)} dimensions, the limit is {limits.max_dims}")
    if math.prod(max(size, 1) for size in shape) * dtype.size > limits.max_total_bytes:
        raise LimitExceeded(
            f"tensor {shown(name)}: shape {shown_shape(shape)} of {dtype.tag} is beyond "
            f"the limit of {limits.max_total_bytes} bytes"
        )
    return math.prod(shape) * dtype.size


def check_total(total: int, limits: Limits) -> None:
    """Refuse tensors that together need too many bytes."""
    if total > limits.max_total_bytes:
        raise LimitExceeded(f"{total} bytes of tensors, the limit is {limits.max_total_bytes}")


def check_loaded(size: int, limits: Limits) -> None:
    """Refuse a file that is too large to be converted or checked as a whole."""
    if size > limits.max_loaded_bytes:
        raise LimitExceeded(
            f"{size} bytes, the limit for a file of this kind is {limits.max_loaded_bytes}; "
            "save it as safetensors"
        )


def shown_shape(shape: Sequence[int]) -> str:
    """A shape for a message; absurd dimensions by their magnitude only."""
    return "(" + ", ".join(str(n) if n < 1 << 64 else f"~2^{n.bit_length() - 1}" for n in shape) + ")"
