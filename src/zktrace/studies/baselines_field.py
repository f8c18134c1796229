"""A system in one trained federation: its shared model, everybody's copy, and how a suspect is judged."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from zktrace.baselines.federated import handout, pretrained, spec_with, venue_of
from zktrace.baselines.protocol import MarkReading, Scheme, System, Venue
from zktrace.federation.run import run
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import worker_engine
from zktrace.learning.arrays import Arrays, Images, Labels, State
from zktrace.learning.cost import accuracy
from zktrace.models import open_model, save_model
from zktrace.studies.attack_targets import EPISODES
from zktrace.studies.federation import share_pretraining
from zktrace.studies.leaker import leakers_samples
from zktrace.studies.runner import Progress, quietly

_SAMPLES = 18  # purpose of randomness
EARLY = 3  # a third of the rounds is over when the early leak is sent out


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Trained when something of it is asked for, and kept on disk."""

    system: System
    base: RunSpec  # without marks
    control: Path  # folder of that run
    folder: Path
    report: Progress = field(default=quietly)

    @cached_property
    def spec(self) -> RunSpec:
        """The run with the system in it."""
        return spec_with(self.base, self.system)

    @cached_property
    def scheme(self) -> Scheme:
        """With the keys of the run."""
        return self.system.set_up(self._venue())

    def _venue(self, seed: int | None = None) -> Venue:
        return venue_of(self.spec, seed=seed, first=lambda: pretrained(self.control))

    def other_keys(self, number: int) -> Scheme:
        """The same system with keys of which nothing is in any model."""
        seed = int(self.spec.rng(_KEYS, number).integers(1 << 31))
        return self.system.set_up(self._venue(seed))

    @property
    def member(self) -> int:
        """Who leaks."""
        return self.base.seed % self.stations

    @property
    def stations(self) -> int:
        """Everybody."""
        return self.base.preset.federation.clients

    @cached_property
    def result(self) -> dict[str, Any]:
        """What the run came to. One that was stopped begins its rounds again: servers remember theirs."""
        path = self.folder / "result.json"
        if not (path.exists() and self._early.exists()):
            self._train()
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    @property
    def _early(self) -> Path:
        return self.folder / "early.safetensors"

    def _train(self) -> None:
        for name in ("rounds.safetensors", "result.json"):
            (self.folder / name).unlink(missing_ok=True)
        share_pretraining(self.folder, [self.control])
        number, kept = self.spec.preset.federation.rounds // EARLY, dict[int, State]()
        server = handout(self.system.set_up(self._venue()), kept=kept, watched=(self.member, number))
        started = time.process_time()
        with worker_engine(self.spec, workers=0, handout=server) as engine:
            run(self.spec, self.folder, engine, resume=True, progress=lambda _: self.report("rounds", 0, 0))
        (self.folder / "seconds").write_text(f"{time.process_time() - started:.1f}")
        save_model(self._early, kept[number], replace=True)

    @cached_property
    def shared(self) -> State:
        """The shared model in the end."""
        _ = self.result
        return dict(open_model(self.folder / "model.safetensors"))

    @cached_property
    def early(self) -> State:
        """What the leaker had received when a third of the rounds was over."""
        _ = self.result
        return dict(open_model(self._early))

    @cached_property
    def unmarked(self) -> State:
        """The shared model of the federation without marks."""
        return dict(open_model(self.control / "model.safetensors"))

    @cached_property
    def copies(self) -> tuple[State, ...]:
        """Everybody's, of the round behind the last."""
        rounds = self.spec.preset.federation.rounds
        return tuple(self.scheme.outgoing(self.shared, each, rounds) for each in range(self.stations))

    @property
    def leaked(self) -> State:
        """The leaker's copy."""
        return self.copies[self.member]

    def accuracy(self, state: Arrays) -> float:
        """On the same test episodes for all models."""
        images, labels = self.tests
        shape = self.base.preset.evaluation.shape
        return accuracy(state, images, labels, shape=shape, episodes=EPISODES, seed=self.base.seed).mean

    @cached_property
    def tests(self) -> tuple[Images, Labels]:
        """Test samples."""
        return self.base.source.samples("test")

    def leakers(self, samples: int) -> tuple[Images, Labels]:
        """What the leaker trains on; the same for every system."""
        return leakers_samples(self.base, samples=samples, rng=self.base.rng(_SAMPLES))

    def judged(self, suspect: State, members: Iterable[int]) -> dict[str, Any]:
        """What the system says of a suspect that is made of these members' copies."""
        return self.told(self.scheme.read(suspect), members)

    def told(self, reading: MarkReading, members: Iterable[int]) -> dict[str, Any]:
        """Whom it names; an innocent is whoever is named as a recipient and is not among the members."""
        own = set(members)
        accused = set(reading.named) if self.system.names_recipients else set[int]()
        return {
            "mark": reading.mark,
            "own": max((reading.scores[each] for each in own), default=None) if reading.scores else None,
            "present": reading.present,
            "first": reading.first,
            "named": list(reading.named),
            "caught": len(accused & own),
            "framed": len(accused - own),
        }


_KEYS = 91  # purpose of randomness


def same(states: Iterable[State]) -> bool:
    """Whether all of these are the same numbers."""
    first, *others = states
    return all(np.array_equal(first[name], each[name]) for each in others for name in first)
