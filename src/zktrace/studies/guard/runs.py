"""The same federation in three designs: nothing guarded, guarded, and with marks subtracted on return.

All three begin with the same pre-trained model, draw the same episodes, and differ in nothing but what
stations receive and what the server keeps. The third is the tempting design: everybody's mark is subtracted
from what comes back, and what training made of the marks stays in the shared model. It is here to
be measured.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

from zktrace.errors import InputError
from zktrace.federation.client import Absence, Update
from zktrace.federation.guarded import guarded_handout
from zktrace.federation.handout import SAME_FOR_ALL, Answers, Engine, Handout
from zktrace.federation.roster import experimental_key
from zktrace.federation.run import run
from zktrace.federation.server import RoundReport
from zktrace.federation.spec import RunSpec, preset_facts
from zktrace.federation.workers import worker_engine
from zktrace.guarding.broadcasts import model_path
from zktrace.guarding.guard import NAME
from zktrace.learning.arrays import State
from zktrace.learning.training import EpochReport
from zktrace.models import ModelState, open_model
from zktrace.registry.requests import Request
from zktrace.registry.workspace import SETTINGS, Home
from zktrace.releases import OpenRelease
from zktrace.studies.federation import FederationTrial, share_pretraining
from zktrace.studies.runner import Progress, Trial, quietly
from zktrace.studies.tracing import station

Design = Literal["unguarded", "guarded", "subtracted"]
DESIGNS: Final[tuple[Design, ...]] = get_args(Design)
CARRIERS: Final = ("spread",)


@dataclass(frozen=True, kw_only=True)
class GuardRun:
    """One federation in one design, on disk."""

    federation: FederationTrial
    design: Design
    work: Path
    cifar10: Path | None = None
    cache: Path | None = None

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            raise InputError(f"no design {self.design!r}; known: {', '.join(DESIGNS)}")

    def facts(self) -> dict[str, Any]:
        """What all rows of it say."""
        preset = self.federation.preset
        return {
            "study": "guard",
            "network": f"ResNet-{preset.model.depth}, width {preset.model.width}",
            "dataset": preset.data.dataset,
            "seed": self.federation.seed,
            "design": self.design,
            "preset": preset_facts(preset),
        }

    @property
    def folder(self) -> Path:
        """Of the run."""
        return self.work / f"{self.federation.folder}-{self.design}"

    @cached_property
    def spec(self) -> RunSpec:
        """The same in all designs."""
        return self.federation.spec(cifar10=self.cifar10, cache=self.cache)

    @property
    def stations(self) -> tuple[str, ...]:
        """Their names, in the order of their rows."""
        return tuple(station(each) for each in range(self.spec.preset.federation.clients))

    @cached_property
    def home(self) -> Home:
        """The operator's workspace, made as far as it is missing."""
        folder = self.folder / "operator"
        if (folder / SETTINGS).exists():
            home = Home.open(folder)
        else:
            bits = self.spec.preset.marks.bits
            home = Home.create(folder, title="study: guard", carriers=CARRIERS, identity_bits=bits)
        for number in range(len(home.registry.ledger().by_row), len(self.stations)):
            key = experimental_key(self.spec.seed, number)
            home.enrol(station(number), Request.make(key, home.offer))
        return home

    @property
    def release(self) -> OpenRelease:
        """Of the first shared model."""
        return OpenRelease.of(self.home, NAME)

    def result(self, report: Progress = quietly) -> dict[str, Any]:
        """What `result.json` says of it; trained, or trained on, as far as it is missing."""
        path = self.folder / "result.json"
        if not path.exists():
            share_pretraining(self.folder, [replace(self, design=each).folder for each in DESIGNS])

            def told(found: EpochReport | RoundReport) -> None:
                if isinstance(found, RoundReport):
                    report(self.folder.name, found.round + 1, self.spec.preset.federation.rounds)
                else:
                    report(f"{self.folder.name}, pre-training", found.epoch, found.epochs)

            with self._engine() as engine:
                run(self.spec, self.folder, engine, resume=True, progress=told)
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found

    def shared(self, number: int) -> ModelState:
        """The model that round `number` (from 0) began with; after the last round, what came out."""
        if number == self.spec.preset.federation.rounds:
            return open_model(self.folder / "model.safetensors")
        return open_model(model_path(self.release, number))

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        """In this process: whoever has several cores runs several studies."""
        if self.design == "unguarded":
            with worker_engine(self.spec, workers=0) as engine:
                yield engine
            return
        handout = guarded_handout(self.home, self.stations, keep=True)
        if self.design == "guarded":
            with worker_engine(self.spec, workers=0, handout=handout) as engine:
                yield engine
            return
        sent: dict[int, State] = {}
        with worker_engine(self.spec, workers=0, handout=_unclean(handout, sent)) as engine:
            yield Engine(_subtracting(engine.answers, sent), engine.handout)


def trials(run: GuardRun, report: Progress) -> Iterator[Trial]:
    """One: what came out of its training."""
    yield Trial(facts=run.facts() | {"part": "utility"}, outcome=lambda: run.result(report))


def _unclean(handout: Handout, sent: dict[int, State]) -> Handout:
    """What is sent is remembered, and an average stays as it is."""

    def outgoing(station: int, state: State) -> State:
        sent[station] = handout.outgoing(station, state)
        return sent[station]

    return replace(handout, outgoing=outgoing, incoming=SAME_FOR_ALL.incoming)


def _subtracting(answers: Answers, sent: dict[int, State]) -> Answers:
    """Everybody's own mark is subtracted from what comes back."""

    def cleaned(number: int, asked: tuple[int, ...], state: State) -> Iterator[Update | Absence]:
        for each in answers(number, asked, state):
            if isinstance(each, Absence):
                yield each
            else:
                marked = sent[each.station]
                left = {name: array - (marked[name] - state[name]) for name, array in each.state.items()}
                yield replace(each, state=left)

    return cleaned
