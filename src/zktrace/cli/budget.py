"""What an investigation may spend, said before anything is read: a budget that is left, or none for ever."""

import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import typer

from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from zktrace.registry.ledger import Ledger

_ENDS: Final = (
    "--uncertified spends nothing and gives leads only, and it ends certified looks under this setup "
    "for ever: whoever looks first and pays for what will hit is bound by no budget"
)


def check_budget(ledger: "Ledger", wanted: Fraction) -> None:
    """Refuse a budget that cannot be spent, and propose the largest one that can."""
    from zktrace.registry.overview import budget_text

    total, left = ledger.setup.budget, ledger.remaining
    if ledger.unpaid:
        raise Refused(
            f"entry {ledger.unpaid[0]} looked without a budget: nothing can be certified any more under this "
            "setup; --uncertified can give leads, and a new workspace begins with a budget of its own"
        )
    if wanted <= left:
        return
    if not left:
        raise Refused(
            f"all of the budget of {total} is spent: no certified look is left under this setup "
            "(--uncertified can give leads; a new workspace begins with a budget of its own)"
        )
    fitting = budget_text(left)
    raise Refused(
        f"a budget of {wanted} is asked for, and {left} of {total} is left: --budget {fitting} would do"
    )


def confirm_uncertified(ledger: "Ledger", *, yes: bool) -> None:
    """Ask before the first look without a budget, unless there is nothing to lose any more."""
    if yes or ledger.unpaid or not ledger.remaining:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{_ENDS} (--yes if that is meant)")
    typer.echo(f"{_ENDS}. {ledger.remaining} of {ledger.setup.budget} would be left to spend.", err=True)
    if not typer.confirm("End certified looks for ever?", default=False, err=True):
        raise Refused("nothing was done, and nothing spent")
