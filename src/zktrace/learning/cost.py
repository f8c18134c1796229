"""What a mark costs: few-shot accuracy of the shared model and of copies, on the same episodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.evaluation import EpisodeScore, embed, episode_accuracy
from zktrace.learning.threads import single_threaded
from zktrace.readouts.scales import Arrays
from zktrace.readouts.suspects import plain

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
) -> EpisodeScore:
    """Of one model, on the episodes of a seed."""
    with single_threaded():
        features = embed(backbone_of(plain(state)), images)
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
) -> Cost:
    """Accuracy before and after marking; every model answers the same episodes."""

    def score(state: Arrays) -> EpisodeScore:
        return accuracy(state, images, labels, shape=shape, episodes=episodes, seed=seed)

    before = score(shared)
    after = {name: score(state) for name, state in copies}
    if not after:
        raise InputError("no copy to evaluate")
    return Cost(shared=before, copies=after)
