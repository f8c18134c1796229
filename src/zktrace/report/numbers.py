"""Numbers for a person. What bounds something is rounded to the safe side."""

import math

from zktrace.primitives.rounding import NONE, at_least, at_most, chance, down, plain, up

__all__ = ["NONE", "at_least", "at_most", "chance", "down", "fixed", "percent", "plain", "up"]


def fixed(value: float | None, *, decimals: int = 3) -> str:
    """So many decimals: for columns that are compared."""
    return NONE if value is None or not math.isfinite(value) else f"{value:.{decimals}f}"


def percent(value: float | None) -> str:
    """A share as per cent, one decimal."""
    return NONE if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"
