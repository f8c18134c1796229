"""Insiders: a recipient erases its own row, and leaks what is left (`sub:stressors`, docs/attacks.md).

A federation is trained and copies are dispatched as an operator would. One recipient is given its row, writes
other words over it, and the suspect is traced on each carrier alone and on all of them. What each insider
knows stands in `attacks.insider`: its copy and row, and `knows` says whose directions it writes along. Those
that know their copy alone train on, add noise, round, or lower the rank of matrices. A study puts no
investigation on record.

The unit of effort is what a copy was made with: `episodes` of training, and marks of a copy's size. Where a
carrier is not trained by episodes (profile `informed`), its passes are longer in the same proportion.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from zktrace.attacks.insider import (
    ADAPTIVE,
    ERASURES,
    Effort,
    Erased,
    StoppingRule,
    Word,
    erase,
    erase_adaptively,
    low_rank,
)
from zktrace.attacks.training import finetune
from zktrace.carriers import carrier
from zktrace.codes import unpack
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import InputError
from zktrace.learning.cost import accuracy
from zktrace.learning.threads import single_threaded
from zktrace.models import ModelState, open_model
from zktrace.readouts.readout import Reading
from zktrace.readouts.samples import Pool
from zktrace.readouts.suspects import plain
from zktrace.studies.changes import as_state, bits, noise
from zktrace.studies.ground import CARRIERS, Ground
from zktrace.studies.leaker import leakers_samples
from zktrace.studies.pens import JobPen, given_terms, guessed_terms
from zktrace.studies.runner import Progress, Trial, quietly
from zktrace.studies.tracing import BUDGET, sigmas, station
from zktrace.tracing import Plan, investigate

KNOWS: Final = ("directions", "row")
ALONE: Final = ("noise", "retrain", "low-rank", "rounding")  # by the copy alone
KINDS: Final = (*ERASURES, ADAPTIVE, *ALONE)
EPISODES: Final = (300, 600, 1200)  # the paper's: as many as a copy, twice, four times
SAMPLES: Final = 4096  # of the insider's own images, or as many as there are
_KEPT: Final = 0.5  # of the singular directions of a matrix
_BITS: Final = 4
_INSIDER: Final = 17  # purpose of randomness
_STOPPING: Final = StoppingRule()
_COPY, _EPISODE, _READ = 60.0, 0.08, 15.0  # seconds of an idle core, at width 16


@dataclass(frozen=True, slots=True, kw_only=True)
class InsidersTrial:
    """One insider of one federation."""

    ground: Ground
    kind: str
    knows: str  # whose directions: one of KNOWS; "copy": no row and no directions
    episodes: int  # 0 where nothing is trained
    number: int
    factor: float = 1.0
    push: float = 0.0  # paper: see `JobPen`
    stopping: StoppingRule = _STOPPING
    samples: int = SAMPLES

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"no insider {self.kind!r}; known: {', '.join(KINDS)}")
        if self.knows not in (("copy",) if self.kind in ALONE else KNOWS):
            raise InputError(f"an insider by {self.kind} does not know {self.knows!r}")

    @property
    def member(self) -> int:
        """The insider's row: another station for every number, until all had their turn."""
        federation = self.ground.federation
        return (federation.seed + self.number) % federation.preset.federation.clients

    def facts(self) -> dict[str, Any]:
        """What the row says of it. The shared model is there by then."""
        found = self.ground.facts | {
            "study": "insiders",
            "kind": self.kind,
            "knows": self.knows,
            "episodes": self.episodes,
            "unit": self.ground.settings.episodes,
            "factor": self.factor,
            "number": self.number,
            "member": self.member,
            "samples": self.samples,
        }
        if self.ground.profile == "paper":
            found["push"] = self.push
        return found | ({"stopping": asdict(self.stopping)} if self.kind == ADAPTIVE else {})

    @property
    def guess(self) -> float:
        """Seconds of one idle core, roughly, once federation and copy are there."""
        return _READ + self.episodes * _EPISODE * (1 if self.kind != "retrain" else 0.5)


def trials(
    grounds: Sequence[Ground],
    *,
    kinds: Sequence[str] = KINDS,
    knows: Sequence[str] = KNOWS,
    episodes: Sequence[int] = EPISODES,
    factors: Sequence[float] = (1.0,),
    push: float = 0.0,
    count: int = 2,
    samples: int = SAMPLES,
) -> Iterator[InsidersTrial]:
    """Every insider of every federation, `count` of each kind. Factors are for the informed profile."""
    for ground in grounds:
        for kind in kinds:
            for level in ("copy",) if kind in ALONE else knows:
                for budget in (0,) if kind in ALONE and kind != "retrain" else episodes:
                    for factor in (1.0,) if kind in ALONE or ground.profile == "paper" else factors:
                        for number in range(count):
                            yield InsidersTrial(
                                ground=ground,
                                kind=kind,
                                knows=level,
                                episodes=budget,
                                number=number,
                                factor=factor,
                                push=push,
                                samples=samples,
                            )


@dataclass(frozen=True, kw_only=True)
class InsidersBatch:
    """The insiders of one federation in one profile."""

    insiders: tuple[InsidersTrial, ...]
    study: ClassVar[str] = "insiders"

    @property
    def _ground(self) -> Ground:
        return self.insiders[0].ground

    @property
    def name(self) -> str:
        """By federation and profile."""
        return f"{self._ground.key}-{self._ground.profile}"

    @property
    def needs(self) -> tuple[Ground, ...]:
        """The federation, trained."""
        return (self._ground,)

    @property
    def size(self) -> int:
        """A row each."""
        return len(self.insiders)

    @property
    def guess(self) -> float:
        """Copies, and what insiders do with them."""
        copies = {each.member for each in self.insiders}
        return len(copies) * _COPY + sum(each.guess for each in self.insiders)

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Copies are made as they are asked for."""
        for each in self.insiders:
            yield Trial(facts=each.facts(), outcome=partial(outcome, each, report))


def batches(wanted: Iterable[InsidersTrial]) -> list[InsidersBatch]:
    """One a federation and profile."""
    groups: dict[tuple[Path, str], list[InsidersTrial]] = {}
    for each in wanted:
        groups.setdefault((each.ground.folder, each.ground.profile), []).append(each)
    return [InsidersBatch(insiders=tuple(each)) for each in groups.values()]


def outcome(trial: InsidersTrial, report: Progress = quietly) -> dict[str, Any]:
    """What comes of a trial whose federation is trained."""
    bench = _Bench(trial=trial, copy=_copy(trial.ground, trial.member))
    report("copy", 1, 1)
    started = time.perf_counter()
    with single_threaded():
        erased = bench.erased()
    took = time.perf_counter() - started
    report("insider", 1, 1)
    return bench.found(erased) | {"seconds": round(took, 1)}


def _copy(ground: Ground, row: int) -> ModelState:
    (made,) = dispatch(
        ground.workspace,
        release=ground.release,
        stations=[station(row)],
        settings=ground.settings,
        read_back=False,
    )
    return open_model(made.path)


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """One insider at work, and the operator who finds what it leaked."""

    trial: InsidersTrial
    copy: ModelState

    def erased(self) -> Erased[ModelState]:
        """What the insider makes of its copy."""
        trial, rng = self.trial, self._rng()
        if trial.kind in ALONE:
            return Erased(state=self._spoilt(rng), steps=1)
        row, turned = self._row(), [name for name in self._row() if not carrier(name).network]
        pen = self._pen(row, rng)
        effort = Effort(episodes=trial.episodes, factor=trial.factor)
        if trial.kind == ADAPTIVE:
            return erase_adaptively(
                self.copy, row, pen, effort=effort, turned=turned, stopping=trial.stopping, rng=rng
            )
        return erase(self.copy, row, pen, kind=trial.kind, effort=effort, turned=turned, rng=rng)

    def _rng(self) -> np.random.Generator:
        trial = self.trial
        where = (KINDS.index(trial.kind), ("copy", *KNOWS).index(trial.knows), trial.episodes, trial.number)
        return trial.ground.spec.rng(_INSIDER, *where)

    def _row(self) -> dict[str, Word]:
        """What the insider was given."""
        codes = {name: self.trial.ground.release.code(name) for name in CARRIERS[self.trial.ground.profile]}
        return {name: unpack(code.rows([self.trial.member])[0], code.length) for name, code in codes.items()}

    def _pool(self, rng: np.random.Generator) -> Pool:
        """The insider's own images: none of the server's is among them."""
        spec = self.trial.ground.spec
        images, labels = leakers_samples(spec, samples=0, rng=rng)
        chosen = np.sort(rng.permutation(len(labels))[: self.trial.samples])
        return Pool(
            images=images[chosen],
            labels=labels[chosen],
            episodes=asdict(spec.preset.episodes),
            note="an insider's",
        )

    def _pen(self, row: dict[str, Word], rng: np.random.Generator) -> JobPen:
        ground, pool = self.trial.ground, self._pool(rng)
        terms = (
            given_terms(ground.release, self.copy)
            if self.trial.knows == "directions"
            else guessed_terms(self.copy, row, profile=ground.profile, pool=pool, rng=rng)
        )
        return JobPen(
            terms=terms,
            pool=pool,
            profile=ground.profile,
            settings=ground.settings,
            push=self.trial.push,
        )

    def _spoilt(self, rng: np.random.Generator) -> ModelState:
        """By the copy alone."""
        kind, copy = self.trial.kind, plain(self.copy)
        if kind == "noise":
            return noise(copy, rng)
        if kind == "rounding":
            return bits(_BITS)(copy)
        if kind == "low-rank":
            return as_state(low_rank(copy, kept=_KEPT))
        pool = self._pool(rng)
        config = replace(self.trial.ground.spec.preset.episodes, episodes=self.trial.episodes)
        return as_state(finetune(copy, pool.images, pool.labels, config, rng))

    def found(self, erased: Erased[ModelState]) -> dict[str, Any]:
        """Who is named after it, and before; what it cost."""
        before, after = self._columns(self.copy), self._columns(erased.state)
        return {
            "named": bool(after["all"]["caught"]),
            "escaped": not any(each["caught"] or each["lead"] for each in after.values()),
            "framed": max(each["framed"] for each in after.values()),
            "steps": erased.steps,
            "columns": after,
            "before": before,
            "copy_accuracy": self._accuracy(self.copy),
            "accuracy": self._accuracy(erased.state),
        }

    def _columns(self, suspect: ModelState) -> dict[str, dict[str, Any]]:
        """By carrier, and by all of them."""
        carriers = CARRIERS[self.trial.ground.profile]
        with single_threaded():
            reading = self.trial.ground.release.read(suspect).remembered()
        found = {each: self._column(reading, (each,)) for each in carriers}
        return found | {"all": self._column(reading, carriers)}

    def _column(self, reading: Reading, carriers: tuple[str, ...]) -> dict[str, Any]:
        """Whom an investigation names, and the insider's score on the suspect as it was leaked."""
        release, member = self.trial.ground.release, self.trial.member
        stations = self.trial.ground.federation.preset.federation.clients
        found = investigate(
            Plan.of(reading, release.rule, carriers), release.code, recipients=stations, level=BUDGET
        )
        first = next((each.scored for each in found.taken if each.scored is not None), None)
        scores = {} if first is None else sigmas(first, (member,), stations)
        return {
            "verdict": str(found.verdict),
            "caught": int(member in found.named),
            "framed": len(set(found.named) - {member}),
            "lead": member in {each.recipient for each in found.scored.leads},
            "own": {name: each["least_member"] for name, each in scores.items()},
            "other": {name: each["greatest_other"] for name, each in scores.items()},
        }

    def _accuracy(self, model: ModelState) -> float:
        """On the same test episodes for all models."""
        ground = self.trial.ground
        images, labels = ground.spec.source.samples("test")
        found = accuracy(
            model,
            images,
            labels,
            shape=ground.federation.preset.evaluation.shape,
            seed=ground.federation.seed,
        )
        return found.mean
