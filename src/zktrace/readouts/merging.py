"""Matrices that lie one below the other in a larger one: found by content, at a bounded number of places."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd, prod
from typing import Final

import numpy as np

from zktrace.readouts.likeness import ALIKE, Arrangement, Held, Shape, likeness, places

_OFFSETS: Final = 256  # places that are tried in one matrix
_COMPARISONS: Final = 65_536


@dataclass(slots=True)
class Budget:
    """How many comparisons of samples may still be made."""

    left: int = _COMPARISONS


def merged_at(large: Held, wanted: Iterable[Held], budget: Budget) -> dict[str, tuple[Arrangement, int]]:
    """The wanted tensors that are rows of a suspect's: in which form of it, and from which row on."""
    found: dict[str, tuple[Arrangement, int]] = {}
    for form in _matrices(large.shape):
        inside = [each for each in wanted if _inside(each.shape, form.shape)]
        step = gcd(form.shape[0], *(each.shape[0] for each in inside))
        for each in inside:
            if each.name not in found:
                small = Arrangement(axes=each.plain.axes, shape=(each.shape[0], form.shape[1]))
                first = _placed((each, small), (large, form), step, budget)
                if first is not None:
                    found[each.name] = form, first
    return found


def split_into(shared: Held, theirs: Iterable[Held], budget: Budget) -> list[tuple[str, Arrangement]]:
    """The suspect's tensors that are the rows of a shared one, in order; none, if rows are left over."""
    large = next(_matrices(shared.shape), None)
    if large is None:
        return []
    parts = [
        (each, form) for each in theirs for form in _matrices(each.shape) if _inside(form.shape, large.shape)
    ]
    step = gcd(large.shape[0], *(form.shape[0] for _, form in parts))
    at: dict[int, tuple[str, Arrangement]] = {}
    for each, form in parts:
        first = _placed((each, form), (shared, large), step, budget)
        if first is not None:
            at.setdefault(first, (each.name, form))
    found, end = [], 0
    while end in at:
        found.append(at[end])
        end += at[end][1].shape[0]
    return found if end == large.shape[0] else []


def _matrices(stored: Shape) -> Iterator[Arrangement]:
    """An array as rows along its first axis; turned round, as rows along its last."""
    if stored and 0 not in stored:
        axes = tuple(range(len(stored)))
        yield Arrangement(axes=axes, shape=(stored[0], prod(stored[1:])))
        if len(stored) > 1:
            yield Arrangement(axes=axes[::-1], shape=(stored[-1], prod(stored[:-1])))


def _inside(shape: Shape, matrix: Shape) -> bool:
    """Whether a tensor of this shape can be some of the rows of a matrix, and not all."""
    return bool(shape) and 0 < shape[0] < matrix[0] and prod(shape[1:]) == matrix[1]


def _placed(
    small: tuple[Held, Arrangement], large: tuple[Held, Arrangement], step: int, budget: Budget
) -> int | None:
    """The row of a large matrix from which on its rows are most alike those of a small one, if they are."""
    (part, form), (whole, whole_form) = small, large
    firsts = np.arange(0, whole_form.shape[0] - form.shape[0] + 1, step)
    budget.left -= len(firsts)
    if len(firsts) > _OFFSETS or budget.left < 0:
        return None
    chosen = places(prod(form.shape))
    wanted = part.at(chosen, form)
    shifted = chosen + firsts[:, None] * form.shape[1]
    rows = whole.at(shifted.reshape(-1), whole_form).reshape(shifted.shape)
    alike = np.array([likeness(row, wanted) for row in rows])
    best = int(alike.argmax())
    return int(firsts[best]) if alike[best] >= ALIKE else None
