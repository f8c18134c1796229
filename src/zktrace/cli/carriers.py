"""The option `--carrier`: one carrier, the two of the paper, or all."""

from typing import Final

import click

from zktrace.carriers import CARRIERS, NAMES

_SEVERAL: Final = ("both", "all")


def carrier_choice() -> click.Choice[str]:
    """What the option takes."""
    return click.Choice((*NAMES, *_SEVERAL))


def default_carrier(profile: str) -> str:
    """Where copies carry their rows unless told otherwise."""
    return next(each.name for each in CARRIERS.values() if profile in each.profiles)


def carriers_of(choice: str) -> tuple[str, ...]:
    """The carriers that are meant; both: those that the paper has."""
    both, everything = _SEVERAL
    if choice == both:
        return tuple(each.name for each in CARRIERS.values() if "paper" in each.profiles)
    return tuple(NAMES) if choice == everything else (choice,)
