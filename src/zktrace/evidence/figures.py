"""Figures for people, rounded to the safe side: scores down, thresholds up."""

import math
from fractions import Fraction


def down(value: Fraction | float) -> str:
    """Two decimals, not above the value."""
    return f"{math.floor(value * 100) / 100:.2f}"


def up(value: Fraction | float) -> str:
    """Two decimals, not below the value."""
    return f"{math.ceil(value * 100) / 100:.2f}"


def chance(value: Fraction) -> str:
    """A probability as it is, and as a person reads it."""
    return "0" if value == 0 else f"{value} ({float(value):.3g})"
