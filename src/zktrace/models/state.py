"""A model's state: named tensors, immutable, views of a mapped file where that is possible."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import MalformedModel
from zktrace.models.dtypes import ALLOWED, BY_NUMPY, BY_TAG
from zktrace.models.limits import check_name, shown_shape
from zktrace.primitives.text import shown

Array = NDArray[Any]

_ADDRESSABLE = 1 << 62
_NUMPY_DIMS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One named tensor: C-order little-endian bytes, read-only.

    A tensor whose bytes do not fit its shape, or a bool that is neither 0 nor 1, cannot exist.
    """

    name: str
    dtype: str  # a tag of `zktrace.models.dtypes`
    shape: tuple[int, ...]
    data: memoryview

    def __post_init__(self) -> None:
        check_name(self.name)
        dtype = BY_TAG.get(self.dtype)
        if dtype is None:
            raise MalformedModel(
                f"tensor {shown(self.name)}: dtype {shown(self.dtype)} is not one of {ALLOWED}"
            )
        object.__setattr__(self, "data", _octets(self.data))
        if any(size < 0 for size in self.shape) or len(self.shape) > _NUMPY_DIMS:
            raise MalformedModel(f"tensor {shown(self.name)}: impossible shape {shown_shape(self.shape)}")
        if math.prod(max(size, 1) for size in self.shape) * dtype.size >= _ADDRESSABLE:
            raise MalformedModel(f"tensor {shown(self.name)}: impossible shape {shown_shape(self.shape)}")
        if len(self.data) != math.prod(self.shape) * dtype.size:
            raise MalformedModel(
                f"tensor {shown(self.name)}: {len(self.data)} bytes for shape {shown_shape(self.shape)}"
            )
        if self.dtype == "bool" and len(self.data) and np.frombuffer(self.data, np.uint8).max() > 1:
            raise MalformedModel(f"tensor {shown(self.name)}: a bool that is neither 0 nor 1")

    @classmethod
    def from_array(cls, name: str, array: Array) -> Self:
        """A snapshot of a numpy array: later changes of the array do not reach it."""
        if not isinstance(array, np.ndarray | np.generic):
            kind = shown(type(array).__name__)
            raise MalformedModel(f"tensor {shown(name)}: not a numpy array but {kind}")
        dtype = BY_NUMPY.get((array.dtype.kind, array.dtype.itemsize))
        if dtype is None:
            raise MalformedModel(
                f"tensor {shown(name)}: dtype {shown(str(array.dtype))} is not one of {ALLOWED}"
            )
        little = np.array(array, dtype=f"<{dtype.numpy}{dtype.size}", order="C", copy=True)
        return cls(name=name, dtype=dtype.tag, shape=little.shape, data=little.data)

    def array(self) -> Array:
        """A read-only numpy array: a view of `data`, except that bfloat16 is widened (exactly) to float32."""
        dtype = BY_TAG[self.dtype]
        flat = np.frombuffer(self.data, dtype=f"<{dtype.numpy}{dtype.size}")
        if self.dtype == "bfloat16":
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
            flat.flags.writeable = False
        return flat.reshape(self.shape)


def _octets(data: memoryview) -> memoryview:
    """The same memory as read-only bytes (a view with a zero in its shape cannot be cast)."""
    return data.toreadonly().cast("B") if data.nbytes else memoryview(b"")


class ModelState(Mapping[str, Array]):
    """Name -> array, in the order of the names' UTF-8 bytes. Immutable.

    `state[name]` is a read-only array; `tensors()` gives the bytes and the exact element types.
    A state from `open_model` may be a view of the mapped file, which must stay as it is meanwhile.
    """

    __slots__ = ("_tensors",)

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        ordered = sorted(tensors, key=lambda tensor: tensor.name.encode())
        self._tensors = {tensor.name: tensor for tensor in ordered}
        if len(self._tensors) != len(ordered):
            raise MalformedModel("two tensors have the same name")

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """A snapshot of numpy arrays: the bytes are copied."""
        return cls(Tensor.from_array(name, array) for name, array in arrays.items())

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor, in order."""
        return tuple(self._tensors.values())

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not made for that."""
        return self._tensors[name].shape

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors together."""
        return sum(len(tensor.data) for tensor in self._tensors.values())

    def __getitem__(self, name: str) -> Array:
        return self._tensors[name].array()

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __eq__(self, other: object) -> bool:
        """Same names, element types, shapes and bytes."""
        return self.tensors() == other.tensors() if isinstance(other, ModelState) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ModelState({len(self)} tensors, {self.nbytes} bytes)"
