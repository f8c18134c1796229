"""A level: the false-accusation probability that a certificate, or a threshold, is made for."""

from fractions import Fraction

from zktrace.certificates.intervals import Number, exact
from zktrace.errors import InputError


def exact_level(given: Number) -> Fraction:
    """The level a person meant: neither nothing nor certainty."""
    level = exact(given, "a false-accusation probability")
    if not 0 < level < 1:
        raise InputError(f"a false-accusation probability must lie in (0, 1), not {given}")
    return level
