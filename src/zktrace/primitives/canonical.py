"""Canonical JSON: one text for a value, so that equal values have equal hashes.

Objects, lists, text, whole numbers, true, false and null; keys sorted, no spaces, ASCII, no floats, no key
twice. A real number travels as hexadecimal bytes, a probability as a fraction in text.
"""

import json
import math
from fractions import Fraction
from typing import Any, Final

from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.text import shown

_INTEGER_LIMIT: Final = 1 << 63
_DEPTH_LIMIT: Final = 32


def to_json(value: object) -> bytes:
    """The canonical text of a value, or InputError if it has none."""
    _check(value, depth=0)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def from_json(data: bytes, *, what: str) -> Any:  # noqa: ANN401
    """The value, if `data` is canonical; MalformedFile otherwise. The caller bounds the size."""
    try:
        value = json.loads(data, parse_float=_refuse, parse_constant=_refuse)
        again = to_json(value)
    except UnicodeDecodeError:
        raise MalformedFile(f"{what}: not canonical JSON, nor any text") from None
    except (InputError, ValueError, RecursionError) as error:
        raise MalformedFile(f"{what}: not canonical JSON ({shown(str(error))})") from None
    if again != data:
        raise MalformedFile(f"{what}: JSON that is not in canonical form")
    return value


def _refuse(text: str) -> object:
    raise InputError(f"the number {shown(text)} is not whole")


def _check(value: object, depth: int) -> None:
    if depth > _DEPTH_LIMIT:
        raise InputError("nested too deeply")
    match value:
        case bool() | None:
            pass
        case str():
            _check_text(value)
        case int():
            if abs(value) >= _INTEGER_LIMIT:
                raise InputError("a whole number beyond 63 bits")
        case list() | tuple():
            for each in value:
                _check(each, depth + 1)
        case dict():
            for key, each in value.items():
                if not isinstance(key, str):
                    raise InputError("a key that is not text")
                _check(key, depth + 1)
                _check(each, depth + 1)
        case _:
            raise InputError(f"a {type(value).__name__} has no canonical form")


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError("a lone surrogate is no text") from None


def fraction_text(value: Fraction) -> str:
    """n/d in lowest terms."""
    return f"{value.numerator}/{value.denominator}"


def read_fraction(text: object, *, what: str) -> Fraction:
    """What `fraction_text` wrote, and nothing else."""
    if isinstance(text, str) and len(text) <= 2000:
        top, _, bottom = text.partition("/")
        digits = top.removeprefix("-")
        if digits.isascii() and digits.isdigit() and bottom.isascii() and bottom.isdigit() and int(bottom):
            found = Fraction(int(top), int(bottom))
            if fraction_text(found) == text and math.gcd(found.numerator, found.denominator) == 1:
                return found
    raise MalformedFile(f"{what}: not a fraction in lowest terms")
