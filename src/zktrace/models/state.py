"""A model's state: named tensors, immutable; views of a mapped file, or made when they are asked for."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import MalformedModel
from zktrace.models.dtypes import ALLOWED, BY_NUMPY, BY_TAG
from zktrace.models.limits import check_name, shown_shape
from zktrace.primitives.text import shown

Array = NDArray[Any]
Piece = bytes | bytearray | memoryview | Array  # contiguous; its bytes are what counts

PIECE_BYTES = 16 << 20  # how much of a tensor is hashed, written or made at a time
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
        object.__setattr__(self, "data", _octets(self.data))
        _check(self.name, self.dtype, self.shape)
        if len(self.data) != self.nbytes:
            raise MalformedModel(
                f"tensor {shown(self.name)}: {len(self.data)} bytes for shape {shown_shape(self.shape)}"
            )
        _check_values(self.name, self.dtype, self.data)

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

    @property
    def nbytes(self) -> int:
        """Bytes of all elements together, from the shape."""
        return math.prod(self.shape) * BY_TAG[self.dtype].size

    def array(self) -> Array:
        """A read-only numpy array: a view of `data`, except that bfloat16 is widened (exactly) to float32."""
        return _flat(self.dtype, self.data).reshape(self.shape)

    def pieces(self) -> Iterator[memoryview]:
        """The bytes of `data` in order, PIECE_BYTES at a time, each piece of whole elements."""
        for at in range(0, len(self.data), PIECE_BYTES):
            yield self.data[at : at + PIECE_BYTES]

    def runs(self) -> Iterator[Array]:
        """The elements in order as flat arrays, one a piece: what `array()` holds, a little at a time."""
        return (_flat(self.dtype, piece) for piece in self.pieces())

    def at(self, places: NDArray[np.int64]) -> Array:
        """The elements at these places in C order, of which there are that many; nothing else is widened."""
        dtype = BY_TAG[self.dtype]
        chosen = np.frombuffer(self.data, dtype=f"<{dtype.numpy}{dtype.size}")[places]
        return _flat(self.dtype, chosen.data)


class LazyTensor(Tensor):
    """A tensor whose bytes are made when they are asked for, and kept by nobody.

    `make` is called for each use and gives the bytes in order, in pieces of whole elements that it does not
    change afterwards. Pieces that together are not what the shape says raise `MalformedModel` in the use.
    """

    __slots__ = ("_make",)

    _make: Callable[[], Iterable[Piece]]

    def __init__(
        self, *, name: str, dtype: str, shape: tuple[int, ...], make: Callable[[], Iterable[Piece]]
    ) -> None:
        _check(name, dtype, shape)
        for field, value in (("name", name), ("dtype", dtype), ("shape", shape), ("_make", make)):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"LazyTensor({self.name!r}, {self.dtype}, {self.shape})"

    @property
    def data(self) -> memoryview:
        """All bytes, made now."""
        whole = np.empty(self.nbytes, dtype=np.uint8)
        at = 0
        for piece in self.pieces():
            whole[at : at + len(piece)] = piece
            at += len(piece)
        return whole.data.toreadonly()

    def pieces(self) -> Iterator[memoryview]:
        """The bytes in order, made now, as they come from `make`."""
        left, size = self.nbytes, BY_TAG[self.dtype].size
        for made in self._make():
            piece = _octets(made.data if isinstance(made, np.ndarray) else memoryview(made))
            left -= len(piece)
            if left < 0 or len(piece) % size:
                raise self._misfit("too many bytes, or a part of an element,")
            _check_values(self.name, self.dtype, piece)
            yield piece
        if left:
            raise self._misfit(f"{left} bytes too few")

    def at(self, places: NDArray[np.int64]) -> Array:
        """The elements at these places; all are made for that, a piece at a time."""
        order = np.argsort(places, kind="stable")
        ordered, start, found = places[order], 0, []
        for run in self.runs():
            first, last = np.searchsorted(ordered, (start, start + len(run)))
            found.append(run[ordered[first:last] - start])
            start += len(run)
        chosen = np.concatenate(found) if found else np.empty(0)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return chosen[back]

    def _misfit(self, fault: str) -> MalformedModel:
        return MalformedModel(f"tensor {shown(self.name)}: {fault} made for {shown_shape(self.shape)}")


def _check(name: str, tag: str, shape: tuple[int, ...]) -> None:
    """Refuse a name, an element type or a shape that no tensor can have."""
    check_name(name)
    dtype = BY_TAG.get(tag)
    if dtype is None:
        raise MalformedModel(f"tensor {shown(name)}: dtype {shown(tag)} is not one of {ALLOWED}")
    absurd = math.prod(max(size, 1) for size in shape) * dtype.size >= _ADDRESSABLE
    if any(size < 0 for size in shape) or len(shape) > _NUMPY_DIMS or absurd:
        raise MalformedModel(f"tensor {shown(name)}: impossible shape {shown_shape(shape)}")


def _check_values(name: str, tag: str, data: memoryview) -> None:
    if tag == "bool" and len(data) and np.frombuffer(data, np.uint8).max() > 1:
        raise MalformedModel(f"tensor {shown(name)}: a bool that is neither 0 nor 1")


def _flat(tag: str, data: memoryview) -> Array:
    """The elements of these bytes, read-only; bfloat16 as the float32 of the same value."""
    dtype = BY_TAG[tag]
    flat = np.frombuffer(data, dtype=f"<{dtype.numpy}{dtype.size}")
    if tag == "bfloat16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
        flat.flags.writeable = False
    return flat


def _octets(data: memoryview) -> memoryview:
    """The same memory as read-only bytes (a view with a zero in its shape cannot be cast)."""
    if data.nbytes and not data.c_contiguous:
        raise MalformedModel("the bytes of a tensor must lie one after the other")
    return data.toreadonly().cast("B") if data.nbytes else memoryview(b"")


def _same(one: Tensor, other: Tensor) -> bool:
    """Same name, element type, shape and bytes, whatever kind of tensor."""
    kinds = [(each.name, each.dtype, each.shape) for each in (one, other)]
    return kinds[0] == kinds[1] and one.data == other.data


class ModelState(Mapping[str, Array]):
    """Name -> array, in the order of the names' UTF-8 bytes. Immutable.

    `state[name]` is a read-only array; `tensors()` gives the bytes and the exact element types.
    A state from `open_model` may be a view of the mapped file, which must stay as it is meanwhile. Lazy
    tensors are made anew for each use: read one, use it, let it go.
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

    def tensor(self, name: str) -> Tensor:
        """One tensor: its bytes, its exact element type."""
        return self._tensors[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not made for that."""
        return self._tensors[name].shape

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors together."""
        return sum(tensor.nbytes for tensor in self._tensors.values())

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
        if not isinstance(other, ModelState):
            return NotImplemented
        return list(self) == list(other) and all(map(_same, self.tensors(), other.tensors()))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ModelState({len(self)} tensors, {self.nbytes} bytes)"
