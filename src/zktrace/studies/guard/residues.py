"""What is left of marks in shared models, round by round: behind a guard, and where marks are subtracted.

A shared model belongs to nobody. Along the directions of the release it should say nothing of any row. What a
design leaves there is measured in two ways: as a share of the mark that a copy carries, over rows of
participants and over rows that nobody was given; and as what an investigation would see, in standard
deviations of an innocent's score.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from zktrace.codes import Code, unpack
from zktrace.guarding.guard import CARRIER
from zktrace.guarding.subspace import readings
from zktrace.marking.settings import usual_strength
from zktrace.marking.spread import SpreadMark
from zktrace.readouts.directions import Floats
from zktrace.releases import OpenRelease
from zktrace.studies.guard.runs import GuardRun
from zktrace.studies.runner import Trial
from zktrace.studies.tracing import BUDGET, outcome

_OTHERS: Final = 1000  # rows that nobody was given


def trials(run: GuardRun) -> Iterator[Trial]:
    """One for each shared model after a round."""
    facts, bench = run.facts() | {"part": "residues"}, ResidueBench(run=run)
    for number in range(1, run.spec.preset.federation.rounds + 1):
        yield Trial(facts=facts | {"round": number}, outcome=partial(bench.residues, number))


@dataclass(frozen=True, kw_only=True)
class ResidueBench:
    """The shared models of one run, beside the first."""

    run: GuardRun

    def residues(self, number: int) -> dict[str, Any]:
        """After so many rounds."""
        self.run.result()
        started, release = time.perf_counter(), self.run.release
        phi, shared = self._phi(release, number), self.run.shared(number)
        participants = len(self.run.stations)
        own, others = self._shares(release, phi)
        found = outcome(release, shared, (), participants)
        (scores,) = found["sigma"].values()
        return {
            "weights": release.layout(CARRIER).dimension,
            "length": release.layout(CARRIER).length,
            "participants": [float(f"{each:.4g}") for each in own],
            "others_deviation": float(f"{others.std():.4g}"),
            "named": found["named"],
            "greatest": scores["greatest_other"],
            "deviations": round(float(own.mean() / others.std() * np.sqrt(participants)), 3)
            if others.std()
            else 0.0,
            "budget": str(BUDGET),
            "seconds": round(time.perf_counter() - started, 2),
        }

    def _phi(self, release: OpenRelease, number: int) -> Floats:
        """What a shared model has along each direction beyond the first, in deviations; over all tensors."""
        shared, first = self.run.shared(number), release.shared
        mark = SpreadMark.of(release.terms(CARRIER), first, None)
        found = readings(dict(shared.items()), first, mark.parts, mark.blocks)
        blocks = sum(part.blocks for part in mark.parts.values())
        total = np.zeros(mark.blocks.length)
        for name, part in mark.parts.items():
            total += part.blocks * found[name]
        return total / blocks

    def _shares(self, release: OpenRelease, phi: Floats) -> tuple[Floats, Floats]:
        """How much of a copy's mark is there: by row of a participant, and by row that nobody was given."""
        code, strength = release.code(CARRIER), usual_strength(release.layout(CARRIER).dimension)

        def found(rows: Code, count: int) -> Floats:
            signs = 2.0 * unpack(rows.rows(range(count)), code.length).astype(np.float64) - 1.0
            shares: Floats = signs @ phi / (code.length * strength)
            return shares

        return found(code, len(self.run.stations)), found(replace(code, claims=None), _OTHERS)
