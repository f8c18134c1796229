"""Copies of a shared model, leaked alone and averaged: who is named (`tab:isolation`, `tab:collusion`).

A workspace is made as an operator would, its stations enrolled, copies dispatched. Every single copy, all
pairs and random larger coalitions are then read and scored. A study puts no investigation on record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.attacks.collusion import collude
from zktrace.carriers import Profile
from zktrace.dispatch.dispatching import dispatch
from zktrace.federation.roster import experimental_key
from zktrace.federation.spec import RunSpec
from zktrace.learning.cost import copy_cost
from zktrace.learning.data.proxy import proxy_pool
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model
from zktrace.primitives.processes import processors
from zktrace.readouts.scales import Arrays
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, make_release
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Prerequisite, Progress, Trial
from zktrace.tracing import Plan, investigate
from zktrace.tracing.score import Scored

RELEASE: Final = "r1"
BUDGET: Final = Fraction(1, 1000)
SIZES: Final = (3, 5, 8)
SAMPLED: Final = 20  # coalitions of each of these sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingTrial:
    """A shared model, where it came from, and how copies of it are marked."""

    spec: RunSpec
    model: Path
    carriers: tuple[str, ...]
    profile: Profile
    settings: CopySettings
    sizes: tuple[int, ...] = SIZES
    copies: int | None = None  # so many stations, from the first, get a copy; None: all

    @property
    def recipients(self) -> int:
        """How many stations get a copy."""
        return self.copies or self.spec.preset.federation.clients

    def facts(self) -> dict[str, Any]:
        """What rows say of it."""
        return {
            "study": "tracing",
            "dataset": self.spec.preset.data.dataset,
            "seed": self.spec.seed,
            "width": self.spec.preset.model.width,
            "stations": self.spec.preset.federation.clients,
            "model": model_digest(open_model(self.model)).hex(),
            "carriers": list(self.carriers),
            "profile": self.profile,
            "settings": self.settings.heeded(self.carriers, self.profile),
            "budget": str(BUDGET),
        }

    @property
    def folder(self) -> str:
        """A name for the workspace."""
        kind = f"{'+'.join(self.carriers)}-{self.profile}"
        return f"{self.spec.preset.data.dataset}-{self.spec.seed}-{kind}-{trial_id(self.facts())[:8]}"


def coalitions(stations: int, seed: int, sizes: tuple[int, ...] = SIZES) -> Iterator[tuple[int, ...]]:
    """Everybody alone, all pairs, and SAMPLED different coalitions of each larger size."""
    yield from ((each,) for each in range(stations))
    yield from combinations(range(stations), 2)
    for size in sizes:
        every = list(combinations(range(stations), size))
        order = np.random.default_rng([seed, size]).permutation(len(every))
        yield from (every[int(place)] for place in order[:SAMPLED])


@dataclass(frozen=True, kw_only=True)
class TracingBatch:
    """What copies cost, and every coalition of those who got one."""

    trial: TracingTrial
    work: Path
    study: ClassVar[str] = "tracing"
    needs: ClassVar[tuple[Prerequisite, ...]] = ()
    guess: ClassVar[float] = 300.0

    @property
    def name(self) -> str:
        """Its workspace's."""
        return self.trial.folder

    @property
    def size(self) -> int:
        """The cost, and a row each."""
        return 1 + len(self._groups)

    @property
    def _groups(self) -> list[tuple[int, ...]]:
        trial = self.trial
        return list(coalitions(trial.recipients, trial.spec.seed, trial.sizes))

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Copies that are missing are made for the first one."""
        facts, bench = self.trial.facts(), _TracingBench(trial=self.trial, work=self.work, report=report)
        yield Trial(facts=facts | {"part": "cost"}, outcome=bench.cost)
        for members in self._groups:
            told = {"part": "coalition", "members": list(members)}
            yield Trial(facts=facts | told, outcome=partial(bench.leak, members))


@dataclass(frozen=True, kw_only=True)
class _TracingBench:
    """A workspace with its copies."""

    trial: TracingTrial
    work: Path
    report: Progress

    @cached_property
    def release(self) -> OpenRelease:
        return OpenRelease.of(self._workspace, RELEASE)

    @cached_property
    def _workspace(self) -> Home:
        trial = self.trial
        folder = self.work / trial.folder
        return prepared(trial.spec, trial.model, folder, carriers=trial.carriers, profile=trial.profile)

    @cached_property
    def copies(self) -> list[ModelState]:
        chosen = [station(number) for number in range(self.trial.recipients)]
        made: dict[str, ModelState] = {}
        for copy in dispatch(
            self._workspace,
            release=self.release,
            stations=chosen,
            settings=self.trial.settings,
            jobs=max(1, processors()),
            read_back=False,
        ):
            made[copy.station] = open_model(copy.path)
            self.report("copies", len(made), len(chosen))
        return [made[name] for name in chosen]

    def cost(self) -> dict[str, Any]:
        return _cost(self.trial, self.release, self.copies)

    def leak(self, members: tuple[int, ...]) -> dict[str, Any]:
        held = [self.copies[row] for row in members]
        suspect = held[0] if len(held) == 1 else dict(collude(held))
        return outcome(self.release, suspect, members, self.trial.spec.preset.federation.clients)


def outcome(release: OpenRelease, suspect: Arrays, members: tuple[int, ...], stations: int) -> dict[str, Any]:
    """Whom the rule of a profile names, and scores in standard deviations of an innocent's."""
    reading = release.read(suspect, align=False, strict=True)
    found = investigate(Plan.of(reading, release.rule), release.code, recipients=stations, level=BUDGET)
    return {
        "verdict": str(found.verdict),
        "named": list(found.named),
        "caught": len(set(found.named) & set(members)),
        "framed": len(set(found.named) - set(members)),
        "sigma": sigmas(found.scored, members, stations),
    }


def sigmas(found: Scored, members: tuple[int, ...], stations: int) -> dict[str, dict[str, float | None]]:
    """By carrier: members' scores and the greatest of others, in standard deviations of an innocent's."""
    result = {}
    for reading in found.readings:
        values = reading.coefficients.scores_float(reading.sums)
        scores = values / np.sqrt(reading.coefficients.biases.length)
        own = [float(scores[i]) for i in members]
        others = [float(scores[i]) for i in range(stations) if i not in members]
        result[reading.carrier] = {
            "least_member": round(min(own), 3) if own else None,
            "greatest_member": round(max(own), 3) if own else None,
            "greatest_other": round(max(others), 3) if others else None,
        }
    return result


def station(number: int) -> str:
    """The name of the station with this row."""
    return f"station{number:03d}"


def prepared(
    spec: RunSpec, model: Path, folder: Path, *, carriers: tuple[str, ...], profile: Profile
) -> Home:
    """The operator's workspace of a study, as far as it is missing: everybody enrolled, one release."""
    if (folder / "zktrace.toml").exists():
        workspace = Home.open(folder)
    else:
        bits = spec.preset.marks.bits
        workspace = Home.create(folder, title=f"study: {folder.name}", carriers=carriers, identity_bits=bits)
    ledger = workspace.registry.ledger()
    for number in range(len(ledger.by_row), spec.preset.federation.clients):
        request = Request.make(experimental_key(spec.seed, number), workspace.offer)
        workspace.enrol(station(number), request)
    if RELEASE not in ledger.releases:
        make_release(
            workspace,
            model,
            carriers=carriers,
            profile=profile,
            name=RELEASE,
            pool=proxy_pool(spec.source, spec.preset.episodes),
        )
    return workspace


def _cost(trial: TracingTrial, release: OpenRelease, copies: list[ModelState]) -> dict[str, Any]:
    images, labels = trial.spec.source.samples("test")
    named = ((station(number), copy) for number, copy in enumerate(copies))
    found = copy_cost(
        release.shared, named, images, labels, shape=trial.spec.preset.evaluation.shape, seed=trial.spec.seed
    )
    return {
        "shared": found.shared.mean,
        "copies": [each.mean for each in found.copies.values()],
        "mean_cost_pp": found.mean,
        "worst_cost_pp": found.worst,
    }
