"""A certificate as JSON. What is read may be hostile; whether it holds is for the judge to find out."""

import re
from typing import Any, Final, cast

from zktrace.certificates.certificate import Certificate, Method
from zktrace.evidence.reading import choice, fail, number, ratio, sequence, table, text
from zktrace.primitives.canonical import fraction_text

_KEYS: Final = (
    "budget",
    "exponent",
    "law",
    "method",
    "passes",
    "recipients",
    "required",
    "threshold",
    "tilt",
)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """For an evidence file."""
    return {
        "budget": fraction_text(certificate.budget),
        "exponent": list(certificate.exponent),
        "law": certificate.law,
        "method": certificate.method,
        "passes": certificate.passes,
        "recipients": certificate.recipients,
        "required": certificate.required,
        "threshold": fraction_text(certificate.threshold),
        "tilt": certificate.tilt,
    }


def read_certificate(value: object) -> Certificate:
    """What `certificate_json` made."""
    body = table(value, "a certificate", _KEYS)
    low, high = (
        text(each, "an exponent", high=80) for each in sequence(body["exponent"], "exponent", low=2, high=2)
    )
    if type(body["passes"]) is not bool:
        raise fail("passes", "must be true or false")
    if not isinstance(body["law"], str) or not _DIGEST.fullmatch(body["law"]):
        raise fail("law", "must be 32 bytes in hexadecimal")
    return Certificate(
        method=cast(Method, choice(body["method"], "method", ("chernoff", "exact"))),
        law=body["law"],
        recipients=number(body["recipients"], "recipients", low=1, high=1 << 40),
        budget=ratio(body["budget"], "a certificate's budget"),
        threshold=ratio(body["threshold"], "a certificate's threshold"),
        tilt=text(body["tilt"], "tilt", high=80),
        exponent=(low, high),
        required=text(body["required"], "required", high=80),
        passes=body["passes"],
    )
