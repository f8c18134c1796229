"""Settings in TOML: known keys, values of their kind. What is wrong is one line that names file and key."""

import tomllib
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import Any, Final

from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.text import shown

_KINDS: Final[Mapping[object, str]] = {
    int: "a whole number",
    float: "a number",
    Fraction: "a number with a decimal point or an exponent",
    str: "text in quotes",
    bool: "true or false",
    tuple[str, ...]: "a list of texts in quotes",
}


def parse_toml(
    data: bytes | str, source: str, *, number: Callable[[str], object] = float, reasons: bool = True
) -> dict[str, Any]:
    """The content of a file. `number` reads what is no whole number; without `reasons` nothing of it is told.

    A file without a byte in it is a mistake, not a file that says nothing.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise MalformedFile(f"{source}: not TOML, nor any text") from None
    if not text.strip():
        raise MalformedFile(f"{source}: is empty")
    try:
        return tomllib.loads(text, parse_float=number)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (ValueError, RecursionError) as error:
        reason = f" ({' '.join(str(error).split())[:200]})" if reasons else ""
        raise MalformedFile(f"{source}: not TOML{reason}") from None


def check_keys(source: str, given: Collection[str], known: Collection[str], *, under: str = "") -> None:
    """Refuse a key that nothing reads."""
    for key in sorted(set(given) - set(known)):
        raise InputError(
            f"{source}: unknown key {shown(under + key)}; known here: {', '.join(sorted(known))}"
        )


def check_whole(
    source: str, given: Collection[str], known: Collection[str], *, advice: str, under: str = ""
) -> None:
    """Refuse a table that leaves a key out."""
    missing = [ascii(under + key) for key in sorted(set(known) - set(given))]
    if missing:
        raise InputError(f"{source}: missing key{'s' * (len(missing) > 1)} {', '.join(missing)}; {advice}")


def value_of(source: str, key: str, kind: object, value: object) -> Any:  # noqa: ANN401
    """A value of its kind: one of those above, or a number that is written as a whole one."""
    if kind is float and type(value) is int:
        return float(value)
    if kind == tuple[str, ...] and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if type(value) is not kind:
        raise InputError(f"{source}: {key} must be {_KINDS[kind]}, not {_cut(value)}")
    return value


def _cut(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "..."
