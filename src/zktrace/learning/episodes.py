"""N-way K-shot episodes: drawing them from labels, and the loss of prototypical networks (Snell et al.)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.arrays import Indices
from zktrace.learning.configs import EpisodeShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Positions of samples: row k of `support` and of `query` belongs to class `classes[k]`."""

    classes: Indices  # (way,)
    support: Indices  # (way, shot)
    query: Indices  # (way, query)

    @property
    def samples(self) -> Indices:
        """All positions in one row: the support set class by class, then the queries class by class."""
        return np.concatenate([self.support.ravel(), self.query.ravel()])


class EpisodeSampler:
    """Draws episodes from the classes that have enough samples; refuses labels that give none."""

    def __init__(self, labels: ArrayLike, shape: EpisodeShape) -> None:
        self.shape = shape
        self._members = _members(labels)
        self.classes = [each for each, members in self._members.items() if len(members) >= shape.needed]
        if len(self.classes) < shape.way:
            raise InputError(f"no {shape} can be formed: {_shortage(self._members, shape)}")

    def draw(self, rng: np.random.Generator) -> Episode:
        """Classes and their samples, both without replacement: no support sample is among the queries."""
        shape = self.shape
        classes = rng.choice(np.array(self.classes, dtype=np.int64), shape.way, replace=False)
        drawn = np.stack([rng.choice(self._members[int(k)], shape.needed, replace=False) for k in classes])
        return Episode(classes=classes, support=drawn[:, : shape.shot], query=drawn[:, shape.shot :])

    def samples(self, rng: np.random.Generator) -> Iterator[Indices]:
        """The samples of one episode after the other, without end."""
        while True:
            yield self.draw(rng).samples


def can_form(labels: ArrayLike, shape: EpisodeShape) -> bool:
    """Whether samples with these labels give such an episode."""
    return sum(len(members) >= shape.needed for members in _members(labels).values()) >= shape.way


def _members(labels: ArrayLike) -> dict[int, Indices]:
    """Positions of the samples of each class, in increasing order."""
    array = np.asarray(labels)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InputError(f"labels must be one row of integers, not {array.dtype} of shape {array.shape}")
    order = np.argsort(array, kind="stable").astype(np.int64)
    classes, starts = np.unique(array[order], return_index=True)
    return {int(k): part for k, part in zip(classes, np.split(order, starts[1:]), strict=False)}


def _shortage(members: dict[int, Indices], shape: EpisodeShape) -> str:
    enough = sum(len(each) >= shape.needed for each in members.values())
    counts = ", ".join(f"{k}: {len(each)}" for k, each in list(members.items())[:20])
    dots = ", ..." if len(members) > 20 else ""
    return (
        f"{enough} of the needed {shape.way} classes have {shape.needed} samples "
        f"(samples by class {{{counts}{dots}}})"
    )


def prototypes(support: Tensor) -> Tensor:
    """c_k, the mean of a class's support features: (way, shot, d) -> (way, d)."""
    return support.mean(dim=1)


def prototype_logits(queries: Tensor, centres: Tensor, temperature: float = 1.0) -> Tensor:
    """-||f(x) - c_k||^2 / temperature: (m, d) and (way, d) -> (m, way)."""
    return -(queries[:, None, :] - centres[None, :, :]).square().sum(dim=2) / temperature


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeOutcome:
    """The query negative log-likelihood (differentiable) and the fraction of queries named rightly."""

    loss: Tensor
    accuracy: float


def episode_outcome(features: Tensor, shape: EpisodeShape, temperature: float = 1.0) -> EpisodeOutcome:
    """Loss and accuracy from the features of `Episode.samples`, in that order."""
    supports = shape.way * shape.shot
    centres = prototypes(features[:supports].reshape(shape.way, shape.shot, -1))
    logits = prototype_logits(features[supports:], centres, temperature)
    truth = torch.arange(shape.way).repeat_interleave(shape.query)
    accuracy = (logits.detach().argmax(dim=1) == truth).double().mean().item()
    return EpisodeOutcome(loss=functional.cross_entropy(logits, truth), accuracy=accuracy)
