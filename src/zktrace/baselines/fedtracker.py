"""FedTracker (Shao et al.): triggers in the shared model, a fingerprint in every copy, all by the server.

After each round the shared model is taught the triggers; gradients that would undo what stations learnt are
turned by a memory of the way the model went. Each copy is then moved, in its BatchNorm scales, until the
server's key of its station reads its fingerprint.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from zktrace.baselines.fingerprints import spread_words
from zktrace.baselines.listing import SUPPORT
from zktrace.baselines.patterns import Pattern, noise, patterns
from zktrace.baselines.protocol import Answers, MarkReading, Scheme, System, Venue, parameter
from zktrace.baselines.scale_words import ScaleWord, gaussian
from zktrace.baselines.triggers import Ends, Kept, Lessons, by_prototypes, learn, support_of
from zktrace.learning.arrays import Labels, State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.marking.weight import with_scales
from zktrace.models import ModelState
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import centred, gather

_KEYS, _LESSONS, _TRIGGERS, _HELD_OUT = 31, 32, 33, 34  # purposes of randomness
_SOFT = 1e-3  # beside the squared norm of a memory
_STEPPED = 1024  # scales that the code's step is for


@dataclass(frozen=True, kw_only=True)
class FedTracker(System):
    """Triggers for ownership, fingerprints for tracing."""

    name: ClassVar[str] = "fedtracker"
    title: ClassVar[str] = "FedTracker (Shao et al., TDSC 2025)"
    place: ClassVar[str] = "weight-space"
    metric: ClassVar[str] = "fingerprint similarity score of the station with the largest"
    rule: ClassVar[str] = (
        "the station with the largest score, if it is at least 0.85, which in the code ends the writing; "
        "the code itself names the largest whatever it is"
    )
    names_recipients: ClassVar[bool] = True

    bits: int = parameter(128, "code", "of a fingerprint; at most a quarter of the scales")
    delta: float = parameter(0.5, "code", "margin of a bit, and what a full bit counts")
    step: float = parameter(
        5e-3, "code", "of 1,024 scales of size 1; others move by as large a part of what is read"
    )
    steps: int = parameter(30, "ours", "of a copy at most; the code has 6")
    threshold: float = parameter(0.85, "code", "score that ends the writing; here also the least that names")
    centred: bool = parameter(
        True, "ours", "directions less their mean in each layer, as our own marks have; false: as published"
    )
    triggers: int = parameter(100, "code", "trigger images, as many of each class")
    rate: float = parameter(5e-4, "code", "of SGD on triggers")
    batch: int = parameter(16, "code", "images of a step")
    epochs: int = parameter(10, "ours", "on the triggers at most, after each round; the code has 100")
    enough: float = parameter(0.98, "code", "share of triggers that ends the training")
    strength: float = parameter(0.5, "code", "least multiple of the memory that turns a gradient")
    shown: int = parameter(20, "ours", "samples of a class in the support set")

    def set_up(self, venue: Venue) -> "Fingerprints":
        """Draw fingerprints, keys and triggers."""
        return Fingerprints(self, venue)

    @classmethod
    def smallest(cls) -> "FedTracker":
        """A pass over few triggers."""
        return cls(epochs=1, triggers=30, shown=5)


class Fingerprints(Scheme):
    """What the server holds."""

    def __init__(self, system: FedTracker, venue: Venue) -> None:
        self._system, self._venue = system, venue
        count = min(system.bits, venue.scales // 4)
        words = spread_words(venue.rng(_KEYS), venue.stations, count)
        self.words = [
            ScaleWord(
                directions=gaussian(venue.rng(_KEYS, k), count, venue.layers, apart=system.centred),
                bits=words[k],
            )
            for k in range(venue.stations)
        ]
        self._support = support_of(venue, system.shown)
        self._patterns = patterns(venue.rng(_TRIGGERS), venue.classes, venue.shape)
        self._ends = Ends.of(venue.samples()[0])
        self._memory: State = {}
        self._steps = venue.rng(_LESSONS)

    def begun(self, shared: State) -> State:
        """Triggers are in the very first model."""
        self._memory = {}
        return self._taught(shared)

    def outgoing(self, shared: State, station: int, number: int) -> State:
        """The station's fingerprint is written."""
        word, system = self.words[station], self._system
        gamma = gather(shared)
        read = centred(gamma, self._venue.layers) if system.centred else gamma
        step = system.step * _STEPPED**0.5 * float(np.linalg.norm(read)) / len(gamma)
        for _ in range(system.steps):
            if self._read(gamma).named == (station,):
                break
            lacking = system.delta - word.signs * (word.directions @ gamma) > 0
            gamma = gamma + step * (word.signs[lacking] @ word.directions[lacking])
        return dict(with_scales(ModelState.from_arrays(shared), gamma))

    def incoming(self, aggregate: State, shared: State) -> State:
        """The way back to where the round began is remembered, as a gradient is; triggers are taught."""
        for name, array in aggregate.items():
            if array.dtype.kind == "f":
                way = shared[name].astype(np.float64) - array
                self._memory[name] = self._memory.get(name, np.zeros_like(way)) + way
        return self._taught(aggregate)

    def read(self, suspect: State) -> MarkReading:
        """All fingerprints."""
        return self._read(gather(suspect))

    def _read(self, gamma: Floats) -> MarkReading:
        scores = tuple(self._score(word, gamma) for word in self.words)
        first = int(np.argmax(scores))
        named = (first,) if scores[first] >= self._system.threshold else ()
        return MarkReading(mark=scores[first], scores=scores, named=named)

    def _score(self, word: ScaleWord, gamma: Floats) -> float:
        """Mean of min(delta, f_j (A gamma)_j) / delta."""
        delta = self._system.delta
        return float(np.minimum(delta, word.signs * (word.directions @ gamma)).mean() / delta)

    def ask(self, answers: Answers) -> MarkReading:
        """Ownership alone, by triggers that the model was not trained on."""
        kept, labels = self._drawn(_HELD_OUT)
        named = answers(self._support.images, self._support.labels, kept.images)
        share = float((named == labels).mean())
        return MarkReading(mark=share, present=share >= self._system.enough)

    def payload(self) -> dict[str, int]:
        """Of one station; triggers prove ownership only."""
        kept, labels = self._drawn(_HELD_OUT)
        triggers = kept.size + len(labels)
        return {**self.words[0].payload(), "triggers": triggers, SUPPORT: self._support.size}

    def _drawn(self, purpose: int) -> tuple[Kept, Labels]:
        """Half pattern, half noise; other noise for another purpose."""
        each = max(1, round(self._system.triggers / self._venue.classes))
        rng, shape = self._venue.rng(_TRIGGERS, purpose), self._venue.shape

        def of(pattern: Pattern) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
            return pattern.alone() // 2 + noise(rng, each, shape) // 2

        pixels = np.concatenate([of(pattern) for pattern in self._patterns])
        labels = np.repeat(np.arange(self._venue.classes, dtype=np.int64), each)
        return Kept(pixels=pixels, low=self._ends.low, high=self._ends.high), labels

    def _taught(self, state: State) -> State:
        model, system = backbone_of(state), self._system
        kept, labels = self._drawn(_TRIGGERS)
        learn(
            model,
            kept.images,
            labels,
            Lessons(batch=system.batch, rate=system.rate, epochs=system.epochs, enough=system.enough),
            head=lambda each: by_prototypes(each, self._support, self._venue.episodes.temperature),
            rng=self._steps,
            guided=self._guided,
        )
        return state_of(model)

    def _guided(self, model: ResNet) -> None:
        """No gradient goes against the remembered one (gradient episodic memory with one constraint)."""
        for name, parameter_ in model.named_parameters():
            if parameter_.grad is None or name not in self._memory:
                continue
            memory = torch.from_numpy(self._memory[name]).to(parameter_.grad.dtype)
            against = float((parameter_.grad * memory).sum())
            if against < 0:
                times = max(self._system.strength, -against / (float(memory.square().sum()) + _SOFT))
                parameter_.grad += times * memory
