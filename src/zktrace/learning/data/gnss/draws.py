"""From uniform numbers to every other law, column by column.

A sample's randomness is one row of uniforms. Reading the same columns in the same order for every sample is
what lets a batch be computed at once and still give each sample what it would get alone.
"""

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class DrawColumns:
    """Rows of uniforms on [0, 1), consumed from the left."""

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._at = 0

    @property
    def used(self) -> int:
        """Columns consumed so far."""
        return self._at

    def many(self, count: int) -> Floats:
        """The next `count` columns, [rows, count]."""
        start, self._at = self._at, self._at + count
        if self._at > self._values.shape[1]:
            raise InputError(f"{self._at} columns asked of {self._values.shape[1]}")
        return self._values[:, start : self._at]

    def one(self) -> Floats:
        """The next column, [rows]."""
        return self.many(1)[:, 0]

    def between(self, low: float | Floats, high: float | Floats) -> Floats:
        """Uniform over an interval."""
        return low + (high - low) * self.one()

    def log_between(self, low: float | Floats, high: float | Floats) -> Floats:
        """Log-uniform over an interval."""
        return np.exp(self.between(np.log(low), np.log(high)))

    def integer(self, low: int, high: int) -> Ints:
        """Uniform over low..high, both included."""
        return low + np.floor(self.one() * (high - low + 1)).astype(np.int64)

    def choice(self, *weights: float) -> Ints:
        """0, 1, ... with these probabilities."""
        edges = np.cumsum(np.array(weights[:-1]))
        return np.searchsorted(edges, self.one(), side="right").astype(np.int64)

    def yes(self, probability: float) -> NDArray[np.bool_]:
        """True with this probability."""
        return self.one() < probability

    def normal(self) -> Floats:
        """Standard normal, by Box and Muller."""
        u = self.many(2)
        radius: Floats = np.sqrt(-2 * np.log1p(-u[:, 0]))
        return radius * np.cos(2 * np.pi * u[:, 1])


def exponential(u: Floats) -> Floats:
    """Exp(1)."""
    return -np.log1p(-u)


def laplace(u: Floats) -> Floats:
    """Laplace with scale 1."""
    centred = u - 0.5
    tail: Floats = np.log1p(-2 * np.abs(centred))
    return -np.sign(centred) * tail


def poisson(u: Floats, mean: Ints, limit: int) -> Ints:
    """Poisson(mean), cut off at `limit`, by counting the steps of the distribution function below u."""
    k = np.arange(limit)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, limit)))))
    mass = np.exp(k * np.log(mean[:, None]) - mean[:, None] - log_factorial)
    below: Ints = np.count_nonzero(np.cumsum(mass, axis=1) <= u[:, None], axis=1).astype(np.int64)
    return below
