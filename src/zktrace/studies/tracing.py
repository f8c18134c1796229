"""Copies of a shared model, leaked alone and averaged: who is named (`tab:isolation`, `tab:collusion`).

A workspace is made as an operator would, its stations enrolled, copies dispatched. Every single copy, all
pairs and random larger coalitions are then read and scored. A study puts no investigation on record.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, Final

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
from zktrace.readouts.scales import Arrays
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, make_release
from zktrace.studies.rows import Row, Rows, trial_id
from zktrace.tracing import Plan, investigate
from zktrace.tracing.score import Scored

RELEASE: Final = "r1"
BUDGET: Final = Fraction(1, 1000)
SIZES: Final = (3, 5, 8)
SAMPLED: Final = 20  # coalitions of each of these sizes

Progress = Callable[[str, int, int], None]  # what, done, of


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


def perform(
    trial: TracingTrial, rows: Rows, *, work: Path, jobs: int = 2, progress: Progress | None = None
) -> list[Row]:
    """Make the copies that are missing and the rows that are missing."""
    report = progress or (lambda _what, _done, _of: None)
    facts = trial.facts()
    workspace = prepared(
        trial.spec, trial.model, work / trial.folder, carriers=trial.carriers, profile=trial.profile
    )
    stations = trial.spec.preset.federation.clients
    chosen = [station(number) for number in range(trial.copies or stations)]
    made_copies = {}
    release = OpenRelease.of(workspace, RELEASE)
    handed = dispatch(
        workspace,
        release=release,
        stations=chosen,
        settings=trial.settings,
        jobs=jobs,
        read_back=False,
    )
    for copy in handed:
        made_copies[copy.station] = open_model(copy.path)
        report("copies", len(made_copies), len(chosen))
    copies = [made_copies[name] for name in chosen]
    done = rows.done()
    made: list[Row] = []
    wanted = facts | {"part": "cost"}
    if trial_id(wanted) not in done:
        made.append(rows.add(wanted, _cost(trial, release, copies)))
    groups = list(coalitions(len(copies), trial.spec.seed, trial.sizes))
    for number, members in enumerate(groups, start=1):
        wanted = facts | {"part": "coalition", "members": list(members)}
        if trial_id(wanted) not in done:
            suspect = copies[members[0]] if len(members) == 1 else dict(collude([copies[i] for i in members]))
            made.append(rows.add(wanted, outcome(release, suspect, members, stations)))
        report("coalitions", number, len(groups))
    return made


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
