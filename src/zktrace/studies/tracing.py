"""Copies of a shared model, leaked alone and averaged: who is named (`tab:isolation`, `tab:collusion`).

A workspace is made as an operator would, its stations enrolled, copies dispatched. Every single copy, all
pairs and random larger coalitions are then read and scored. A study puts no investigation on record.
Here the shared model is a file; `federated_tracing` trains it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.attacks.collusion import collude
from zktrace.carriers import CARRIERS, Profile, carrier
from zktrace.dispatch.dispatching import dispatch
from zktrace.federation.roster import experimental_key
from zktrace.federation.spec import RunSpec
from zktrace.learning.data.proxy import proxy_pool
from zktrace.learning.threads import single_threaded
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model
from zktrace.primitives.processes import processors
from zktrace.readouts.scales import Arrays
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, make_release
from zktrace.studies.copy_costs import copy_costs
from zktrace.studies.decodes import Decoder, gates
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Prerequisite, Progress, Trial
from zktrace.tracing import Investigation, Plan, investigate
from zktrace.tracing.score import Scored

RELEASE: Final = "r1"
BUDGET: Final = Fraction(1, 1000)
SIZES: Final = (3, 5, 8)
SAMPLED: Final = 20  # coalitions of each of these sizes
_STRATEGY: Final = 94  # purpose of randomness
_FEW: Final = 1 << 14  # coalitions of a size that are listed before some are drawn; of more, none is listed


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingTrial:
    """A shared model, where it came from, and how copies of it are marked."""

    spec: RunSpec
    model: Path
    carriers: tuple[str, ...]
    profile: Profile
    settings: CopySettings
    sizes: tuple[int, ...] = SIZES
    pairs: int | None = None  # so many are drawn; None: all
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


def coalitions(
    stations: int, seed: int, sizes: tuple[int, ...] = SIZES, *, pairs: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Everybody alone, all pairs or so many, and SAMPLED different coalitions of each larger size."""
    yield from ((each,) for each in range(stations))
    yield from combinations(range(stations), 2) if pairs is None else drawn(stations, 2, pairs, seed)
    for size in sizes:
        yield from drawn(stations, size, SAMPLED, seed)


def drawn(stations: int, size: int, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Different coalitions of one size: so many, or all that there are."""
    rng, total = np.random.default_rng([seed, size]), math.comb(stations, size)
    if total <= _FEW:
        every = list(combinations(range(stations), size))
        yield from (every[int(place)] for place in rng.permutation(total)[:count])
        return
    found = dict[tuple[int, ...], None]()
    while len(found) < min(count, total):
        found[tuple(sorted(map(int, rng.permutation(stations)[:size])))] = None
    yield from found


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
        return list(coalitions(trial.recipients, trial.spec.seed, trial.sizes, pairs=trial.pairs))

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Copies that are missing are made for the first one."""
        facts, bench = self.trial.facts(), TracingBench(trial=self.trial, work=self.work, report=report)
        yield Trial(facts=facts | {"part": "cost"}, outcome=bench.cost)
        for members in self._groups:
            told = {"part": "coalition", "members": list(members)}
            yield Trial(facts=facts | told, outcome=partial(bench.leak, members))


def model_tracings(
    spec: RunSpec,
    model: Path,
    profiles: Sequence[Profile],
    carriers: Sequence[tuple[str, ...]],
    settings: CopySettings,
    *,
    work: Path,
    sizes: Sequence[int] = SIZES,
    pairs: int | None = None,
    copies: int | None = None,
) -> list[TracingBatch]:
    """A finished model in each profile, with copies that carry each of these; none: each by itself."""
    return [
        TracingBatch(
            trial=TracingTrial(
                spec=spec,
                model=model,
                carriers=some,
                profile=profile,
                settings=settings,
                sizes=tuple(sizes),
                pairs=pairs,
                copies=copies,
            ),
            work=work,
        )
        for profile in profiles
        for some in carried(profile, carriers)
    ]


def carried(profile: Profile, carriers: Sequence[tuple[str, ...]] = ()) -> list[tuple[str, ...]]:
    """Of these carriers, what copies of a profile can carry; none given: each of them by itself."""
    able = [each.name for each in CARRIERS.values() if profile in each.profiles]
    for name in (name for some in carriers for name in some):
        carrier(name)
    return [some for some in carriers or [(each,) for each in able] if set(some) <= set(able)]


@dataclass(frozen=True, kw_only=True)
class TracingBench:
    """A workspace with its copies, made when they are first asked for."""

    trial: TracingTrial
    work: Path
    report: Progress

    @cached_property
    def release(self) -> OpenRelease:
        """The one release, with everybody enrolled."""
        return OpenRelease.of(self._workspace, RELEASE)

    @cached_property
    def _workspace(self) -> Home:
        trial = self.trial
        folder = self.work / trial.folder
        return prepared(trial.spec, trial.model, folder, carriers=trial.carriers, profile=trial.profile)

    @cached_property
    def copies(self) -> list[ModelState]:
        """In the order of rows."""
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
        """What copies lose."""
        spec = self.trial.spec
        images, labels = spec.source.samples("test")
        named = ((station(number), copy) for number, copy in enumerate(self.copies))
        shape = spec.preset.evaluation.shape
        return copy_costs(self.release.shared, named, images, labels, shape=shape, seed=spec.seed)

    def leak(self, members: tuple[int, ...], strategy: str = "mean") -> dict[str, Any]:
        """Whom the profile's rule names, whom thresholds alone would, and what the decode is like."""
        held, rng = [self.copies[row] for row in members], self.trial.spec.rng(_STRATEGY, *members)
        suspect: Arrays = held[0] if len(held) == 1 else dict(collude(held, strategy, rng=rng))
        with single_threaded():
            reading = self.release.read(suspect, align=False, strict=True)
        rule, stations = self.release.rule, self.stations
        found = investigate(Plan.of(reading, rule), self.release.code, recipients=stations, level=BUDGET)
        gated, decodes = gates(found.scored), {}
        for each in reading.readouts:
            decoder = self._decoders[each.carrier]
            decodes[each.carrier] = decoder.facts(each.values, members) | gated.get(each.carrier, {})
            if rule == "paper":
                decodes[each.carrier]["beyond"] = decoder.beyond(each.values)
        return _told(found, members, stations) | {"decodes": decodes}

    @property
    def stations(self) -> int:
        """Everybody who is scored."""
        return self.trial.spec.preset.federation.clients

    @cached_property
    def _decoders(self) -> dict[str, Decoder]:
        return {
            name: Decoder(code=self.release.code(name), stations=self.stations, level=BUDGET)
            for name in self.release.carriers
        }


def outcome(release: OpenRelease, suspect: Arrays, members: tuple[int, ...], stations: int) -> dict[str, Any]:
    """Whom the rule of a profile names, and scores in standard deviations of an innocent's."""
    reading = release.read(suspect, align=False, strict=True)
    found = investigate(Plan.of(reading, release.rule), release.code, recipients=stations, level=BUDGET)
    return _told(found, members, stations)


def _told(found: Investigation, members: tuple[int, ...], stations: int) -> dict[str, Any]:
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
