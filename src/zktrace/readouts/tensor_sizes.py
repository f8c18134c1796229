"""Rows and columns of a suspect's tensor at the sizes and signs that the shared model has them in."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.readouts.directions import Floats
from zktrace.readouts.tensor_places import Balanced, Places, Singles, leading_signs, products, times

_TURNS: Final = 40
_NOISE: Final = 4.0  # times what so many free factors take from noise: that much better they must be
_ROUNDING: Final = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sizes:
    """Factors of rows and columns in their places, and what is left, row by row and column by column."""

    rows: Floats
    columns: Floats
    left_rows: Floats  # squares of what the shared tensor has beyond the scaled suspect's,
    left_columns: Floats
    plain: bool  # whether all factors are one

    @property
    def left(self) -> float:
        return max(float(self.left_rows.sum()), 0.0)

    def apply(self, placed: NDArray[Any]) -> NDArray[Any]:
        """The suspect's tensor, already in its places, scaled; float64, or as wide as it is if large."""
        if self.plain:
            return placed
        return np.asarray(placed * (self.rows[:, None, None] * self.columns[:, None]))


def fit_sizes(theirs: Balanced, ours: Balanced, places: Places) -> Sizes:
    """By least squares, rows and columns in turn: shared = rows suspect columns.

    Factors that do no better than noise would let them are one, so that what was not scaled stays as it is.
    """
    squares = theirs.squares[places.rows][:, places.columns]
    cross = products(places.put(theirs.values), ours.values)
    _, signs = leading_signs(theirs, ours, places, cross)
    columns = signs * _ratio(theirs.columns[places.columns], ours.columns, np.ones(len(signs)))
    rows = np.ones(len(squares))
    for _ in range(_TURNS):
        before = rows
        rows = _ratio(times(cross, columns), times(squares, columns**2), rows)
        columns = _ratio(times(cross.T, rows), times(squares.T, rows**2), columns)
        if np.allclose(rows, before, rtol=1e-13, atol=0.0):
            break
    fitted = _left(ours.squares, cross, squares, rows, columns)
    still = _left(ours.squares, cross, squares, np.ones_like(rows), np.ones_like(columns))
    whole = float(ours.squares.sum(dtype=np.float64))
    freedom = _NOISE * (len(rows) + len(columns)) / ours.values.size
    shrunk = 1.0 - min(fitted.left / whole, 0.5)  # least squares also shrinks what is noisy
    return still if still.left <= fitted.left * (1.0 + freedom) / shrunk + _ROUNDING * whole else fitted


def _left(
    energy: Floats | Singles,
    cross: Floats | Singles,
    squares: Floats | Singles,
    rows: Floats,
    columns: Floats,
) -> Sizes:
    def rest(axis: int, own: Floats, other: Floats) -> Floats:
        turned = (cross, squares) if axis else (cross.T, squares.T)
        return np.asarray(
            energy.sum(axis=axis, dtype=np.float64)
            - 2.0 * own * times(turned[0], other)
            + own**2 * times(turned[1], other**2)
        )

    return Sizes(
        rows=rows,
        columns=columns,
        left_rows=rest(1, rows, columns),
        left_columns=rest(0, columns, rows),
        plain=bool((rows == 1.0).all() and (columns == 1.0).all()),
    )


def _ratio(product: Floats, square: Floats, otherwise: Floats) -> Floats:
    """product / square where that is a number, else `otherwise`."""
    usable = square > 0
    return np.where(usable, np.divide(product, square, out=np.ones_like(product), where=usable), otherwise)
