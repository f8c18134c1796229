"""Looks in their planned order, until one certifies somebody."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zktrace.carriers import IDENTITY
from zktrace.errors import InputError
from zktrace.evidence.findings import CERTIFIED
from zktrace.registry.records import Look
from zktrace.tracing.readout import Attempt, Readout
from zktrace.tracing.score import NO_SCORES, Scored

Judge = Callable[[tuple[Readout, ...], Look], Scored]  # may raise InputError: this cannot be scored


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Taken:
    """A look that took place; without a score if the suspect could not be aligned."""

    look: Look
    readouts: tuple[Readout, ...]
    scored: Scored | None
    reason: str = ""

    @property
    def certified(self) -> bool:
        """Whether it named somebody."""
        return self.scored is not None and self.scored.verdict in CERTIFIED


def take_looks(
    looks: Sequence[Look], readouts: tuple[Readout, ...], further: Sequence[Attempt], judge: Judge
) -> list[Taken]:
    """The suspect as it is, then one attempt after the other; `looks` are planned for exactly these."""
    taken: list[Taken] = []
    attempts = iter(further)
    for look in looks:
        found = readouts
        try:
            if look.alignment != IDENTITY:
                found = (next(attempts).read(),)
            scored = judge(found, look)
        except InputError as error:
            if look.alignment == IDENTITY:
                raise
            taken.append(Taken(look=look, readouts=(), scored=None, reason=str(error)))
            continue
        taken.append(Taken(look=look, readouts=found, scored=scored))
        if taken[-1].certified:
            break
    return taken


def decisive(taken: Sequence[Taken]) -> tuple[Taken, Scored]:
    """The look that certified, else the first that gave leads, else the first that could be read."""
    scored = [(each, each.scored) for each in taken if each.scored is not None]
    if not scored:
        return taken[0], NO_SCORES
    if taken[-1].certified:
        return scored[-1]
    return next((pair for pair in scored if pair[1].leads), scored[0])
