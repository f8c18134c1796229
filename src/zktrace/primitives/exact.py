"""Numbers as people write them, as exactly the numbers they say."""

from fractions import Fraction
from typing import Final

from zktrace.errors import InputError

_LONGEST: Final = 40  # characters
_LARGEST: Final = 30  # exponent of ten: a short text must not become a number of a gigabyte


def exact_number(text: str) -> Fraction:
    """0.01, 1e-3 or 1/100."""
    try:
        found = Fraction(text) if len(text) <= _LONGEST and abs(_exponent(text)) <= _LARGEST else None
    except (ValueError, ZeroDivisionError):
        found = None
    if found is None:
        raise InputError(f"a number such as 0.01, 1e-3 or 1/100 is wanted, not {text[: 2 * _LONGEST]!a}")
    return found


def exact_budget(text: str) -> Fraction:
    """A probability that may be spent."""
    try:
        return exact_number(text)
    except InputError:
        raise InputError(f"a budget is a number such as 0.01, 1e-3 or 1/100, not {text!r}") from None


def _exponent(text: str) -> int:
    return int(text.lower().partition("e")[2] or 0)
