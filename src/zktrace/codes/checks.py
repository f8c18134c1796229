"""Arguments that cannot be used, said in one line."""

import operator
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits

Floats = NDArray[np.float64]


def whole(value: SupportsIndex, name: str, low: int, high: int) -> int:
    """An integer in [low, high]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, not {value!r}") from None
    if not low <= number <= high:
        raise InputError(f"{name} must lie in {low}..{high}, not {number}")
    return number


def real_vector(values: ArrayLike, length: int, name: str) -> Floats:
    """`length` finite float64 numbers."""
    try:
        vector: Floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be real numbers") from None
    if vector.shape != (length,):
        raise InputError(f"{name} must have shape ({length},), not {vector.shape}")
    if not np.isfinite(vector).all():
        raise InputError(f"{name} must be finite: position {int(np.argmin(np.isfinite(vector)))} is not")
    return vector


def packed_rows(rows: object, length: int) -> Bits:
    """Rows of `length` bits as `Code.rows` packs them."""
    width = -(-length // 8)
    if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8:
        raise InputError("rows must be a uint8 array of packed bits")
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InputError(f"rows of {length} bits must have shape (rows, {width}), not {rows.shape}")
    return rows
