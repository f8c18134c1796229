"""WAFFLE (Tekgul, Xia, Marchal, Asokan): the server trains trigger images into the model after every round.

One set for the whole federation: it shows whose model it is, and is the same in every copy.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from zktrace.baselines.listing import SUPPORT
from zktrace.baselines.patterns import noise, patterns
from zktrace.baselines.protocol import Answers, MarkReading, Scheme, System, Venue, parameter
from zktrace.baselines.triggers import (
    Ends,
    Kept,
    Lessons,
    answers_of,
    by_prototypes,
    hits_needed,
    learn,
    support_of,
)
from zktrace.learning.arrays import Labels, State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.states import state_of

_KEYS, _LESSONS = 21, 22  # purposes of randomness


@dataclass(frozen=True, kw_only=True)
class Waffle(System):
    """Trained triggers with a pattern a class."""

    name: ClassVar[str] = "waffle"
    title: ClassVar[str] = "WAFFLE (Tekgul et al., SRDS 2021)"
    place: ClassVar[str] = "output-space"
    metric: ClassVar[str] = "trigger images named rightly"
    rule: ClassVar[str] = (
        "the federation's mark is present if so many are named rightly that guessing does it with at most "
        "2^-64: 47 of 100 in the paper"
    )
    names_recipients: ClassVar[bool] = False

    triggers: int = parameter(100, "published", "trigger images, as many of each class")
    begins: int = parameter(30, "code", "epochs on them before the first round")
    epochs: int = parameter(
        20, "ours", "at most, after each round; the code's 100 takes longer than the round"
    )
    rate: float = parameter(5e-4, "code", "of SGD")
    momentum: float = parameter(0.5, "code", "before the first round; afterwards none")
    decay: float = parameter(5e-5, "code", "weight decay before the first round")
    batch: int = parameter(50, "code", "images of a step")
    enough: float = parameter(0.98, "code", "share of triggers that ends the training")
    shown: int = parameter(20, "ours", "samples of a class in the support set")
    level: str = parameter(f"1/{1 << 64}", "reported", "chance that guessing passes")

    def set_up(self, venue: Venue) -> "TriggerSet":
        """Draw the triggers."""
        return TriggerSet(self, venue)

    @classmethod
    def smallest(cls) -> "Waffle":
        """A pass over few triggers."""
        return cls(triggers=12, begins=2, epochs=1, shown=5)


class TriggerSet(Scheme):
    """The triggers, and how they are kept in the model."""

    def __init__(self, system: Waffle, venue: Venue) -> None:
        self._system, self._venue = system, venue
        self._support = support_of(venue, system.shown)
        rng = venue.rng(_KEYS)
        each = max(1, round(system.triggers / venue.classes))
        drawn = [one.on(noise(rng, each, venue.shape)) for one in patterns(rng, venue.classes, venue.shape)]
        ends = Ends.of(venue.samples()[0])
        self._kept = Kept(pixels=np.concatenate(drawn), low=ends.low, high=ends.high)
        self.labels: Labels = np.repeat(np.arange(venue.classes, dtype=np.int64), each)
        self.needed = hits_needed(len(self.labels), venue.classes, Fraction(system.level))
        self._steps = venue.rng(_LESSONS)

    def begun(self, shared: State) -> State:
        """Triggers are learnt before the first round."""
        system = self._system
        return self._taught(shared, system.begins, momentum=system.momentum, decay=system.decay)

    def incoming(self, aggregate: State, shared: State) -> State:
        """And again after every one."""
        return self._taught(aggregate, self._system.epochs, momentum=0.0, decay=0.0)

    def _taught(self, state: State, epochs: int, *, momentum: float, decay: float) -> State:
        model, system = backbone_of(state), self._system
        lessons = Lessons(
            batch=system.batch,
            rate=system.rate,
            momentum=momentum,
            decay=decay,
            epochs=epochs,
            enough=system.enough,
        )
        learn(
            model,
            self._kept.images,
            self.labels,
            lessons,
            head=lambda each: by_prototypes(each, self._support, self._venue.episodes.temperature),
            rng=self._steps,
        )
        return state_of(model)

    def read(self, suspect: State) -> MarkReading:
        """Queries are enough."""
        return self.ask(answers_of(suspect))

    def ask(self, answers: Answers) -> MarkReading:
        """Which triggers have the class of their pattern."""
        named = answers(self._support.images, self._support.labels, self._kept.images)
        hits = int((named == self.labels).sum())
        return MarkReading(mark=hits / len(self.labels), present=hits >= self.needed)

    def payload(self) -> dict[str, int]:
        """Triggers with a label of a byte each, and the support set."""
        return {"triggers": self._kept.size + len(self.labels), SUPPORT: self._support.size}
