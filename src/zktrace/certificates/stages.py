"""Naming more than one colluder: after a certified accusation, look again without the rows already named.

Stage i has the level eps/2^i, so the stages together spend at most eps, and each carrier and tail of a stage
has its share of that. Why innocent rows stay independent of what later stages look at:
docs/tail-certificates.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from zktrace.certificates.adjudicate import CarrierScores, Decision, Exceedance, Rule, Verdict, adjudicate
from zktrace.certificates.intervals import Number
from zktrace.certificates.level import exact_level
from zktrace.codes import Biases, Coefficients, soft, sums, without
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
    parts: int = 1  # of a stage's level, beside the parts of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The decisions of all stages. The verdict is the first stage's."""

    stages: tuple[Decision, ...]

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


def stage_level(level: Fraction, stage: int, rule: Rule) -> Fraction:
    """What the stage of this number, from 1 on, has of a look's level, both tails and all carriers together.

    The rule `certified` halves it from stage to stage, so all together keep to it. The paper's has one stage.
    """
    return level if rule == "paper" else level / 2**stage


def investigate(evidence: Sequence[Source], *, level: Number, max_stages: int = MAX_STAGES) -> Staged:
    """Soft scores and the rule `certified`, repeated while a stage names somebody new."""
    if not 1 <= max_stages <= MAX_STAGES:
        raise InputError(f"between 1 and {MAX_STAGES} stages, not {max_stages}")
    eps = exact_level(level)
    named: set[int] = set()
    stages: list[Decision] = []
    readings = [_read(each, each.values) for each in evidence]
    for stage in range(1, max_stages + 1):
        decision = adjudicate(readings, level=stage_level(eps, stage, "certified"))
        _confirm(decision, evidence, readings)
        stages.append(decision)
        fresh = {each.recipient for each in decision.named} - named
        if decision.verdict != Verdict.ATTRIBUTE or not fresh or stage == max_stages:
            break
        named |= fresh
        readings = [_read(each, _remainder(each, named)) for each in evidence]
    return Staged(stages=tuple(stages))


def _confirm(decision: Decision, evidence: Sequence[Source], readings: Sequence[CarrierScores]) -> None:
    """Whoever is named is named by the row itself, not by a cache of it."""
    for source, reading in zip(evidence, readings, strict=True):
        who = [each.recipient for each in decision.named if each.carrier == reading.carrier]
        if who and (sums(source.rows(who), reading.coefficients) != reading.sums[who]).any():
            raise InputError(f"{reading.carrier}: the sum of a named recipient is not that of its row")


def _remainder(evidence: Source, named: set[int]) -> NDArray[np.float64]:
    return without(evidence.values, evidence.biases, evidence.rows(sorted(named)))


def _read(evidence: Source, values: NDArray[np.float64]) -> CarrierScores:
    coefficients = soft(values, evidence.biases)
    sums = evidence.sums(coefficients).astype(np.int64)
    return CarrierScores(carrier=evidence.carrier, coefficients=coefficients, sums=sums, parts=evidence.parts)
