"""How many samples of each class: geometric, as the imbalance of the paper's recordings asks for."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.data.streams import generator

IMBALANCE: Final = 178.0  # largest class over smallest


def apportion(total: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers that sum to `total`, in proportion to `weights` by largest remainders (ties: first)."""
    exact = total * (weights / weights.sum())
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: total - int(counts.sum())]] += 1
    return counts


def class_counts(total: int, *, classes: int = 6, imbalance: float = IMBALANCE) -> NDArray[np.int64]:
    """Samples a class, falling geometrically by `imbalance` from first to last; none is empty.

    100,000 samples give 64655 22936 8136 2886 1024 363. An imbalance of 1 gives equal classes.
    """
    if classes < 1 or total < classes:
        raise InputError(f"{total} samples cannot fill {classes} classes")
    if not 1 <= imbalance <= 1e6:
        raise InputError(f"imbalance {imbalance:g}: must lie in 1..1e6")
    weights = imbalance ** (-np.arange(classes) / max(classes - 1, 1))
    counts = apportion(total, weights)
    for small in np.flatnonzero(counts == 0):
        counts[np.flatnonzero(counts == counts.max())[-1]] -= 1
        counts[small] = 1
    return counts


def shuffled_labels(counts: NDArray[np.int64], *, seed: int) -> NDArray[np.int64]:
    """A label for every sample number, in an order that only the seed decides."""
    labels = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    generator(seed, "labels").shuffle(labels)
    return labels
