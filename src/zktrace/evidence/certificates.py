"""A certificate as JSON. What is read may be hostile; whether it holds is for the judge to find out."""

from typing import Any, Final

from zktrace.certificates.certificate import Certificate
from zktrace.primitives.fields import (
    Form,
    choice,
    flag,
    fraction,
    listed,
    made_as,
    octets,
    read_fields,
    text,
    whole,
    write_fields,
)

_DIGEST: Final = octets(32)
_NUMBER: Final = text(80)  # that `check` takes apart
_LEVEL: Final = fraction()  # the file calls it `budget`
_FORMS: Final[dict[str, Form[Any]]] = {
    "exponent": listed(_NUMBER, low=2, high=2),
    "law": Form(lambda value, what: _DIGEST.read(value, what).hex(), made_as(str)),
    "method": choice(("chernoff", "exact")),
    "passes": flag(),
    "recipients": whole(1, 1 << 40),
    "required": _NUMBER,
    "threshold": fraction(),
    "tilt": _NUMBER,
}


def _read(value: object, _what: str) -> Certificate:
    found = read_fields(value, "a certificate", {"budget": _LEVEL, **_FORMS})
    return Certificate(level=found.pop("budget"), **found)


def _write(certificate: Certificate) -> dict[str, Any]:
    return {"budget": _LEVEL.write(certificate.level), **write_fields(certificate, _FORMS)}


CERTIFICATE: Final = Form(_read, made_as(Certificate), _write)
