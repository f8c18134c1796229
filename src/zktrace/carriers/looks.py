"""Looks: the ways in which a suspect will be read, planned before anything is scored, and their shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from zktrace.carriers.split import AS_IT_IS
from zktrace.carriers.table import ALIGNMENTS, IDENTITY, MOST, NAMES, carrier
from zktrace.errors import MalformedFile
from zktrace.primitives.fields import Declared, choice, fraction, listed

Carriers = Annotated[tuple[str, ...], listed(choice(NAMES), high=MOST)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(Declared):
    """One way in which a suspect will be read, and what it may spend of the investigation's budget."""

    what: ClassVar = "a look"
    alignment: Annotated[str, choice(ALIGNMENTS)]  # identity: as it is
    carriers: Carriers
    share: Annotated[Fraction, fraction()]

    def check(self) -> None:
        """Carriers that can be read in this way, and a share."""
        for each in self.carriers:
            choice(ALIGNMENTS[self.alignment]).read(each, "carrier")
        check_carriers(self.carriers, self.what)
        if not 0 < self.share <= 1:
            raise MalformedFile("share: must lie above 0 and at most at 1")


def planned(carriers: Sequence[str], aligned: Sequence[tuple[str, str]] = ()) -> tuple[Look, ...]:
    """The fixed plan: the suspect as it is on `carriers`, then each (alignment, carrier) by itself.

    What may be faint, the suspect as it is among it, may spend 19/20 of the budget, in equal parts, and all
    other alignments the rest: what a disguise hid and an alignment finds again is far beyond any threshold,
    what a student kept is not. Where there is only the one or the other, it may spend all.
    """
    ways = [(IDENTITY, tuple(carriers), True)] if carriers else []
    ways += [(name, (each,), _faint(name, each)) for name, each in aligned]
    faint = sum(each for *_, each in ways)
    first = Fraction(1) if faint == len(ways) else AS_IT_IS if faint else Fraction(0)
    return tuple(
        Look(
            alignment=name,
            carriers=found,
            share=first / faint if each else (1 - first) / (len(ways) - faint),
        )
        for name, found, each in ways
    )


def _faint(alignment: str, name: str) -> bool:
    """Whether what is found of a carrier in this way may be faint."""
    return any(how.faint for how in carrier(name).alignments if how.name == alignment)


def check_carriers(carriers: tuple[str, ...], what: str) -> None:
    """Some, each once."""
    if not carriers or len(set(carriers)) != len(carriers):
        raise MalformedFile(f"{what}: must have carriers, each once")
