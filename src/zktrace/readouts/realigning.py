"""A disguised suspect tensor by tensor in the shared model's coordinates, whatever the architecture.

Permuted, rescaled and sign-flipped channels leave each tensor as D1 P W Q D2, so every tensor is put back by
itself (`tensor_places`, `tensor_sizes`): no graph is known, and nothing is assumed of how tensors hang
together. A tensor that cannot be put back is only noise to a reader, which weighs tensors by what they moved.

The reference is the shared model. Rows, keys and directions play no part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.text import shown
from zktrace.readouts.scales import Arrays, shape_of
from zktrace.readouts.tensor_places import Balanced, Places, find_places, in_order
from zktrace.readouts.tensor_sizes import Sizes, fit_sizes

LARGEST: Final = 1 << 25  # numbers of a tensor that is aligned,
_FEWEST: Final = 4  # and numbers a row and column: another one is taken as it is
_EXPLAINED: Final = 0.25  # of the squares of a row: more left over, and other places are looked for,
_BETTER: Final = 0.8  # which must leave so much less of all squares


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aligned:
    """A suspect's tensor in the shared tensor's coordinates."""

    array: NDArray[Any]
    residual: float  # root mean square of what it differs by, in deviations of the shared tensor
    moved: bool  # whether anything was permuted or scaled


def align_tensor(suspect: NDArray[Any], shared: NDArray[Any]) -> Aligned:
    """Undo permuted, rescaled and sign-flipped rows and columns (the first two axes) of one tensor.

    Both are finite, of one shape, with two axes or more; else InputError.
    """
    _check("suspect", suspect)
    _check("shared", shared)
    if suspect.shape != shared.shape:
        raise InputError(f"a tensor of shape {suspect.shape} for one of {shared.shape}")
    deviation = float(np.std(shared, dtype=np.float64))
    if not deviation > 0:
        raise InputError("all numbers of the shared tensor are the same: nothing is aligned with it")
    given, wanted = (_taps(each) for each in (suspect, shared))
    if suspect.size > LARGEST or suspect.size < _FEWEST * sum(given.shape[:2]):
        return Aligned(array=suspect, residual=_distance(suspect, shared) / deviation, moved=False)
    places, sizes = best_fit(given, wanted)
    moved = not (places.still and sizes.plain)
    array = sizes.apply(places.put(given)).reshape(shared.shape) if moved else suspect
    return Aligned(array=array, residual=_distance(array, shared) / deviation, moved=moved)


def best_fit(given: NDArray[Any], wanted: NDArray[Any]) -> tuple[Places, Sizes]:
    """Places and sizes of a suspect's tensor in three axes, (rows, columns, taps).

    Things are where they are if that explains every row and column, or about as much as other places do.
    """
    largest = float(np.abs(given).max())
    if largest > 0 and not 1e-60 < largest < 1e60:  # squares of it are no numbers
        raise InputError(f"a tensor with numbers of up to {largest:.1e} is not aligned")
    theirs, ours = Balanced.of(given), Balanced.of(wanted)
    still = in_order(wanted.shape)
    sizes = fit_sizes(theirs, ours, still)
    if not largest or _explained(sizes, ours):
        return still, sizes
    places = find_places(theirs, ours)
    other = fit_sizes(theirs, ours, places)
    return (places, other) if other.left < _BETTER * sizes.left else (still, sizes)


def _explained(sizes: Sizes, ours: Balanced) -> bool:
    rows, columns = (ours.squares.sum(axis=axis, dtype=np.float64) for axis in (1, 0))
    worst = (sizes.left_rows - _EXPLAINED * rows).max(), (sizes.left_columns - _EXPLAINED * columns).max()
    return float(max(worst)) <= 0


def _check(whose: str, array: NDArray[Any]) -> None:
    if array.ndim < 2 or array.dtype.kind != "f" or not array.size:
        raise InputError(f"the {whose} tensor has shape {array.shape} and type {array.dtype}: not aligned")
    if not np.isfinite(array).all():
        raise InputError(f"the {whose} tensor has numbers that are not finite")


def _taps(array: NDArray[Any]) -> NDArray[Any]:
    """As (rows, columns, taps), without leading axes of one; float16 would overflow on the way."""
    wide = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    shape = array.shape
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    return wide.reshape(*shape[:2], -1)


def _distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Root mean square of the difference."""
    return float(np.sqrt(np.mean(np.square(one.astype(np.float64) - other))))


class Tensors(Mapping[str, NDArray[Any]]):
    """Some tensors of a model, each made when it is asked for and not kept; shaped as those of another."""

    def __init__(self, names: Iterable[str], make: Callable[[str], NDArray[Any]], like: Arrays) -> None:
        self._names = dict.fromkeys(names)
        self._make, self._like = make, like

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, which is not made for that."""
        return shape_of(self._like, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def realigned(suspect: Arrays, shared: Arrays, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
    """The named tensors of a suspect, each in the shared model's coordinates; made one at a time.

    A name that either lacks, or has in another shape, is left out. A tensor of numbers that are not finite is
    an InputError when it is asked for.
    """

    def make(name: str) -> NDArray[Any]:
        try:
            return align_tensor(suspect[name], shared[name]).array
        except InputError as error:
            raise InputError(f"{shown(name)}: {error}") from None

    return Tensors(comparable(suspect, shared, names), make, shared)


def comparable(suspect: Arrays, shared: Arrays, names: Iterable[str]) -> list[str]:
    """The names under which both have a tensor of one shape, two axes or more."""
    return [
        name
        for name in names
        if name in suspect
        and name in shared
        and len(shape_of(shared, name)) >= 2
        and shape_of(suspect, name) == shape_of(shared, name)
    ]
