"""Networks of many architectures, protected by defaults: what a copy costs, who is named, what a judge says.

For each network and each seed of keys an operator's workspace is made, ten stations enrol, the network is
released, and everybody gets a copy. One copy leaks: as it is, and changed in every way a leaker is known to
have. Every suspect is investigated on record and the evidence is judged, with suspect and shared model at
hand. Suspects that nobody was given are investigated as well: whoever they name is framed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.court import judge
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import EvidenceRejected
from zktrace.federation.roster import experimental_key
from zktrace.learning.threads import single_threaded
from zktrace.models import ModelState, model_digest, open_model
from zktrace.registry.requests import Request
from zktrace.registry.workspace import SETTINGS, Home
from zktrace.releases import OpenRelease, make_release
from zktrace.studies.changes import FORMATS, as_state, single
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Progress, Trial
from zktrace.studies.tracing import BUDGET, RELEASE, station
from zktrace.studies.zoo.rewrites import CHANNELS, REWRITES
from zktrace.studies.zoo.table import ZooNetwork, network_of
from zktrace.studies.zoo.tasks import ZooTask
from zktrace.studies.zoo.trained import TrainedNetwork
from zktrace.tracing import Case, trace

STATIONS: Final = 10
CARRIERS: Final = ("spread",)
SEEDS: Final = (4004, 4005, 4006)  # of keys
FOREIGN: Final = 43  # seed of the network that nobody protected
_TOTAL: Final = Fraction(1, 10)  # budget of a workspace: a study takes many looks
_PART: Final = 5  # one in so many held-out samples is asked of changed copies
_SUSPECT: Final = 60.0  # seconds to make, trace, judge and measure one


@dataclass(frozen=True, kw_only=True)
class ModelsTrial:
    """A trained network, its data, and the keys it is protected with."""

    network: ZooNetwork
    task: ZooTask
    model: Path
    foreign: Path | None  # a network of the same kind that was trained apart
    seed: int  # of the stations' keys, the leaker, and what it draws
    work: Path

    def facts(self) -> dict[str, Any]:
        """What all rows say of it."""
        return {
            "study": "models",
            "network": self.network.name,
            "model": model_digest(open_model(self.model)).hex(),
            "carriers": list(CARRIERS),
            "stations": STATIONS,
            "keys": self.seed,
            "budget": str(BUDGET),
        }

    @property
    def leaker(self) -> int:
        """Whose copy leaks."""
        return int(np.random.default_rng([self.seed, 7]).integers(STATIONS))


@dataclass(frozen=True, kw_only=True)
class ModelsBatch:
    """One network under several sets of keys: the cost of copies, then one row a suspect."""

    trained: TrainedNetwork
    foreign: TrainedNetwork | None
    seeds: tuple[int, ...]
    work: Path
    study: ClassVar[str] = "models"

    @property
    def name(self) -> str:
        """The network's."""
        return self.trained.network

    @property
    def needs(self) -> tuple[TrainedNetwork, ...]:
        """The network, and a stranger of its kind."""
        return (self.trained,) if self.foreign is None else (self.trained, self.foreign)

    @property
    def size(self) -> int:
        """The same for all keys."""
        return sum(
            1 + len([*bench.leaks(), *bench.strangers(self._others(bench.trial))])
            for bench in (ModelBench(trial=each) for each in self._trials)
        )

    @property
    def guess(self) -> float:
        """Of one core."""
        return self.size * _SUSPECT

    @property
    def _trials(self) -> list[ModelsTrial]:
        trained, foreign = self.trained, self.foreign
        return [
            ModelsTrial(
                network=network_of(trained.network),
                task=trained.task,
                model=trained.path,
                foreign=None if foreign is None else foreign.path,
                seed=seed,
                work=self.work,
            )
            for seed in self.seeds
        ]

    def _others(self, trial: ModelsTrial) -> list[ModelsTrial]:
        return [each for each in self._trials if each.seed != trial.seed]

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Copies that are missing are made for the first one."""
        for each in self._trials:
            yield from trials_of(each, self._others(each))


def trials_of(trial: ModelsTrial, others: Sequence[ModelsTrial] = ()) -> Iterator[Trial]:
    """The trials under one set of keys. `others` are under other keys: a copy of theirs is nobody's here."""
    facts, bench = trial.facts(), ModelBench(trial=trial)
    yield Trial(facts=facts | {"part": "cost"}, outcome=bench.cost)
    for part, kind, make in [*bench.leaks(), *bench.strangers(others)]:
        members = (trial.leaker,) if part == "leak" else ()
        yield Trial(
            facts=facts | {"part": part, "suspect": kind},
            outcome=lambda make=make, members=members: bench.outcome(make(), members),  # type: ignore[misc]
        )


@dataclass(frozen=True, kw_only=True)
class ModelBench:
    """One network under one set of keys."""

    trial: ModelsTrial

    @cached_property
    def home(self) -> Home:
        """The operator's workspace, made as far as it is missing: everybody enrolled, one release."""
        trial = self.trial
        folder = trial.work / f"{trial.network.name}-{trial.seed}-{trial_id(trial.facts())[:8]}"
        if (folder / SETTINGS).exists():
            home = Home.open(folder)
        else:
            home = Home.create(folder, title=f"study: {folder.name}", budget=_TOTAL, carriers=CARRIERS)
        ledger = home.registry.ledger()
        for number in range(len(ledger.by_row), STATIONS):
            home.enrol(station(number), Request.make(experimental_key(trial.seed, number), home.offer))
        if RELEASE not in ledger.releases:
            make_release(home, trial.model, carriers=CARRIERS, name=RELEASE)
        return home

    @cached_property
    def release(self) -> OpenRelease:
        """What copies are made from."""
        return OpenRelease.of(self.home, RELEASE)

    @cached_property
    def copies(self) -> list[ModelState]:
        """By row."""
        names = [station(number) for number in range(STATIONS)]
        made = {each.station: each.path for each in dispatch(self.home, release=self.release, stations=names)}
        return [open_model(made[name]) for name in names]

    @cached_property
    def leaked(self) -> ModelState:
        """The leaker's copy."""
        return self.copies[self.trial.leaker]

    def cost(self) -> dict[str, Any]:
        """What copies lose against the shared model, and how much of it carries."""
        started = time.perf_counter()
        copies = self.copies
        took = time.perf_counter() - started
        shared, *each = (self.measured(model) for model in (self.release.shared, *copies))
        costs = [self.cost_of(shared, one) for one in each]
        layout = self.release.layout(CARRIERS[0])
        return {
            "measure": self.trial.task.measure,
            "shared": shared,
            "copies": each,
            "mean_cost": mean(costs),
            "worst_cost": max(costs),
            "weights": sum(int(one.size) for one in self.release.shared.values()),
            "tensors": len(self.release.shared),
            "carry": len(layout.layers),
            "dimension": layout.dimension,
            "length": layout.length,
            "seconds_copies": round(took, 2),
        }

    def cost_of(self, shared: float, copy: float) -> float:
        """In points of accuracy, or in percent of perplexity."""
        if self.trial.task.measure == "accuracy":
            return 100 * (shared - copy)
        return 100 * (copy / shared - 1)

    def measured(self, model: ModelState, part: int = 1) -> float:
        """A model on held-out data, or one in `part` of it."""
        return self.trial.network.measured(single(model), self.trial.task, part=part)

    def leaks(self) -> Iterator[tuple[str, str, Callable[[], ModelState]]]:
        """What the leaker may have made of its copy."""
        trial = self.trial
        yield "leak", "as it is", lambda: self.leaked
        for name, change in FORMATS.items():
            yield "leak", name, lambda change=change: change(self.leaked)  # type: ignore[misc]
        yield "leak", "100 fine-tuning steps", lambda: self._finetuned(self.leaked)
        yield (
            "leak",
            "LoRA of rank 8, merged",
            lambda: as_state(trial.network.adapted(self.leaked, trial.task, seed=trial.seed)),
        )
        for name in REWRITES.get(trial.network.name, {}):
            yield "leak", name, lambda name=name: self._rewritten(name)  # type: ignore[misc]
        if CHANNELS in REWRITES.get(trial.network.name, {}):
            yield "leak", "rewritten, then 8 bits", lambda: FORMATS["8 bits"](self._rewritten(CHANNELS))
            yield "leak", "rewritten, then fine-tuned", lambda: self._finetuned(self._rewritten(CHANNELS))

    def strangers(self, others: Sequence[ModelsTrial]) -> Iterator[tuple[str, str, Callable[[], ModelState]]]:
        """Models that no station of this workspace was given."""
        yield "stranger", "shared model, fine-tuned", lambda: self._finetuned(self.release.shared)
        foreign = self.trial.foreign
        if foreign is not None:
            yield "stranger", "trained apart", lambda: open_model(foreign)
        for other in others[:1]:
            yield "stranger", "copy under other keys", lambda other=other: ModelBench(trial=other).leaked  # type: ignore[misc]

    def _rewritten(self, how: str) -> ModelState:
        rng = np.random.default_rng([self.trial.seed, 9])
        return as_state(REWRITES[self.trial.network.name][how](self.leaked, rng))

    def _finetuned(self, model: ModelState) -> ModelState:
        trial = self.trial
        return as_state(trial.network.finetuned(model, trial.task, seed=trial.seed))

    def outcome(self, suspect: ModelState, members: tuple[int, ...]) -> dict[str, Any]:
        """An investigation on record, and what a judge says of its evidence."""
        started = time.perf_counter()
        case = self._traced(suspect)
        traced = time.perf_counter()
        accepted, reason = self._judged(case, suspect)
        judged = time.perf_counter()
        rows = [case.stations.index(name) for name in case.names]
        return {
            "members": list(members),
            "verdict": str(case.verdict),
            "named": rows,
            "caught": len(set(rows) & set(members)),
            "framed": len(set(rows) - set(members)),
            "look": case.look.alignment,
            "sigma": _sigmas(case, members),
            "judge": reason or ("upheld" if accepted else "nothing to judge"),
            "measured": self.measured(suspect, _PART),
            "measured_shared": self._reference,
            "seconds_trace": round(traced - started, 2),
            "seconds_judge": round(judged - traced, 2),
        }

    @cached_property
    def _reference(self) -> float:
        """What the shared model says of the same samples as changed copies."""
        return self.measured(self.release.shared, _PART)

    def _traced(self, suspect: ModelState) -> Case:
        with single_threaded():
            reading = self.release.read(suspect)
            return trace(
                self.home.registry,
                self.home.custody,
                suspect=model_digest(suspect),
                release=RELEASE,
                readouts=reading.readouts,
                further=reading.further,
                budget=BUDGET,
                requests=self.home.request_of,
            )

    def _judged(self, case: Case, suspect: ModelState) -> tuple[bool, str]:
        """Whether the evidence holds, or why not. Of a case that names nobody there is nothing to hold."""
        if not case.named:
            return False, ""
        try:
            judge(
                case.evidence.to_bytes(),
                head=self.home.registry.head(),
                suspect=suspect,
                shared=self.release.shared,
            )
        except EvidenceRejected as error:
            return False, f"rejected: {error}"
        return True, ""


def _sigmas(case: Case, members: tuple[int, ...]) -> dict[str, dict[str, float | None]]:
    """By carrier of the look that decided: scores and threshold in standard deviations of an innocent's."""
    found = {}
    for table in case.tables:
        scale = float(np.sqrt(len(table.values)))
        scores = table.scores / scale
        others = [float(each) for row, each in enumerate(scores) if row not in members]
        found[table.carrier] = {
            "member": round(max(float(scores[row]) for row in members), 2) if members else None,
            "greatest_other": round(max(others), 2),
            "threshold": round(float(table.positive.threshold) / scale, 2),
        }
    return found
