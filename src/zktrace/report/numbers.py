"""Numbers for a person. What bounds something is rounded to the safe side."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

NONE = "\N{EN DASH}"


def plain(value: Fraction | float | None, *, digits: int = 4) -> str:
    """A few significant digits; a dash for what is not there."""
    return _rounded(value, digits, ROUND_HALF_EVEN)


def at_most(value: Fraction | float | None, *, digits: int = 3) -> str:
    """Rounded up: still an upper bound."""
    return _rounded(value, digits, ROUND_CEILING)


def at_least(value: Fraction | float | None, *, digits: int = 3) -> str:
    """Rounded down: still a lower bound."""
    return _rounded(value, digits, ROUND_FLOOR)


def fixed(value: float | None, *, decimals: int = 3) -> str:
    """So many decimals: for columns that are compared."""
    return NONE if value is None or not math.isfinite(value) else f"{value:.{decimals}f}"


def percent(value: float | None) -> str:
    """A share as per cent, one decimal."""
    return NONE if value is None or not math.isfinite(value) else f"{100 * value:.1f} %"


def _rounded(value: Fraction | float | None, digits: int, rounding: str) -> str:
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    ratio = Fraction(value)
    context = Context(prec=digits, rounding=rounding)
    exact = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    size = exact.adjusted()
    if not exact:
        return "0"
    if -4 <= size < 7:
        shown = f"{exact:f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown
    mantissa = exact.scaleb(-size)
    shown = f"{mantissa:f}"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown}e{size}"
