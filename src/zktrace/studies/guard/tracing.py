"""Leaks of a guarded federation: any round, after local training, averages over rounds, and coalitions.

Nothing is told of the round to whoever traces. A cell is a kind of leak, a round (or several), and what was
done afterwards; its row counts the cases in which exactly the leakers were named.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, Final

import numpy as np

from zktrace.attacks.collusion import STRATEGIES, collude
from zktrace.attacks.training import finetune
from zktrace.errors import Refused
from zktrace.federation.client import Absence, Client
from zktrace.guarding import Guard, guard_of
from zktrace.learning.arrays import Arrays, State
from zktrace.learning.threads import single_threaded
from zktrace.releases import OpenRelease
from zktrace.studies.changes import FORMATS, as_state, noise
from zktrace.studies.guard.runs import GuardRun
from zktrace.studies.runner import Trial
from zktrace.studies.tracing import BUDGET, outcome

SIZES: Final = (2, 3, 5, 8)
EPISODES: Final = (1, 10, 25)  # of local training
SAMPLED: Final = 5  # coalitions of a cell
TRAINERS: Final = 3  # stations of a cell that trains
FINETUNED: Final = 100  # episodes of whoever trains a copy on with everybody's data
AFTERWARDS: Final = ("nothing", "noise", *FORMATS)
_FEW: Final = ("nothing", "8 bits", "half of the weights pruned")

Members = tuple[int, ...]
Suspect = tuple[Arrays, Members]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakCell:
    """One kind of leak; what tells it from others, and its suspects before anything is done to them."""

    about: dict[str, Any]
    suspects: Callable[[], Iterator[Suspect]]
    afterwards: tuple[str, ...] = ("nothing",)


def trials(run: GuardRun) -> Iterator[Trial]:
    """One for each cell, and what was done afterwards."""
    facts = run.facts() | {"part": "tracing", "budget": str(BUDGET)}
    bench = LeakBench(run=run)
    for cell in bench.cells():
        for after in cell.afterwards:
            told = facts | cell.about | {"after": after}
            yield Trial(facts=told, outcome=partial(bench.counted, cell, after))


@dataclass(frozen=True, kw_only=True)
class LeakBench:
    """A guarded run, and what its stations do with what they were sent."""

    run: GuardRun
    _kept: list[tuple[dict[str, Any], list[Suspect]]] = field(default_factory=list)

    @cached_property
    def _guard(self) -> Guard:
        return guard_of(self.run.home)

    @property
    def _rounds(self) -> int:
        return self.run.spec.preset.federation.rounds

    @property
    def _looked_at(self) -> tuple[int, ...]:
        """The first broadcast, one in the middle, the last, and copies of what came out."""
        return tuple(sorted({0, self._rounds // 2, self._rounds - 1, self._rounds}))

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.run.spec.seed, 16, *purpose])

    def copy(self, station: int, number: int) -> State:
        """What a station was sent in a round (from 0), or after the last."""
        return _copies(self._guard, self.run, station, number)

    def cells(self) -> Iterator[LeakCell]:
        """All kinds of leaks."""
        for number in self._looked_at:
            yield self._broadcast(number)
            yield self._trained_on(number)
            if number < self._rounds:
                yield from (self._local(number, episodes) for episodes in EPISODES)
        several = {2, self._rounds // 2, self._rounds} - {0, 1}
        yield from (self._over_rounds(count) for count in sorted(several))
        for size in (each for each in SIZES if each < len(self.run.stations)):
            for strategy in STRATEGIES:
                yield self._coalition(size, strategy, apart=False)
                yield self._coalition(size, strategy, apart=True)

    def counted(self, cell: LeakCell, after: str) -> dict[str, Any]:
        """The cases of a cell, each changed in the same way."""
        self.run.result()
        release, stations = self.run.release, len(self.run.stations)
        found = []
        for number, (suspect, members) in enumerate(self._suspects(cell)):
            changed = _changed(suspect, after, self._rng(number))
            found.append((members, outcome(release, changed, members, stations)))
        return _sum(found, release)

    def _suspects(self, cell: LeakCell) -> list[Suspect]:
        """The last cell's are kept: they may have been trained."""
        if cell.about not in [about for about, _ in self._kept]:
            self._kept[:] = [(cell.about, list(cell.suspects()))]
        return self._kept[0][1]

    def _broadcast(self, number: int) -> LeakCell:
        """Everybody's copy of a round."""
        return LeakCell(
            about={"leak": "broadcast", "round": number + 1},
            suspects=lambda: ((self.copy(each, number), (each,)) for each in range(len(self.run.stations))),
            afterwards=AFTERWARDS,
        )

    def _trained_on(self, number: int) -> LeakCell:
        """Copies of some, trained on with everybody's data."""

        def suspects() -> Iterator[Suspect]:
            images, labels = self.run.spec.source.samples("train")
            config = replace(self.run.spec.preset.episodes, episodes=FINETUNED)
            for each in self._some(number):
                with single_threaded():
                    rng = self._rng(number, each)
                    yield finetune(self.copy(each, number), images, labels, config, rng), (each,)

        return LeakCell(
            about={"leak": "trained on", "round": number + 1, "episodes": FINETUNED}, suspects=suspects
        )

    def _local(self, number: int, episodes: int) -> LeakCell:
        """What some stations made of their copies by local training, as they would send it back."""

        def suspects() -> Iterator[Suspect]:
            preset = self.run.spec.preset
            local = replace(preset, episodes=replace(preset.episodes, episodes=episodes))
            for each in self._some(number):
                with single_threaded():
                    sent = Client(replace(self.run.spec, preset=local), each).fit(
                        self.copy(each, number), number
                    )
                if isinstance(sent, Absence):
                    raise Refused(f"station {each} cannot train: {sent.reason}")
                yield sent.state, (each,)

        about = {"leak": "local training", "round": number + 1, "episodes": episodes}
        return LeakCell(about=about, suspects=suspects, afterwards=_FEW)

    def _some(self, number: int) -> list[int]:
        order = self._rng(7, number).permutation(len(self.run.stations))
        return sorted(map(int, order[:TRAINERS]))

    def _over_rounds(self, count: int) -> LeakCell:
        """The mean of a station's last copies."""

        def suspects() -> Iterator[Suspect]:
            for each in range(len(self.run.stations)):
                copies = [self.copy(each, number) for number in range(self._rounds - count, self._rounds)]
                yield dict(collude(copies)), (each,)

        return LeakCell(
            about={"leak": "mean over rounds", "rounds": count}, suspects=suspects, afterwards=_FEW
        )

    def _coalition(self, size: int, strategy: str, *, apart: bool) -> LeakCell:
        """Coalitions of a size by one strategy: copies of one round, or of a round of its own each."""

        def suspects() -> Iterator[Suspect]:
            for number in range(SAMPLED):
                rng = self._rng(size, number)
                members = tuple(sorted(map(int, rng.permutation(len(self.run.stations))[:size])))
                rounds = (
                    rng.integers(0, self._rounds + 1, size)
                    if apart
                    else [rng.integers(self._rounds + 1)] * size
                )
                copies = [self.copy(each, int(at)) for each, at in zip(members, rounds, strict=True)]
                yield dict(collude(copies, strategy, rng=rng)), members

        about = {
            "leak": "coalition",
            "size": size,
            "strategy": strategy,
            "rounds": "apart" if apart else "one",
        }
        return LeakCell(about=about, suspects=suspects, afterwards=("nothing", "8 bits"))


@lru_cache(maxsize=128)
def _copies(guard: Guard, run: GuardRun, station: int, number: int) -> State:
    """A coalition's copies are asked for by every strategy."""
    arrays = dict(run.shared(number).items())
    return dict(guard.copy(run.stations[station], arrays, number=number).items())


def _changed(suspect: Arrays, how: str, rng: np.random.Generator) -> Arrays:
    if how == "nothing":
        return as_state(suspect)
    return noise(suspect, rng) if how == "noise" else FORMATS[how](suspect)


def _sum(cases: Sequence[tuple[Members, dict[str, Any]]], release: OpenRelease) -> dict[str, Any]:
    """Counts over the cases of a row, and the weakest of members' scores."""
    scores = [next(iter(each["sigma"].values())) for _, each in cases]
    return {
        "cases": len(cases),
        "whole": sum(each["caught"] == len(members) and not each["framed"] for members, each in cases),
        "caught": sum(each["caught"] for _, each in cases),
        "of": sum(len(members) for members, _ in cases),
        "framed": sum(each["framed"] for _, each in cases),
        "least": min(each["least_member"] for each in scores),
        "other": max(each["greatest_other"] for each in scores),
        "weights": release.layout("spread").dimension,
        "length": release.layout("spread").length,
    }
