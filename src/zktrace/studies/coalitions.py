"""Coalitions that put their copies together by every strategy, and crowds that average (docs/coalitions.md).

Ten stations hold copies in the spread carrier. Of each size so many coalitions are drawn; each makes a
suspect by each strategy, and that is read as it is, with noise, and in eight bits; some means are trained on.
In a crowd of a thousand, averages of many copies are read. Copies are written and suspects are read as by an
operator. Rows of the code belong to nobody: enrolment is no part of the statistics, and nothing is put on
record.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.attacks.collusion import STRATEGIES, collude
from zktrace.attacks.training import finetune
from zktrace.codes import Code, unpack
from zktrace.dispatch.copies import CopyPlan, Maker, maker_of
from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec
from zktrace.learning.arrays import Arrays, State
from zktrace.learning.threads import single_threaded
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model
from zktrace.registry.workspace import SETTINGS, Home
from zktrace.releases import OpenRelease, make_release
from zktrace.studies.changes import FORMATS, as_state, noise
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Prerequisite, Progress, Trial
from zktrace.studies.tracing import BUDGET, RELEASE, sigmas
from zktrace.tracing import Plan, investigate

CARRIER: Final = "spread"
SIZES: Final = (2, 3, 5, 8)
SAMPLED: Final = 20
STATIONS: Final = 10
CROWD: Final = 1000
CROWDS: Final = ((32, 2048), (64, 8192), (128, 8192))  # colluders, positions
AFTERWARDS: Final = ("nothing", "noise", "8 bits")
FINETUNED: Final = "fine-tuning"
EPISODES: Final = 100  # of it
_SECONDS: Final = {  # of one core, for 11 million weights
    "copy": 0.2,
    "member": 0.1,
    "read": 1.2,
    "crowd": 4.0,
    "tuned": 30.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoalitionsTrial:
    """A shared model, what it was trained on, and who puts copies of it together."""

    model: Path
    dataset: str
    work: Path
    seed: int = 42
    sizes: tuple[int, ...] = SIZES
    strategies: tuple[str, ...] = STRATEGIES
    sampled: int = SAMPLED
    crowds: tuple[tuple[int, int], ...] = CROWDS
    spec: RunSpec | None = None  # of the run that made the model: data to train means on
    tuned: int = 0  # so many coalitions of each size train the mean of their copies on

    def __post_init__(self) -> None:
        if unknown := set(self.strategies) - set(STRATEGIES):
            raise InputError(f"no strategy {sorted(unknown)[0]!r}; known: {', '.join(STRATEGIES)}")
        if not all(2 <= size < STATIONS for size in self.sizes):
            raise InputError(f"a coalition of {STATIONS} stations has 2..{STATIONS - 1} members")
        if not all(2 <= size < CROWD for size, _ in self.crowds):
            raise InputError(f"a coalition in a crowd of {CROWD} has 2..{CROWD - 1} members")
        if self.tuned:
            _ = self.run

    @property
    def run(self) -> RunSpec:
        """Whose data means are trained on, or InputError."""
        if self.spec is None:
            raise InputError("whoever trains on needs data: that of the run which made the model")
        return self.spec

    def facts(self) -> dict[str, Any]:
        """What all rows say of it."""
        return {
            "study": "coalitions",
            "dataset": self.dataset,
            "model": model_digest(open_model(self.model)).hex(),
            "carrier": CARRIER,
            "seed": self.seed,
            "sampled": self.sampled,
            "budget": str(BUDGET),
        }

    def members(self, size: int, stations: int) -> list[tuple[int, ...]]:
        """Coalitions of a size, different ones."""
        rng, found = np.random.default_rng([self.seed, size, stations]), set[tuple[int, ...]]()
        while len(found) < self.sampled:
            found.add(tuple(sorted(map(int, rng.permutation(stations)[:size]))))
        return sorted(found)

    def seconds(self) -> dict[str, float]:
        """About how long each part takes on one idle core, for a model of 11 million weights."""
        each = _SECONDS
        strategies = sum(
            self.sampled * len(self.strategies) * (size * each["member"] + len(AFTERWARDS) * each["read"])
            for size in self.sizes
        )
        crowds = sum(self.sampled * (size * each["copy"] + each["crowd"]) for size, _ in self.crowds)
        tuned = self.tuned * len(self.sizes) * each["tuned"]
        return {"strategies": round(strategies), "fine-tuning": round(tuned), "crowds": round(crowds)}


@dataclass(frozen=True, kw_only=True)
class CoalitionsBatch:
    """One row for each size, strategy and what was done after it; then means trained on; then crowds."""

    trial: CoalitionsTrial
    study: ClassVar[str] = "coalitions"
    needs: ClassVar[tuple[Prerequisite, ...]] = ()

    @property
    def name(self) -> str:
        """By what it is about."""
        return f"{self.trial.dataset}-coalitions-{trial_id(self.trial.facts())[:8]}"

    @property
    def size(self) -> int:
        """Of each kind, as below."""
        trial = self.trial
        strategies = len(trial.strategies) * len(trial.sizes) * len(AFTERWARDS)
        return strategies + (len(trial.sizes) if trial.tuned else 0) + len(trial.crowds)

    @property
    def guess(self) -> float:
        """On an idle core."""
        return sum(self.trial.seconds().values())

    def trials(self, report: Progress) -> Iterator[Trial]:
        """What is done after a strategy is done to the same coalitions: the first of its rows makes all."""
        trial, ground = self.trial, _Ground(trial=self.trial)
        facts = trial.facts() | {"stations": STATIONS}
        for strategy, size in product(trial.strategies, trial.sizes):
            found = cache(partial(_strategy, ground, size, strategy))
            for after in AFTERWARDS:
                told = {"size": size, "strategy": strategy, "after": after}
                yield Trial(facts=facts | told, outcome=lambda found=found, after=after: found()[after])  # type: ignore[misc]
        for size in trial.sizes if trial.tuned else ():
            how = {"after": FINETUNED, "episodes": EPISODES, "tuned": trial.tuned}
            told = {"size": size, "strategy": "mean"} | how
            yield Trial(facts=facts | told, outcome=partial(_tuned, ground, size, report))
        for size, length in trial.crowds:
            told = {"stations": CROWD, "size": size, "strategy": "mean", "length": length}
            crowd = _Ground(trial=trial, length=length)
            yield Trial(facts=facts | told, outcome=partial(_crowd, crowd, size, report))


@dataclass(frozen=True, kw_only=True)
class _Ground:
    """A release of the model, with a code of one length."""

    trial: CoalitionsTrial
    length: int | None = None  # None: what a release chooses

    @cached_property
    def release(self) -> OpenRelease:
        """From its workspace, made as far as it is missing."""
        trial = self.trial
        told = {"model": trial.facts()["model"], "length": self.length, "seed": trial.seed}
        folder = trial.work / f"{trial.dataset}-coalitions-{trial_id(told)[:8]}"
        if (folder / SETTINGS).exists():
            home = Home.open(folder)
        else:
            home = Home.create(folder, title=f"study: {folder.name}", carriers=(CARRIER,))
        if RELEASE not in home.registry.ledger().releases:
            lengths = None if self.length is None else {CARRIER: self.length}
            make_release(home, trial.model, carriers=(CARRIER,), name=RELEASE, lengths=lengths)
        return OpenRelease.of(home, RELEASE)

    @cached_property
    def code(self) -> Code:
        """With rows that belong to nobody."""
        return replace(self.release.code(CARRIER), claims=None)

    @cached_property
    def _make(self) -> Maker:
        return maker_of(CopyPlan.of(self.release, CopySettings()))

    def copy(self, row: int) -> ModelState:
        """A station's."""
        word = unpack(self.code.rows([row]), self.code.length)[0]
        return self._make({CARRIER: word}, row, lambda _share: None)

    @cached_property
    def copies(self) -> list[State]:
        """Of the ten stations, in memory."""
        return [dict(self.copy(row).items()) for row in range(STATIONS)]

    def outcome(self, suspect: Arrays, members: tuple[int, ...], stations: int) -> dict[str, Any]:
        """Whom an investigation names, and scores in deviations of an innocent's."""
        reading = self.release.read(suspect, align=False, strict=True)
        plan = Plan.of(reading, self.release.rule)
        found = investigate(plan, lambda _carrier: self.code, recipients=stations, level=BUDGET)
        (scores,) = sigmas(found.scored, members, stations).values()
        return {
            "caught": len(set(found.named) & set(members)),
            "framed": len(set(found.named) - set(members)),
            "stages": len(found.scored.stages),
            "least": scores["least_member"],
            "other": scores["greatest_other"],
        }


def _strategy(ground: _Ground, size: int, strategy: str) -> Mapping[str, dict[str, Any]]:
    """Every coalition of a size by one strategy; by what was done afterwards."""
    trial, started = ground.trial, time.perf_counter()
    found = {after: list[dict[str, Any]]() for after in AFTERWARDS}
    groups = trial.members(size, STATIONS)
    for number, members in enumerate(groups):
        rng = np.random.default_rng([trial.seed, size, number])
        together = as_state(dict(collude([ground.copies[row] for row in members], strategy, rng=rng)))
        for after in AFTERWARDS:
            suspect = _afterwards(together, after, rng)
            found[after].append(ground.outcome(suspect, members, STATIONS))
    took = time.perf_counter() - started
    return {after: _counted(each, groups, took / len(AFTERWARDS), ground) for after, each in found.items()}


def _afterwards(suspect: ModelState, how: str, rng: np.random.Generator) -> ModelState:
    if how == "nothing":
        return suspect
    return noise(suspect, rng) if how == "noise" else FORMATS[how](suspect)


def _tuned(ground: _Ground, size: int, report: Progress) -> dict[str, Any]:
    """The means of some coalitions, trained on."""
    trial, found, started = ground.trial, list[dict[str, Any]](), time.perf_counter()
    groups = trial.members(size, STATIONS)[: trial.tuned]
    images, labels = trial.run.source.samples("train")
    config = replace(trial.run.preset.episodes, episodes=EPISODES)
    for number, members in enumerate(groups, start=1):
        together = dict(collude([ground.copies[row] for row in members]))
        with single_threaded():
            rng = np.random.default_rng([trial.seed, size, number])
            suspect = as_state(finetune(together, images, labels, config, rng))
        found.append(ground.outcome(suspect, members, STATIONS))
        report(f"means of {size} trained on", number, len(groups))
    return _counted(found, groups, time.perf_counter() - started, ground)


def _crowd(ground: _Ground, size: int, report: Progress) -> dict[str, Any]:
    """Averages of many copies."""
    found, started, groups = [], time.perf_counter(), ground.trial.members(size, CROWD)
    for number, members in enumerate(groups, start=1):
        found.append(ground.outcome(as_state(_average(ground, members)), members, CROWD))
        report(f"averages of {size}", number, len(groups))
    return _counted(found, groups, time.perf_counter() - started, ground)


def _average(ground: _Ground, members: tuple[int, ...]) -> State:
    """The mean of copies as they were written, one after the other in memory."""
    total: dict[str, Any] = {}
    for row in members:
        for name, array in ground.copy(row).items():
            if array.dtype.kind == "f":
                total[name] = total.get(name, 0.0) + array.astype(np.float64)
            else:
                total[name] = array
    return {
        name: (each / len(members)).astype(np.float32) if each.dtype.kind == "f" else each
        for name, each in total.items()
    }


def _counted(
    found: list[dict[str, Any]], groups: list[tuple[int, ...]], took: float, ground: _Ground
) -> dict[str, Any]:
    size = len(groups[0])
    layout = ground.release.layout(CARRIER)
    return {
        "coalitions": len(found),
        "whole": sum(each["caught"] == size for each in found),  # everybody was named
        "caught": sum(each["caught"] for each in found),
        "of": size * len(found),
        "framed": sum(each["framed"] for each in found),
        "stages": max(each["stages"] for each in found),
        "least": min(each["least"] for each in found),
        "other": max(each["other"] for each in found),
        "code": layout.length,
        "dimension": layout.dimension,
        "members": [list(each) for each in groups] if size < STATIONS else None,
        "seconds": round(took, 1),
    }
