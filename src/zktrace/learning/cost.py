"""What a mark costs: few-shot accuracy of shared model and copies, on the same episodes, or any metric."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.evaluation import EpisodeScore, embed, episode_accuracy
from zktrace.learning.network import embedding_of, module_of, theirs
from zktrace.learning.threads import single_threaded
from zktrace.readouts.network import Network
from zktrace.readouts.scales import Arrays

EPISODES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Accuracies of the shared model and of copies by name."""

    shared: EpisodeScore
    copies: Mapping[str, EpisodeScore]

    @property
    def mean(self) -> float:
        """Accuracy that a copy loses on average, in percentage points; negative if it gains."""
        return 100.0 * float(np.mean([self.shared.mean - each.mean for each in self.copies.values()]))

    @property
    def worst(self) -> float:
        """Accuracy that the worst copy loses, in percentage points."""
        return 100.0 * max(self.shared.mean - each.mean for each in self.copies.values())


def accuracy(
    state: Arrays,
    images: Images,
    labels: Labels,
    *,
    shape: EpisodeShape | None = None,
    episodes: int = EPISODES,
    seed: int = 0,
    network: Network | None = None,
) -> EpisodeScore:
    """Of one model, on the episodes of a seed."""
    with single_threaded():
        features = embed(embedding_of(state, images, network), images)
    rng = np.random.default_rng(seed)
    return episode_accuracy(features, labels, shape or EpisodeShape(), rng, episodes=episodes)


def copy_cost(
    shared: Arrays,
    copies: Iterable[tuple[str, Arrays]],
    images: Images,
    labels: Labels,
    *,
    shape: EpisodeShape | None = None,
    episodes: int = EPISODES,
    seed: int = 0,
    network: Network | None = None,
) -> Cost:
    """Accuracy before and after marking; every model answers the same episodes."""

    def score(state: Arrays) -> EpisodeScore:
        return accuracy(state, images, labels, shape=shape, episodes=episodes, seed=seed, network=network)

    before = score(shared)
    after = {name: score(state) for name, state in copies}
    if not after:
        raise InputError("no copy to evaluate")
    return Cost(shared=before, copies=after)


def shape_for(labels: Labels) -> EpisodeShape:
    """The usual episode, or as much of it as samples with these labels allow."""
    usual, counts = EpisodeShape(), np.unique(labels, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < 2:
        raise InputError("an accuracy is measured on two classes or more, of two samples or more each")
    shot = min(usual.shot, int(counts.min()) // 2)
    return EpisodeShape(
        way=min(usual.way, len(counts)), shot=shot, query=min(usual.query, int(counts.min()) - shot)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCost:
    """A metric of somebody's own, the more the better, of the shared model and of copies by name."""

    shared: float
    copies: Mapping[str, float]

    @property
    def mean(self) -> float:
        """What a copy loses on average; negative if it gains."""
        return float(np.mean([self.shared - each for each in self.copies.values()]))

    @property
    def worst(self) -> float:
        """What the worst copy loses."""
        return max(self.shared - each for each in self.copies.values())


def metric_cost(
    shared: Arrays,
    copies: Iterable[tuple[str, Arrays]],
    metric: Callable[[Any], float],
    *,
    network: Network | None = None,
) -> MetricCost:
    """The metric before and after marking: a function that is given the torch module, in evaluation mode."""

    def score(state: Arrays) -> float:
        found = theirs("the metric", metric, module_of(state, network))
        try:
            number = float(found)
        except (TypeError, ValueError) as error:
            raise InputError(f"the metric gave {type(found).__name__}, not a number") from error
        if not np.isfinite(number):
            raise InputError(f"the metric gave {number}, which no copy can be compared by")
        return number

    before = score(shared)
    after = {name: score(state) for name, state in copies}
    if not after:
        raise InputError("no copy to evaluate")
    return MetricCost(shared=before, copies=after)
