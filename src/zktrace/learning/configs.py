"""How long, how fast and on what shape of episode to train. Plain values; nothing here needs torch."""

import math
from dataclasses import dataclass, replace
from typing import Self

from zktrace.errors import InputError


def cosine(base: float, step: int, steps: int) -> float:
    """Learning rate of step 0 .. steps-1, annealed from `base` towards 0."""
    return base * (1 + math.cos(math.pi * step / steps)) / 2


def require(key: str, value: float, condition: bool, wanted: str) -> None:
    """Refuse a value that is out of its range, by name."""
    if not condition:
        raise InputError(f"{key} = {value} must be {wanted}")


def _require_rates(learning_rate: float, momentum: float, weight_decay: float) -> None:
    require("learning_rate", learning_rate, 0 < learning_rate < math.inf, "a positive number")
    require("momentum", momentum, 0 <= momentum < 1, "at least 0 and below 1")
    require("weight_decay", weight_decay, 0 <= weight_decay < math.inf, "a number of at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeShape:
    """`way` classes with `shot` labelled examples and `query` questions each."""

    way: int = 5
    shot: int = 5
    query: int = 15

    def __post_init__(self) -> None:
        require("way", self.way, self.way >= 2, "at least 2 classes")
        require("shot", self.shot, self.shot >= 1, "at least 1 example a class")
        require("query", self.query, self.query >= 1, "at least 1 question a class")

    @property
    def needed(self) -> int:
        """Samples that a class must have."""
        return self.shot + self.query

    @property
    def images(self) -> int:
        """Samples in an episode."""
        return self.way * self.needed

    def __str__(self) -> str:
        return f"{self.way}-way {self.shot}-shot episode with {self.query} queries a class"


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig:
    """Cross-entropy over all classes, the learning rate annealed from epoch to epoch."""

    epochs: int
    batch_size: int = 128
    samples: int = 0  # drawn anew for each epoch, without replacement; 0: all
    learning_rate: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        require("epochs", self.epochs, self.epochs >= 0, "at least 0")
        require("batch_size", self.batch_size, self.batch_size >= 2, "at least 2 (batch normalisation)")
        require("samples", self.samples, self.samples == 0 or self.samples >= 2, "0 (all) or at least 2")
        _require_rates(self.learning_rate, self.momentum, self.weight_decay)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodicConfig:
    """One round of local training. The optimizer starts afresh: stations keep no momentum between rounds."""

    way: int = 5
    shot: int = 5
    query: int = 15
    episodes: int = 25  # a round
    temperature: float = 1.0  # divides the squared distances in the loss; 1 is the paper's loss
    learning_rate: float = 0.001
    momentum: float = 0.9
    weight_decay: float = 5e-4

    def __post_init__(self) -> None:
        require("episodes", self.episodes, self.episodes >= 1, "at least 1")
        require("temperature", self.temperature, 0 < self.temperature < math.inf, "a positive number")
        _require_rates(self.learning_rate, self.momentum, self.weight_decay)
        _ = self.shape

    @property
    def shape(self) -> EpisodeShape:
        """The shape of an episode."""
        return EpisodeShape(way=self.way, shot=self.shot, query=self.query)

    def at_round(self, number: int, rounds: int) -> Self:
        """The same with the learning rate of round `number` (from 0) of `rounds`."""
        return replace(self, learning_rate=cosine(self.learning_rate, number, rounds))
