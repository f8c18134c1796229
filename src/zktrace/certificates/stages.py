"""Naming more than one colluder: after a certified accusation, look again without the rows already named.

Each stage has its share of the level, so that all together keep to it, and each carrier, score and tail has
its share of that (`carriers.split`). Why innocent rows stay independent of what later stages look at:
docs/tail-certificates.md.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers.split import SCORES, score_shares, stage_share
from zktrace.certificates.adjudicate import (
    TAILS,
    CarrierScores,
    Decision,
    Exceedance,
    Tail,
    Verdict,
    adjudicate,
    joined,
)
from zktrace.certificates.intervals import Number
from zktrace.certificates.level import exact_level
from zktrace.codes import Biases, Coefficients, sums
from zktrace.codes.readings import coefficients_of
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits

MAX_STAGES = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """One carrier's readout, and access to the rows: sums for all recipients, and the rows of a few."""

    carrier: str
    values: NDArray[np.float64]
    biases: Biases
    sums: Callable[[Coefficients], NDArray[np.int64]]
    rows: Callable[[Sequence[int]], Bits]
    share: Fraction = Fraction(1)  # of a stage's level, beside the others'


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The decisions of all stages. The verdict is the first stage's."""

    stages: tuple[Decision, ...]
    first: tuple[CarrierScores, ...]  # what the first stage decided on

    @property
    def verdict(self) -> Verdict:
        """The verdict on the suspect."""
        return self.stages[0].verdict

    @property
    def named(self) -> tuple[Exceedance, ...]:
        """Everybody named, each recipient once, in the order of being named."""
        seen: dict[int, Exceedance] = {}
        for stage in self.stages:
            for each in stage.named if stage.verdict == self.verdict else ():
                seen.setdefault(each.recipient, each)
        return tuple(seen.values())

    @property
    def spent(self) -> Fraction:
        """What the stages that took place may have spent: the sum of their levels."""
        return sum((stage.level for stage in self.stages), Fraction(0))


def investigate(evidence: Sequence[Source], *, level: Number, max_stages: int = MAX_STAGES) -> Staged:
    """The scores of the rule `certified`, in turn, and all again while a stage names somebody new.

    Nobody is named for tampering after the first stage: later ones look at the positive tail alone.
    """
    if not 1 <= max_stages <= MAX_STAGES:
        raise InputError(f"between 1 and {MAX_STAGES} stages, not {max_stages}")
    eps = exact_level(level)
    named: set[int] = set()
    stages: list[Decision] = []
    first: tuple[CarrierScores, ...] = ()
    for stage in range(1, max_stages + 1):
        tails = TAILS if stage == 1 else TAILS[:1]
        decision, readings = _stage(evidence, named, eps * stage_share(stage, "certified"), tails)
        first = first or readings
        stages.append(decision)
        fresh = _fresh(decision, named)
        if not fresh or stage == max_stages:
            break
        named |= fresh
    return Staged(stages=tuple(stages), first=first)


def _stage(
    evidence: Sequence[Source], named: set[int], level: Fraction, tails: Sequence[Tail]
) -> tuple[Decision, tuple[CarrierScores, ...]]:
    """One score of all carriers after the other, until one names somebody new: what then is left unspent."""
    decision: Decision | None = None
    readings: list[CarrierScores] = []
    for by in SCORES:
        found = [reading for each in evidence for reading in _read(each, by, sorted(named))]
        if found:
            now = adjudicate(found, level=level, tails=tails)
            _confirm(now, evidence, found)
            decision = now if decision is None else joined(decision, now)
            readings += found
            if _fresh(now, named):
                break
    if decision is None:
        raise InputError("an investigation needs at least one carrier")
    return decision, tuple(readings)


def _fresh(decision: Decision, named: set[int]) -> set[int]:
    """Whom a decision attributes the suspect to that had not been named."""
    if decision.verdict != Verdict.ATTRIBUTE:
        return set()
    return {each.recipient for each in decision.named} - named


def _confirm(decision: Decision, evidence: Sequence[Source], readings: Sequence[CarrierScores]) -> None:
    """Whoever is named is named by the row itself, not by a cache of it."""
    sources = {source.carrier: source for source in evidence}
    for reading in readings:
        source, own = sources[reading.carrier], (reading.carrier, reading.by)
        who = [each.recipient for each in decision.named if (each.carrier, each.by) == own]
        if who and (sums(source.rows(who), reading.coefficients) != reading.sums[who]).any():
            raise InputError(f"{reading.carrier}: the sum of a named recipient is not that of its row")


def _read(evidence: Source, by: str, named: Sequence[int]) -> Iterator[CarrierScores]:
    """Everybody's sums by one score, once these are named; nothing where the carrier has no such score."""
    share = score_shares(evidence.biases.vary, "certified").get(by)
    if share is not None:
        coefficients = coefficients_of(evidence.values, evidence.biases, by, evidence.rows(named))
        found = evidence.sums(coefficients).astype(np.int64)
        yield CarrierScores(
            carrier=evidence.carrier,
            coefficients=coefficients,
            sums=found,
            by=by,
            share=evidence.share * share,
        )
