"""Fields of JSON objects, declared once: a form reads, bounds and writes the value of a field.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Dispatch(Declared):
        what: ClassVar = "dispatch"
        station: Annotated[str, text(100)]
        copy: Annotated[bytes, octets(32)]

What is read may be hostile: a value has its form and is within its bounds, or is MalformedFile.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, get_type_hints

from zktrace.errors import MalformedFile
from zktrace.primitives.canonical import fraction_text, read_fraction

_LARGEST: Final = 1 << 64  # of a fraction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """How a value stands in JSON: `read` takes what was found, and its name for a message.

    `check` takes a value that a program made, and the name: it has the bounds of one that is read.
    """

    read: Callable[[object, str], T]
    check: Callable[[object, str], object]
    write: Callable[[T], object] = lambda value: value


class Declared:
    """An object whose annotated fields are all that its JSON has. It cannot be made with wrong values."""

    __slots__ = ()
    what: ClassVar[str]  # the object, in a message
    forms: ClassVar[dict[str, Form[Any]]]  # of its fields

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        marked = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
        cls.forms = {name: each for name, marks in marked.items() for each in marks if isinstance(each, Form)}

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return write_fields(self, self.forms)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """What `as_json` made, or MalformedFile."""
        make: Callable[..., Self] = cls
        return make(**read_fields(value, cls.what, cls.forms))

    def __post_init__(self) -> None:
        for name, form in self.forms.items():
            form.check(getattr(self, name), f"{self.what}: {name}")
        self.check()

    def check(self) -> None:
        """MalformedFile unless the fields go together."""


def write_fields(source: object, forms: Mapping[str, Form[Any]]) -> dict[str, Any]:
    """The fields of an object, as JSON."""
    return {name: form.write(getattr(source, name)) for name, form in forms.items()}


def read_fields(value: object, what: str, forms: Mapping[str, Form[Any]]) -> dict[str, Any]:
    """The fields of a JSON object that has exactly these."""
    body = table(value, what, sorted(forms))
    return {name: form.read(body[name], f"{what}: {name}") for name, form in forms.items()}


def table(value: object, what: str, keys: Sequence[str]) -> dict[str, Any]:
    """An object with exactly these fields, whatever their values are."""
    if not isinstance(value, dict) or set(value) != set(keys):
        raise MalformedFile(f"{what}: must have exactly the fields {', '.join(keys)}")
    return value


def distinct(values: Sequence[object], what: str) -> None:
    """Nothing twice."""
    if len(set(values)) != len(values):
        raise MalformedFile(f"{what}: must be there once each")


def text(high: int) -> Form[str]:
    """1..high printable characters."""

    def read(value: object, what: str) -> str:
        if not isinstance(value, str) or not 1 <= len(value) <= high or not value.isprintable():
            raise MalformedFile(f"{what}: must be 1..{high} printable characters")
        return value

    return Form(read, read)


def choice(allowed: Collection[str]) -> Form[str]:
    """One of a few words."""

    def read(value: object, what: str) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise MalformedFile(f"{what}: must be one of {', '.join(allowed)}")
        return value

    return Form(read, read)


def flag() -> Form[bool]:
    """True or false."""

    def read(value: object, what: str) -> bool:
        if type(value) is not bool:
            raise MalformedFile(f"{what}: must be true or false")
        return value

    return Form(read, read)


def whole(low: int, high: int) -> Form[int]:
    """A whole number in low..high."""

    def read(value: object, what: str) -> int:
        if type(value) is not int or not low <= value <= high:
            raise MalformedFile(f"{what}: must be a whole number in {low}..{high}")
        return value

    return Form(read, read)


def fraction() -> Form[Fraction]:
    """n/d in lowest terms, of a magnitude that a float holds."""

    def read(value: object, what: str) -> Fraction:
        found = read_fraction(value, what=what)
        if abs(found) > _LARGEST:
            raise MalformedFile(f"{what}: must lie within {_LARGEST}")
        return found

    def check(value: object, what: str) -> None:
        if not isinstance(value, Fraction) or abs(value) > _LARGEST:
            raise MalformedFile(f"{what}: must be a fraction within {_LARGEST}")

    return Form(read, check, fraction_text)


def octets(low: int, high: int | None = None) -> Form[bytes]:
    """low..high bytes, or exactly `low`, in lower-case hexadecimal."""
    most = low if high is None else high

    def read(value: object, what: str) -> bytes:
        if isinstance(value, str) and 2 * low <= len(value) <= 2 * most:
            try:
                found = bytes.fromhex(value)
            except ValueError:
                found = None
            if found is not None and found.hex() == value:
                return found
        raise MalformedFile(f"{what}: must be {_between(low, most)} bytes in hexadecimal")

    return Form(read, sized(low, most), bytes.hex)


def packed(low: int, high: int) -> Form[bytes]:
    """low..high bytes in base64: for what is long."""

    def read(value: object, what: str) -> bytes:
        if isinstance(value, str) and len(value) <= 4 * (high + 2) // 3 + 4:
            try:
                found = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                found = None
            if found is not None and low <= len(found) <= high and _base64(found) == value:
                return found
        raise MalformedFile(f"{what}: must be {low}..{high} bytes in base64")

    return Form(read, sized(low, high), _base64)


def sized(low: int, high: int) -> Callable[[object, str], None]:
    """A check of low..high bytes."""

    def check(value: object, what: str) -> None:
        if not isinstance(value, bytes) or not low <= len(value) <= high:
            raise MalformedFile(f"{what}: must be {_between(low, high)} bytes")

    return check


def made_as(kind: type) -> Callable[[object, str], None]:
    """A check of a value that checked itself when it was made."""

    def check(value: object, what: str) -> None:
        if not isinstance(value, kind):
            raise MalformedFile(f"{what}: must be a {kind.__name__}")

    return check


def _between(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}..{high}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def listed(form: Form[T], *, low: int = 0, high: int) -> Form[tuple[T, ...]]:
    """A list of low..high values of one form."""

    def read(value: object, what: str) -> tuple[T, ...]:
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise MalformedFile(f"{what}: must be a list of {low}..{high}")
        return tuple(form.read(each, what) for each in value)

    def check(value: object, what: str) -> None:
        if not isinstance(value, tuple) or not low <= len(value) <= high:
            raise MalformedFile(f"{what}: must be a tuple of {low}..{high}")
        for each in value:
            form.check(each, what)

    return Form(read, check, lambda values: [form.write(each) for each in values])


D = TypeVar("D", bound=Declared)


def nested(declared: type[D]) -> Form[D]:
    """An object that is declared itself."""
    return Form(
        lambda value, _what: declared.from_json(value), made_as(declared), lambda value: value.as_json()
    )
