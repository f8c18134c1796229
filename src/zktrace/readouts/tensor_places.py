"""Which row and which column of a suspect's tensor stands for each of the shared model's, knowing no graph.

A rewrite that keeps a network's function leaves a tensor as D1 P W Q D2: rows and columns permuted, and
scaled by factors of either sign. A tensor is seen as (rows, columns, taps): outputs, inputs, places of a
kernel.

(1) Rows and columns are balanced to mean squares of one (Sinkhorn). D1 and D2 are gone but for their signs,
    and absolute values take these away.
(2) A row is known by its sorted values, which the order of columns does not change; a column likewise.
(3) Given rows, columns are known by their values there, and rows given columns: in turn, until nothing moves.
    Only pairs that prefer each other count in the next turn.
(4) Signs are those of the leading singular pair of the products with the shared tensor; with them, once
    more (3) by the values themselves, which say more than their sizes.

Work is bounded: a very long axis stays in its order, long rows are compared in some of their places.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.readouts.assignment import Indices
from zktrace.readouts.directions import Floats

LONGEST: Final = 16384  # rows or columns that are put in another order
_WORK: Final = 1 << 34  # products at most to compare all rows with all,
_MOST, _LEAST = 4096, 128  # and places in which they are compared
_BALANCING: Final = 40
_BINS: Final = 64  # of sorted values
_TURNS: Final = 4
_ROUNDS: Final = 8  # in which pairs that prefer each other are taken out
_SURE: Final = 0.9  # agreement from which on a large tensor is not started otherwise
_LARGE: Final = 1 << 20
_MANY: Final = 1 << 23
_POWER: Final = 30
_CHUNK: Final = 1 << 22

Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Of each row and column of the shared tensor, which one of the suspect's it is."""

    rows: Indices
    columns: Indices

    def put(self, values: NDArray[Any]) -> NDArray[Any]:
        """A suspect's tensor in this order."""
        return np.asarray(values[self.rows][:, self.columns])

    @property
    def still(self) -> bool:
        """Whether nothing moves."""
        return all(np.array_equal(each, np.arange(len(each))) for each in (self.rows, self.columns))


def in_order(shape: tuple[int, ...]) -> Places:
    """Everything where it is."""
    return Places(rows=np.arange(shape[0]), columns=np.arange(shape[1]))


def products(one: NDArray[Any], other: NDArray[Any]) -> Floats | Singles:
    """Sums of products over the taps, (rows, columns): in float64, or in float32 if there are many."""
    rows, columns, taps = one.shape
    made = np.empty((rows, columns), dtype=np.float64 if rows * columns <= _MANY else np.float32)
    step = max(1, _CHUNK // max(1, columns * taps))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        first, second = one[part].astype(np.float64), other[part].astype(np.float64)
        made[part] = (first * second)[:, :, 0] if taps == 1 else np.einsum("ijk,ijk->ij", first, second)
    return made


def times(matrix: Floats | Singles, vector: Floats) -> Floats:
    """matrix @ vector in the matrix's precision, as float64."""
    return np.asarray(matrix @ vector.astype(matrix.dtype), dtype=np.float64)


def balance(squares: Floats | Singles) -> tuple[Floats, Floats]:
    """Factors of rows and columns under which every mean square is one; 0 for what is all zero."""
    rows, columns = np.ones(squares.shape[0]), np.ones(squares.shape[1])
    for _ in range(_BALANCING):
        before = rows
        rows = _inverse(times(squares, columns) / len(columns))
        columns = _inverse(times(squares.T, rows) / len(rows))
        if np.allclose(rows, before, rtol=1e-9, atol=0.0):
            break
    return np.sqrt(rows), np.sqrt(columns)


def _inverse(values: Floats) -> Floats:
    usable = (values > 0) & np.isfinite(values)
    return np.divide(1.0, values, out=np.zeros_like(values), where=usable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Balanced:
    """A tensor (rows, columns, taps) with the factors that balance it."""

    values: NDArray[Any]
    squares: Floats | Singles  # sums over the taps
    rows: Floats
    columns: Floats

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Balanced":
        squares = products(values, values)
        rows, columns = balance(squares)
        return cls(values=values, squares=squares, rows=rows, columns=columns)

    def turned(self) -> "Balanced":
        """Columns as rows."""
        return Balanced(
            values=self.values.swapaxes(0, 1), squares=self.squares.T, rows=self.columns, columns=self.rows
        )

    def some(self, chosen: Indices) -> Singles:
        """The balanced values of some rows, (rows, columns, taps)."""
        factors = self.rows[chosen][:, None, None] * self.columns[:, None]
        return np.asarray(self.values[chosen] * factors, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairing:
    """Of each of ours, which of theirs; which of these pairs prefer each other; their mean cosine."""

    order: Indices
    sure: Bools
    agreement: float


def find_places(theirs: Balanced, ours: Balanced) -> Places:
    """Where rows and columns of a suspect's tensor stand in the shared model's."""
    places = _places_by_size(theirs, ours)
    _, signs = leading_signs(theirs, ours, places, products(places.put(theirs.values), ours.values))
    for _ in range(_TURNS):
        before = places
        rows, row_signs = _by_values(theirs.turned(), ours.turned(), places.columns, signs)
        columns, signs = _by_values(theirs, ours, rows, row_signs)
        places = Places(rows=rows, columns=columns)
        if np.array_equal(before.rows, rows) and np.array_equal(before.columns, columns):
            break
    return places


def leading_signs(
    theirs: Balanced, ours: Balanced, places: Places, cross: Floats | Singles
) -> tuple[Floats, Floats]:
    """Signs of rows and columns, from the leading singular pair of the balanced products `cross`."""
    rows = theirs.rows[places.rows] * ours.rows
    columns = theirs.columns[places.columns] * ours.columns
    strongest = int((np.abs(times(np.abs(cross), columns)) * rows).argmax())
    right = cross[strongest].astype(np.float64) * columns
    left = np.ones(len(rows))
    for _ in range(_POWER):
        left = _normed(times(cross, columns * right) * rows)
        right = _normed(times(cross.T, rows * left) * columns)
    return np.where(left < 0, -1.0, 1.0), np.where(right < 0, -1.0, 1.0)


def _normed(vector: Floats) -> Floats:
    size = float(np.linalg.norm(vector))
    return vector / size if size > 0 else vector


def _places_by_size(theirs: Balanced, ours: Balanced) -> Places:
    """Steps (2) and (3): of four starts the one that agrees best, followed until nothing moves."""
    best: tuple[_Pairing, _Pairing] | None = None
    for turned in (False, True):
        pair = (theirs.turned(), ours.turned()) if turned else (theirs, ours)
        for by_sorted in (False, True):
            if best and ours.values.size > _LARGE and _agreement(best) > _SURE:
                break
            first = _by_sorted(*pair) if by_sorted else _known(pair[1].values.shape[0])
            second = _by_size(*pair, first)
            first = _by_size(pair[0].turned(), pair[1].turned(), second)
            found = (second, first) if turned else (first, second)
            if best is None or _agreement(found) > _agreement(best):
                best = found
    rows, columns = best or (_known(len(ours.rows)), _known(len(ours.columns)))
    for _ in range(_TURNS):
        before = rows, columns
        columns = _by_size(theirs, ours, rows)
        rows = _by_size(theirs.turned(), ours.turned(), columns)
        if all(np.array_equal(a.order, b.order) for a, b in zip(before, (rows, columns), strict=True)):
            break
    return Places(rows=rows.order, columns=columns.order)


def _known(count: int) -> _Pairing:
    return _Pairing(order=np.arange(count), sure=np.ones(count, dtype=bool), agreement=1.0)


def _agreement(pair: tuple[_Pairing, _Pairing]) -> float:
    return (pair[0].agreement + pair[1].agreement) / 2


def _by_size(theirs: Balanced, ours: Balanced, rows: _Pairing) -> _Pairing:
    """Columns by the sizes of their values in rows that are known."""
    chosen = _thinned(ours, rows.sure)
    return _paired(*(_sizes(each, at) for each, at in ((theirs, rows.order[chosen]), (ours, chosen))))


def _sizes(tensor: Balanced, rows: Indices) -> Singles:
    values = _as_features(np.abs(tensor.some(rows)))
    return np.asarray(values - values.mean(axis=0), dtype=np.float32)


def _by_values(theirs: Balanced, ours: Balanced, rows: Indices, signs: Floats) -> tuple[Indices, Floats]:
    """Columns, and their signs, by their values in rows that are known with their signs."""
    chosen = _thinned(ours, np.ones(len(rows), dtype=bool))
    signed = theirs.some(rows[chosen]) * signs[chosen].astype(np.float32)[:, None, None]
    one, other = _as_features(signed), _as_features(ours.some(chosen))
    order = _paired(one, other, signed=True).order
    return order, np.where(np.einsum("ij,ij->i", one[order], other) < 0, -1.0, 1.0)


def _thinned(ours: Balanced, sure: Bools) -> Indices:
    """Some of the sure rows, evenly: as many as columns can be compared in."""
    _, columns, taps = ours.values.shape
    most = int(np.clip(_WORK // columns**2, _LEAST, _MOST)) // taps
    usable = np.flatnonzero(sure) if sure.any() else np.arange(len(sure))
    count = min(len(usable), max(1, most))
    return np.asarray(usable[np.arange(count) * len(usable) // count], dtype=np.int64)


def _as_features(values: Singles) -> Singles:
    """Of each column its values in all rows and taps."""
    return np.ascontiguousarray(values.swapaxes(0, 1)).reshape(values.shape[1], -1)


def _by_sorted(theirs: Balanced, ours: Balanced) -> _Pairing:
    """Rows by their sorted sizes, tap by tap."""
    return _paired(_sorted(theirs), _sorted(ours))


def _sorted(tensor: Balanced) -> Singles:
    rows, columns, taps = tensor.values.shape
    bins = min(_BINS, columns, max(1, _MOST // taps))
    edges = np.arange(bins) * columns // bins
    counts = np.diff(np.append(edges, columns)).astype(np.float32)
    made = np.empty((rows, bins, taps), dtype=np.float32)
    step = max(1, _CHUNK // (columns * taps))
    for start in range(0, rows, step):
        chosen = np.arange(start, min(rows, start + step))
        values = np.sort(np.abs(tensor.some(chosen)), axis=1)
        made[chosen] = np.add.reduceat(values, edges, axis=1) / counts[:, None]
    flat = made.reshape(rows, -1)
    return np.asarray(flat - flat.mean(axis=0), dtype=np.float32)


def _paired(theirs: Singles, ours: Singles, *, signed: bool = False) -> _Pairing:
    """Rows with rows by cosines, `signed`: of either sign. Pairs that prefer each other go first."""
    count = len(ours)
    if count == 1 or count > LONGEST:
        return replace(_known(count), agreement=_cosine(theirs, ours))
    theirs, ours = _unit(theirs), _unit(ours)
    order = np.full(count, -1, dtype=np.int64)
    mine, their = np.arange(count), np.arange(count)
    sure = np.zeros(count, dtype=bool)
    total = 0.0
    for turn in range(_ROUNDS):
        best, worth, back = _preferred(theirs[their], ours[mine], signed=signed)
        mutual = back[best] == np.arange(len(mine))
        order[mine[mutual]] = their[best[mutual]]
        total += float(worth[mutual].sum(dtype=np.float64))
        if turn == 0:
            sure = order >= 0
        free = np.ones(len(their), dtype=bool)
        free[best[mutual]] = False
        mine, their = mine[~mutual], their[free]
        if not len(mine):
            break
    order[mine] = their
    return _Pairing(order=order, sure=sure, agreement=total / count)


def _preferred(theirs: Singles, ours: Singles, *, signed: bool) -> tuple[Indices, Singles, Indices]:
    """Of each of ours the likest of theirs and how like it is; of each of theirs the likest of ours."""
    best = np.empty(len(ours), dtype=np.int64)
    worth = np.empty(len(ours), dtype=np.float32)
    back = np.zeros(len(theirs), dtype=np.int64)
    top = np.full(len(theirs), -np.inf, dtype=np.float32)
    step = max(1, _CHUNK // len(theirs))
    for start in range(0, len(ours), step):
        part = slice(start, start + step)
        cosines = ours[part] @ theirs.T
        if signed:
            np.abs(cosines, out=cosines)
        best[part] = cosines.argmax(axis=1)
        worth[part] = cosines.max(axis=1)
        highest = cosines.max(axis=0)
        higher = highest > top
        back[higher] = start + cosines.argmax(axis=0)[higher]
        top[higher] = highest[higher]
    return best, worth, back


def _cosine(theirs: Singles, ours: Singles) -> float:
    return float(np.einsum("ij,ij->i", _unit(theirs), _unit(ours)).mean(dtype=np.float64))


def _unit(rows: Singles) -> Singles:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0), dtype=np.float32)
