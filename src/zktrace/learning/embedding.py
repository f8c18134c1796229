"""What a network must be to carry rows in its features or its answers, whatever it is made of."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn

from zktrace.learning.arrays import State
from zktrace.learning.states import state_of


class Said(NamedTuple):
    """What a network says of a batch of inputs."""

    features: Tensor  # (n, d)
    outputs: Tensor | None  # (n, classes), where it has a last layer that gives scores


class Embedding(nn.Module, ABC):
    """Inputs in, features out, in two parts: a trunk that all copies share, and the rest, which is moved."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Numbers that it says of an input."""

    @abstractmethod
    def trunk(self, x: Tensor) -> Tensor:
        """From inputs to what the trained part is given: computed once, for it is the same in all copies."""

    @abstractmethod
    def say(self, inner: Tensor) -> Said:
        """From there to what it says."""

    @abstractmethod
    def stage(self) -> list[nn.Parameter]:
        """What training may move when a word is written."""

    def state(self) -> State:
        """Its arrays by name."""
        return state_of(self)

    def said(self, x: Tensor) -> Said:
        """Of a batch of inputs."""
        return self.say(self.trunk(x))

    def forward(self, x: Tensor) -> Tensor:
        """Features of a batch of inputs."""
        return self.said(x).features
