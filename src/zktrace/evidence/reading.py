"""Values of a hostile JSON tree: each is of its kind and within its bounds, or MalformedEvidence."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from zktrace.errors import MalformedEvidence
from zktrace.primitives.canonical import read_fraction

_LARGEST: Final = 1 << 64


def fail(what: str, reason: str) -> MalformedEvidence:
    """The error to raise."""
    return MalformedEvidence(f"evidence: {what} {reason}")


def table(value: object, what: str, keys: Sequence[str]) -> dict[str, Any]:
    """An object with exactly these fields."""
    if not isinstance(value, dict) or set(value) != set(keys):
        raise fail(what, f"must have exactly the fields {', '.join(keys)}")
    return value


def sequence(value: object, what: str, *, low: int = 0, high: int) -> list[Any]:
    """A list of low..high values."""
    if not isinstance(value, list) or not low <= len(value) <= high:
        raise fail(what, f"must be a list of {low}..{high}")
    return value


def text(value: object, what: str, *, high: int) -> str:
    """Printable text of 1..high characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= high or not value.isprintable():
        raise fail(what, f"must be 1..{high} printable characters")
    return value


def choice(value: object, what: str, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise fail(what, f"must be one of {', '.join(allowed)}")
    return value


def number(value: object, what: str, *, low: int = 0, high: int) -> int:
    """A whole number in low..high."""
    if type(value) is not int or not low <= value <= high:
        raise fail(what, f"must be a whole number in {low}..{high}")
    return value


def ratio(value: object, what: str) -> Fraction:
    """A fraction in lowest terms, of a magnitude that a float holds."""
    found = read_fraction(value, what=f"evidence: {what}")
    if abs(found) > _LARGEST:
        raise fail(what, f"must lie within {_LARGEST}")
    return found


def octets(value: object, what: str, *, low: int, high: int) -> bytes:
    """low..high bytes in lower-case hexadecimal."""
    if isinstance(value, str) and 2 * low <= len(value) <= 2 * high:
        try:
            found = bytes.fromhex(value)
        except ValueError:
            found = None
        if found is not None and found.hex() == value:
            return found
    size = f"{low}" if low == high else f"{low}..{high}"
    raise fail(what, f"must be {size} bytes in hexadecimal")


def distinct(values: Sequence[object], what: str) -> None:
    """Nothing twice."""
    if len(set(values)) != len(values):
        raise fail(what, "must be there once each")
