"""`--mark CARRIER.SETTING=NUMBER`: how strongly trained marks are written, beyond the common options."""

import re
from typing import Annotated, Final

import typer

from zktrace.carriers import CARRIERS as TABLE
from zktrace.errors import InputError

CARRIERS: Final = tuple(each.name for each in TABLE.values() if each.trained)
_FORM: Final = re.compile(r"([a-z]+)\.([a-z_]+)=([0-9.eE+-]{1,32})")

Marks = Annotated[
    list[str] | None,
    typer.Option(
        "--mark",
        metavar="CARRIER.SETTING=NUMBER",
        help="Informed feature and output marks, as output.margin=2; repeat it (docs/carriers.md).",
    ),
]


def mark_settings(given: list[str] | None) -> dict[str, dict[str, float]]:
    """Settings by carrier, whole numbers as such."""
    found: dict[str, dict[str, float]] = {carrier: {} for carrier in CARRIERS}
    for each in given or ():
        form = _FORM.fullmatch(each)
        if form is None or form[1] not in found:
            raise InputError(f"--mark {each!r} must be like output.margin=2, for {' or '.join(CARRIERS)}")
        carrier, name, number = form.groups()
        if name in found[carrier]:
            raise InputError(f"--mark gives {carrier}.{name} twice")
        try:
            found[carrier][name] = int(number) if number.isdigit() else float(number)
        except ValueError as error:
            raise InputError(f"--mark {each!r}: {number} is no number") from error
    return found
