"""The option `--carrier`: one carrier, the two of the paper, or all."""

from collections.abc import Iterable
from typing import Final

import click

from zktrace.carriers import CARRIERS, NAMES
from zktrace.errors import InputError

_SEVERAL: Final = ("both", "all")


def carrier_choice() -> click.Choice[str]:
    """What the option takes."""
    return click.Choice((*NAMES, *_SEVERAL))


def default_carrier(profile: str, able: Iterable[str] = NAMES) -> str:
    """Where copies carry their rows unless told otherwise: the first of those set up that has the profile."""
    found = next((name for name in able if profile in CARRIERS[name].profiles), None)
    if found is None:
        raise InputError(f"no carrier of this workspace has the profile {profile}")
    return found


def carriers_of(choice: str) -> tuple[str, ...]:
    """The carriers that are meant; both: those that the paper has."""
    both, everything = _SEVERAL
    if choice == both:
        return tuple(each.name for each in CARRIERS.values() if "paper" in each.profiles)
    return tuple(NAMES) if choice == everything else (choice,)
