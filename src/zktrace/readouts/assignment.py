"""Who goes with whom: the assignment of greatest total, in numpy alone, for readers without scipy."""

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


def assign(worth: Floats) -> Indices:
    """For each row of a square matrix its own column, so that the sum of the chosen entries is greatest.

    Where the best columns of all rows differ they are the answer. Other rows are added one at a time along
    shortest augmenting paths (Jonker and Volgenant), under prices that keep what is chosen optimal.
    """
    if worth.ndim != 2 or worth.shape[0] != worth.shape[1] or not np.isfinite(worth).all():
        raise InputError("an assignment needs a square matrix of finite numbers")
    size = len(worth)
    cost = worth.max(axis=1, keepdims=True, initial=0.0) - worth if size else worth
    prices = np.zeros(size)
    row_of = np.full(size, -1, dtype=np.int64)  # by column
    waiting = []
    for row, column in enumerate(worth.argmax(axis=1) if size else []):
        if row_of[column] < 0:
            row_of[column] = row
        else:
            waiting.append(row)
    for row in waiting:
        _augment(cost, prices, row_of, row)
    chosen = np.empty(size, dtype=np.int64)
    chosen[row_of] = np.arange(size)
    return chosen


def _augment(cost: Floats, prices: Floats, row_of: Indices, start: int) -> None:
    """Give `start` a column by moving others along the cheapest path. Changes prices and row_of.

    A row's own dual is its cheapest reduced cost, which a chosen entry attains, so only columns have prices.
    """
    size = len(prices)
    distance = np.full(size, np.inf)
    before = np.full(size, -1, dtype=np.int64)  # the column whose row leads here; -1: the start
    done = np.zeros(size, dtype=bool)
    row, through, length = start, -1, 0.0
    while True:
        reduced = cost[row] - prices
        floor = reduced[through] if through >= 0 else reduced.min()
        reached = length + (reduced - floor)
        nearer = ~done & (reached < distance)
        distance[nearer] = reached[nearer]
        before[nearer] = through
        through = int(np.where(done, np.inf, distance).argmin())
        length = float(distance[through])
        if row_of[through] < 0:
            break
        done[through] = True
        row = int(row_of[through])
    prices[done] += distance[done] - length
    while through >= 0:
        previous = int(before[through])
        row_of[through] = start if previous < 0 else row_of[previous]
        through = previous
