"""How alike two tensors are, from a bounded sample of their elements, and in which order one is stored.

Tensors are looked at where they are held: none is made as a whole. A *form* (`Arrangement`) is a way to read
a stored array as one of another shape: its axes in another order, then reshaped. Nothing here knows a row:
what is compared are a suspect's tensors and the shared model's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.models import ModelState

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
class Arrangement:
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

    def stored_at(self, chosen: Indices, stored: Shape) -> Indices:
        """Where the elements at these places of the form, in C order, lie in an array of the stored shape."""
        if self.plain:
            return chosen
        turned = np.unravel_index(chosen, [stored[axis] for axis in self.axes])
        back = [turned[self.axes.index(axis)] for axis in range(len(stored))]
        return np.ravel_multi_index(back, stored).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Held:
    """One tensor of a model, not made yet."""

    model: Mapping[str, Array]
    name: str

    @property
    def shape(self) -> Shape:
        """Its shape, from the model's table where it has one."""
        if isinstance(self.model, ModelState):
            return self.model.shape(self.name)
        return np.shape(self.model[self.name])

    @property
    def plain(self) -> Arrangement:
        """As it is stored."""
        return Arrangement(axes=tuple(range(len(self.shape))), shape=self.shape)

    def at(self, chosen: Indices, form: Arrangement | None = None) -> Floats:
        """Elements by their places in C order, of the tensor or of a form of it."""
        where = chosen if form is None else form.stored_at(chosen, self.shape)
        if isinstance(self.model, ModelState):
            return finite(self.model.tensor(self.name).at(where))
        return finite(self.model[self.name].reshape(-1)[where])

    def sample(self, form: Arrangement | None = None) -> Floats:
        """The elements at `places`."""
        return self.at(places(prod(self.shape)), form)

    def runs(self) -> Iterator[Array]:
        """All elements in order as flat arrays, a little at a time where the model keeps them so."""
        if isinstance(self.model, ModelState):
            return self.model.tensor(self.name).runs()
        return iter((self.model[self.name].reshape(-1),))


def forms(stored: Shape, wanted: Shape) -> list[Arrangement]:
    """The forms of an array of one shape that have another, the plain one first.

    Axes may be as they are or reversed (matrices of other libraries), and of four the last two may have come
    first (kernels of TensorFlow). Axes of length 1 may be anywhere. Where no such form fits, the same number
    of elements in the same order will do.
    """
    size = len(stored)
    orders = [tuple(range(size)), tuple(reversed(range(size)))] + [(3, 2, 0, 1)] * (size == 4)
    different: dict[Shape, Shape] = {}  # by the order of the axes that have one
    for axes in orders:
        different.setdefault(tuple(axis for axis in axes if stored[axis] != 1), axes)
    turned = different.values()
    fitting = [axes for axes in turned if _long(stored[axis] for axis in axes) == _long(wanted)]
    if not fitting and prod(stored) == prod(wanted):
        fitting = orders[:1]
    return [Arrangement(axes=axes, shape=wanted) for axes in fitting]


def _long(shape: Iterable[int]) -> list[int]:
    return [length for length in shape if length != 1]


def places(count: int) -> Indices:
    """At most SAMPLE places among `count`: always the same, evenly spread."""
    if count <= SAMPLE:
        return np.arange(count, dtype=np.int64)
    spread = np.arange(1, SAMPLE + 1, dtype=np.float64) * _GOLDEN % 1.0
    return np.unique((spread * count).astype(np.int64))


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


def best_form(candidates: Sequence[Arrangement], theirs: Held, shared: Held) -> tuple[Arrangement, float]:
    """The form in which a tensor is alike, and how much: the first one, unless only another is ALIKE."""
    wanted = shared.sample()
    found = []
    for form in candidates:
        found.append((form, likeness(theirs.sample(form), wanted)))
        if found[-1][1] >= ALIKE:
            return found[-1]
    return found[0]


def norms(held: Held, form: Arrangement, *, axis: int) -> Floats | None:
    """Sizes of the rows (axis 0) or the columns (axis 1) of a form as a matrix: first axis by all others.

    Those of columns stay when rows are put in another order, and those of rows when columns are. None for
    kernels whose axes are reversed.
    """
    shape = held.shape if form.plain else tuple(_long(held.shape))
    if len(shape) < 2 or (not form.plain and len(shape) > 2):
        return None
    rows, width = (form.shape[0], prod(form.shape[1:])) if form.plain else shape
    by_row = (axis == 0) == form.plain
    squares, start = np.zeros(rows if by_row else width), 0
    for run in held.runs():
        for at in range(0, len(run), _PART):
            part = np.square(finite(run[at : at + _PART]))
            where = np.arange(start + at, start + at + len(part))
            where = where // width if by_row else where % width
            squares += np.bincount(where, weights=part, minlength=len(squares))
        start += len(run)
    return np.sqrt(squares)
