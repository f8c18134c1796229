"""The one face of a published system: what each party does with a model, and what a verifier reads of it.

    System   the published method with its parameters: a value
    Venue    what it is set up for: stations, a network, the server's own samples, a seed for keys
    Scheme   a system that was set up: its keys are drawn

In the order in which a federation calls them: `begun` once, then in every round `outgoing` for each station,
`penalty` in the station's own training and `incoming` of the aggregate; `outgoing` once more when rounds are
over. What a scheme does not override changes nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from zktrace.baselines.listing import Source
from zktrace.baselines.scale_words import ScaleWord
from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels, State
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.training import Penalty

Answers: TypeAlias = Callable[[Images, Labels, Images], Labels]  # support, its classes, images -> classes


def parameter(default: Any, source: Source, why: str) -> Any:  # noqa: ANN401
    """A field of a system: its value, where that comes from, and what it is."""
    return field(default=default, metadata={"source": source, "why": why})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a system for people."""

    name: str
    value: Any
    source: Source
    why: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Venue:
    """What a system is set up for."""

    stations: int
    rounds: int
    seed: int  # of all keys
    layers: tuple[int, ...]  # how many scales each BatchNorm layer of the network has
    features: int
    shape: tuple[int, int, int]  # of an image
    classes: int
    episodes: EpisodicConfig  # how prototypes are trained
    samples: Callable[[], tuple[Images, Labels]]  # the server's own
    first: Callable[[], State]  # the network before the first round; only the server has it at hand

    def __post_init__(self) -> None:
        if self.stations < 2 or not self.layers or self.features < 1 or self.classes < 2:
            raise InputError(
                f"{self.stations} stations, {self.classes} classes, {len(self.layers)} layers and "
                f"{self.features} features: a system needs two, two, one and one at least"
            )

    @property
    def scales(self) -> int:
        """Of all BatchNorm layers."""
        return sum(self.layers)

    def rng(self, *purpose: int) -> np.random.Generator:
        """A generator of its own for every purpose."""
        return np.random.default_rng([self.seed, *purpose])


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkReading:
    """What a verifier reads of a suspect."""

    mark: float  # the native metric
    present: bool | None = None  # the federation's mark, by the system's rule; None: it has none
    scores: tuple[float, ...] = ()  # by station; empty where nobody is told from others
    named: tuple[int, ...] = ()  # stations that the rule names

    def __post_init__(self) -> None:
        if not np.isfinite(self.mark) or not np.isfinite(self.scores).all():
            raise InputError("a reading that is not finite")
        if any(not 0 <= each < len(self.scores) for each in self.named):
            raise InputError("a reading names somebody who has no score")

    @property
    def first(self) -> int | None:
        """Whose score is the largest, whether or not it is large."""
        return int(np.argmax(self.scores)) if self.scores else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """What a station's proof over a model is worth, as tried."""

    size: int  # bytes
    accepted: bool  # under the station's own key, about this model
    borrowed: bool  # accepted under another station's key
    replayed: bool  # accepted about another model


class Scheme(ABC):
    """A system that was set up."""

    def begun(self, shared: State) -> State:
        """The shared model before the first round."""
        return shared

    def outgoing(self, shared: State, station: int, number: int) -> State:
        """What a station receives in a round, from 0; in the round behind the last, its copy to keep."""
        return shared

    def penalty(self, station: int, number: int) -> Penalty | None:
        """What a station adds to its loss in a round."""
        return None

    def incoming(self, aggregate: State, shared: State) -> State:
        """The next shared model from the aggregate of a round and the model that the round began with."""
        return aggregate

    @abstractmethod
    def read(self, suspect: State) -> MarkReading:
        """By whoever holds keys and the suspect's weights."""

    def ask(self, answers: Answers) -> MarkReading | None:
        """By queries alone, to a suspect that names classes; None where a system cannot be read so."""
        return None

    def public(self) -> ScaleWord | None:
        """What everybody knows of the mark, so that an attacker may use it."""
        return None

    def proved(self, suspect: State, other: State) -> Proved | None:
        """A station's proof over a suspect that shows no secret, tried; None where there is none."""
        return None

    @abstractmethod
    def payload(self) -> dict[str, int]:
        """Bytes that a verifier is handed for one verification, by part; the support set is called so."""


@dataclass(frozen=True, kw_only=True)
class System(ABC):
    """A published method. Its fields are its parameters."""

    name: ClassVar[str]
    title: ClassVar[str]  # authors and where
    place: ClassVar[str]  # where the mark lives
    metric: ClassVar[str]  # what `MarkReading.mark` is
    rule: ClassVar[str]  # whom or what it decides, by which threshold, and who says so
    names_recipients: ClassVar[bool]  # whether it names whose copy a suspect is

    @abstractmethod
    def set_up(self, venue: Venue) -> Scheme:
        """Draw the keys."""

    @classmethod
    def smallest(cls) -> "System":
        """The same with as little training as tests can afford."""
        return cls()

    def facts(self) -> dict[str, Any]:
        """For rows, and for the digest of a run."""
        return {"system": self.name, **asdict(self)}

    def parameters(self) -> tuple[Parameter, ...]:
        """All of them, with their provenance."""
        return tuple(self._parameter(each) for each in fields(self))

    def _parameter(self, each: "Field[Any]") -> Parameter:
        source, why = each.metadata["source"], each.metadata["why"]
        return Parameter(name=each.name, value=getattr(self, each.name), source=source, why=why)
