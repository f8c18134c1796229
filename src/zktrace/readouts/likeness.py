"""How alike two tensors are, from a bounded sample of their elements, and in which order one is stored.

A *form* is a way to read a stored array as one of another shape: its axes in another order, then reshaped.
Nothing here knows a row: what is compared are a suspect's tensors and the shared model's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Shape = tuple[int, ...]

SAMPLE: Final = 4096  # elements of a tensor that are looked at
LEAST: Final = 256  # fewer elements say too little about who is who
ALIKE: Final = 0.5  # |correlation| from which two are the same: edited copies have > 0.9, strangers ~ 0.02
_GOLDEN: Final = 0.6180339887498949  # its multiples lie evenly between 0 and 1, in no pattern of columns
_LARGEST: Final = 1e100  # what can be squared and summed
_PART: Final = 1 << 20  # elements whose squares are summed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Axes of a stored array in their new order; then it is reshaped."""

    axes: Shape
    shape: Shape

    @property
    def plain(self) -> bool:
        """Whether the elements stay in their order."""
        return self.axes == tuple(range(len(self.axes)))

    def of(self, array: Array) -> Array:
        """The array in this form: a view, if it can be one."""
        return array.transpose(self.axes).reshape(self.shape)

    def at(self, array: Array, chosen: Indices) -> Floats:
        """Elements of the array in this form, by their places in C order; the form itself is not made."""
        return _picked(array.transpose(self.axes), chosen)


def forms(stored: Shape, wanted: Shape) -> list[Form]:
    """The forms of an array of one shape that have another, the plain one first.

    Axes may be as they are or reversed (matrices of other libraries), and of four the last two may have come
    first (kernels of TensorFlow). Axes of length 1 may be anywhere. Where no such form fits, the same number
    of elements in the same order will do.
    """
    size = len(stored)
    orders = [tuple(range(size)), tuple(reversed(range(size)))] + [(3, 2, 0, 1)] * (size == 4)
    fitting = [
        axes for axes in dict.fromkeys(orders) if _long(stored[axis] for axis in axes) == _long(wanted)
    ]
    if len(_long(stored)) < 2:
        fitting = fitting[:1]  # turning a vector changes nothing
    if not fitting and prod(stored) == prod(wanted):
        fitting = orders[:1]
    return [Form(axes=axes, shape=wanted) for axes in fitting]


def _long(shape: Iterable[int]) -> list[int]:
    return [length for length in shape if length != 1]


def places(count: int) -> Indices:
    """At most SAMPLE places among `count`: always the same, evenly spread."""
    if count <= SAMPLE:
        return np.arange(count, dtype=np.int64)
    spread = np.arange(1, SAMPLE + 1, dtype=np.float64) * _GOLDEN % 1.0
    return np.unique((spread * count).astype(np.int64))


def sample(array: Array) -> Floats:
    """The elements of an array at its places."""
    return _picked(array, places(array.size))


def _picked(array: Array, chosen: Indices) -> Floats:
    whole = np.atleast_1d(array)
    return finite(whole[np.unravel_index(chosen, whole.shape)])


def finite(values: Array) -> Floats:
    """As float64 that can be squared; what is not finite says nothing."""
    wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.clip(wide, -_LARGEST, _LARGEST)


def unit(values: Floats) -> Floats:
    """Centred and of length one; zero, if all values are the same."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(values)
    scaled = values / largest
    centred = scaled - scaled.mean()
    size = float(np.linalg.norm(centred))
    return centred / size if size > 1e-9 else np.zeros_like(values)


def likeness(one: Floats, other: Floats) -> float:
    """|correlation| of two samples at the same places."""
    return abs(float(unit(one) @ unit(other)))


def best_form(candidates: Sequence[Form], array: Array, shared: Array) -> tuple[Form, float]:
    """The form in which an array is most alike, and how much: the first one, unless only another is ALIKE."""
    chosen, wanted = places(shared.size), sample(shared)
    found = []
    for form in candidates:
        found.append((form, likeness(form.at(array, chosen), wanted)))
        if found[-1][1] >= ALIKE:
            return found[-1]
    return found[0]


def norms(array: Array, *, axis: int) -> Floats:
    """Sizes of the rows (axis 0) or the columns (axis 1) of an array as a matrix: first axis by all others.

    Those of columns stay when rows are put in another order, and those of rows when columns are.
    """
    matrix = array.reshape(array.shape[0], -1)
    squares = np.zeros(matrix.shape[axis])
    step = max(1, _PART // max(matrix.shape[1], 1))
    for at in range(0, len(matrix), step):
        part = np.square(finite(matrix[at : at + step]))
        if axis == 0:
            squares[at : at + step] = part.sum(axis=1)
        else:
            squares += part.sum(axis=0)
    return np.sqrt(squares)
