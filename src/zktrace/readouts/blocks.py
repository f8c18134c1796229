"""Matrices that lie one below the other in a larger one: found by content, at a bounded number of places."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import gcd, prod
from typing import Final

import numpy as np

from zktrace.readouts.likeness import ALIKE, Array, Form, Shape, finite, likeness, places, sample

_OFFSETS: Final = 1024  # places that are tried in one matrix
_COMPARISONS: Final = 65_536


@dataclass(slots=True)
class Budget:
    """How many comparisons of samples may still be made."""

    left: int = _COMPARISONS


def merged_at(
    suspect: Mapping[str, Array],
    theirs: str,
    stored: Shape,
    shared: Mapping[str, Array],
    wanted: Mapping[str, Shape],
    *,
    budget: Budget,
) -> dict[str, tuple[Form, int]]:
    """The wanted tensors that are rows of a suspect's matrix: in which form of it, and from which row on."""
    found: dict[str, tuple[Form, int]] = {}
    large: Array | None = None
    for form in _matrices(stored):
        rows, width = form.shape
        inside = {name: shape for name, shape in wanted.items() if _inside(shape, rows, width)}
        step = gcd(rows, *(shape[0] for shape in inside.values()))
        for name, shape in inside.items():
            if name not in found and _trials(rows, shape[0], step):
                large = suspect[theirs] if large is None else large
                first = _placed(shared[name], form.of(large), step, budget)
                if first is not None:
                    found[name] = form, first
    return found


def split_into(
    shared: Array, suspect: Mapping[str, Array], theirs: Mapping[str, Shape], budget: Budget
) -> list[tuple[str, Form]]:
    """The suspect's tensors that are the rows of a shared one, in order; none, if rows are left over."""
    if shared.ndim == 0:
        return []
    large = shared.reshape(shared.shape[0], -1)
    rows, width = large.shape
    parts = {
        name: [form for form in _matrices(shape) if _inside(form.shape, rows, width)]
        for name, shape in theirs.items()
    }
    step = gcd(rows, *(form.shape[0] for some in parts.values() for form in some))
    at: dict[int, tuple[str, Form]] = {}
    for name, some in parts.items():
        for form in some:
            if _trials(rows, form.shape[0], step):
                first = _placed(form.of(suspect[name]), large, step, budget)
                if first is not None:
                    at.setdefault(first, (name, form))
                    break
    found, end = [], 0
    while end in at:
        found.append(at[end])
        end += at[end][1].shape[0]
    return found if end == rows else []


def _matrices(stored: Shape) -> Iterator[Form]:
    """An array as rows along its first axis; turned round, as rows along its last."""
    if stored and 0 not in stored:
        axes = tuple(range(len(stored)))
        yield Form(axes=axes, shape=(stored[0], prod(stored[1:])))
        if len(stored) > 1:
            yield Form(axes=axes[::-1], shape=(stored[-1], prod(stored[:-1])))


def _inside(shape: Shape, rows: int, width: int) -> bool:
    """Whether a tensor of this shape can be some of the rows, and not all."""
    return bool(shape) and 0 < shape[0] < rows and prod(shape[1:]) == width


def _trials(rows: int, count: int, step: int) -> int:
    """At how many places to look; none, if they are too many."""
    trials = (rows - count) // step + 1
    return trials if trials <= _OFFSETS else 0


def _placed(small: Array, large: Array, step: int, budget: Budget) -> int | None:
    """The first row of `small` in the matrix `large`, if somewhere its rows are alike."""
    count, width = small.shape[0], large.shape[1]
    wanted = sample(small)
    row, column = np.divmod(places(small.size), width)
    best, first = ALIKE, None
    for at in range(0, len(large) - count + 1, step):
        budget.left -= 1
        if budget.left < 0:
            return None
        alike = likeness(finite(large[row + at, column]), wanted)
        if alike >= best:
            best, first = alike, at
    return first
