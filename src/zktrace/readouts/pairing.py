"""One to one: tensors of two models by a vector that is alike where they are the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from zktrace.readouts.assignment import assign
from zktrace.readouts.likeness import Arrangement, Array, Floats, Held, Shape, forms

Score = Callable[[Held, Arrangement], Floats]  # a tensor in a form -> a vector of length one, or of zeros

_BATCH: Final = 64  # vectors that are compared at a time


def pairs(
    score: Score,
    shared: Mapping[str, Array],
    wanted: Mapping[str, Shape],
    suspect: Mapping[str, Array],
    theirs: Sequence[str],
    *,
    least: float,
) -> Iterator[tuple[str, str, Arrangement]]:
    """Names, the suspect's tensors that go with them, and in which form: of greatest total likeness.

    Likeness is the size of the product of two vectors; below `least` it does not count. All tensors have the
    same number of elements.
    """
    rows = list(wanted)
    if not rows or not theirs:
        return
    worth, chosen = np.zeros((len(rows), len(theirs))), {}
    for shape in dict.fromkeys(wanted.values()):
        own = [at for at, name in enumerate(rows) if wanted[name] == shape]
        held = [Held(shared, rows[at]) for at in own]
        vectors = np.array([score(each, each.plain) for each in held])
        for batch in _batches(_vectors(score, suspect, theirs, shape)):
            product = np.abs(vectors @ np.array([vector for _, _, vector in batch]).T)
            for (column, form, _), values in zip(batch, product.T, strict=True):
                for at, value in zip(own, values, strict=True):
                    if value >= least and value > worth[at, column]:
                        worth[at, column] = value
                        chosen[at, column] = form
    for at, column in _assigned(worth):
        yield rows[at], theirs[column], chosen[at, column]


def _vectors(
    score: Score, suspect: Mapping[str, Array], theirs: Sequence[str], shape: Shape
) -> Iterator[tuple[int, Arrangement, Floats]]:
    """Each of the suspect's tensors in each of its forms."""
    for column, name in enumerate(theirs):
        held = Held(suspect, name)
        for form in forms(held.shape, shape):
            yield column, form, score(held, form)


def _batches(
    vectors: Iterator[tuple[int, Arrangement, Floats]],
) -> Iterator[list[tuple[int, Arrangement, Floats]]]:
    batch: list[tuple[int, Arrangement, Floats]] = []
    for each in vectors:
        batch.append(each)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _assigned(worth: Floats) -> list[tuple[int, int]]:
    """Rows and columns of the assignment of greatest total that are worth something."""
    rows, columns = np.flatnonzero(worth.any(axis=1)), np.flatnonzero(worth.any(axis=0))
    size = max(len(rows), len(columns))
    square = np.zeros((size, size))
    square[: len(rows), : len(columns)] = worth[np.ix_(rows, columns)]
    found = [
        (int(rows[at]), int(columns[column]))
        for at, column in enumerate(assign(square)[: len(rows)])
        if column < len(columns)
    ]
    return [(at, column) for at, column in found if worth[at, column] > 0]
