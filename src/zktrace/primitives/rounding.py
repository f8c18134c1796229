"""Figures for people, in one place: the same number has the same digits everywhere.

What bounds something is rounded to the safe side: chances and thresholds up, scores down.
"""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final

NONE: Final = "\N{EN DASH}"  # where there is no number
DIGITS: Final = 3  # significant ones, of a probability
_READABLE: Final = 24  # characters of a fraction that somebody may still want to read


def down(value: Fraction | float) -> str:
    """Two decimals, not above the value: a score."""
    return _two_decimals(value, math.floor)


def up(value: Fraction | float) -> str:
    """Two decimals, not below the value: a threshold."""
    return _two_decimals(value, math.ceil)


def chance(value: Fraction) -> str:
    """A probability as it is, and as a person reads it; what is too long to be read is rounded up alone."""
    shown, whole = at_most(value), str(value)
    return shown if shown == whole or len(whole) > _READABLE else f"{whole} ({shown})"


def at_most(value: Fraction | float | None, *, digits: int = DIGITS) -> str:
    """Some significant digits, rounded up: still an upper bound."""
    return _significant(value, digits, ROUND_CEILING)


def at_least(value: Fraction | float | None, *, digits: int = DIGITS) -> str:
    """Some significant digits, rounded down: still a lower bound."""
    return _significant(value, digits, ROUND_FLOOR)


def plain(value: Fraction | float | None, *, digits: int = 4) -> str:
    """Some significant digits of what bounds nothing; a dash for what is not there."""
    return _significant(value, digits, ROUND_HALF_EVEN)


def _two_decimals(value: Fraction | float, rounding: Callable[[Fraction], int]) -> str:
    """Exactly: a float may be the very number that stands elsewhere as a fraction."""
    if not math.isfinite(value):
        return _odd(value)
    hundredths = rounding(Fraction(value) * 100)
    whole, rest = divmod(abs(hundredths), 100)
    return f"{'-' if hundredths < 0 else ''}{whole}.{rest:02d}"


def _significant(value: Fraction | float | None, digits: int, rounding: str) -> str:
    if value is None or not math.isfinite(value):
        return _odd(value)
    ratio = Fraction(value)
    exact = Context(prec=digits, rounding=rounding).divide(
        Decimal(ratio.numerator), Decimal(ratio.denominator)
    )
    if not exact:
        return "0"
    size = exact.adjusted()
    if -4 <= size < 7:
        return _trimmed(exact)
    return f"{_trimmed(exact.scaleb(-size))}e{size}"


def _trimmed(value: Decimal) -> str:
    shown = f"{value:f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _odd(value: Fraction | float | None) -> str:
    if value is None or math.isnan(value):
        return NONE
    return "∞" if value > 0 else "-∞"
