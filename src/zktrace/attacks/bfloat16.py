"""bfloat16, which numpy does not have: 16 bits that are the upper half of a float32."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint16]


def widened(bits: NDArray[Any]) -> NDArray[np.float32]:
    """The numbers that these bits stand for, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(values: NDArray[np.float64]) -> Bits:
    """The bits nearest to finite numbers; of two that are as near the even ones.

    On the way through float32 a number may be moved onto the middle between two neighbours; the side on which
    it was then decides.
    """
    single = values.astype(np.float32)
    whole = single.view(np.uint32)
    upper, lower = whole >> 16, whole & 0xFFFF
    side = np.sign(np.abs(values) - np.abs(single.astype(np.float64)))
    middle = np.where(side == 0, upper & 1 == 1, side > 0)
    up = np.where(lower == 0x8000, middle, lower > 0x8000)
    return (upper + up).astype(np.uint16)
