"""Attacks by training: the leaker goes on with data of its own, and knows of no mark."""

from collections.abc import Callable

import numpy as np

from zktrace.learning.arrays import Arrays, Images, Labels, State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.states import state_of
from zktrace.learning.training import EpisodeReport, train_episodes


def finetune(
    state: Arrays,
    images: Images,
    labels: Labels,
    config: EpisodicConfig,
    rng: np.random.Generator,
    *,
    progress: Callable[[EpisodeReport], None] | None = None,
) -> State:
    """Attack 7: prototypical episodes on the leaker's samples, without any term for marks."""
    model = backbone_of(state)
    train_episodes(model, images, labels, config, rng, progress=progress)
    return state_of(model)
