"""The option `--carrier`: one carrier, the two of the paper, or all."""

from typing import Final

import click

from zktrace.carriers import CARRIERS, NAMES

DEFAULT_CARRIER: Final = next(each.name for each in CARRIERS.values() if not each.trained)
_SEVERAL: Final = ("both", "all")


def carrier_choice() -> click.Choice[str]:
    """What the option takes."""
    return click.Choice((*NAMES, *_SEVERAL))


def carriers_of(choice: str) -> tuple[str, ...]:
    """The carriers that are meant; both: those that the paper has."""
    both, everything = _SEVERAL
    if choice == both:
        return tuple(each.name for each in CARRIERS.values() if "paper" in each.profiles)
    return tuple(NAMES) if choice == everything else (choice,)
