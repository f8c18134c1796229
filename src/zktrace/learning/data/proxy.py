"""The server's own samples: what copies are trained on."""

from dataclasses import asdict
from typing import Final

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.data.source import DataSource
from zktrace.readouts.samples import Pool

LARGEST: Final = 4096  # samples that a release keeps
_FIFTH: Final = 5
_PROXY: Final = 8  # purpose of randomness


def proxy_pool(source: DataSource, episodes: EpisodicConfig, *, largest: int = LARGEST) -> Pool:
    """The validation part of a source; a fixed fifth of the training part where there is none.

    `episodes`: how copies would be trained on them.
    """
    dataset, plan = source.load()
    if len(plan.split.validation):
        part, found = "validation", plan.split.validation
    else:
        part, found = "training", plan.split.train
        largest = min(largest, len(found) // _FIFTH)
    if not len(found) or largest < 1:
        raise InputError("the data has no samples that a server could hold")
    chosen = np.random.default_rng([source.seed, _PROXY]).permutation(found)[:largest]
    images, labels = dataset.take(np.sort(chosen))
    return Pool(
        images=images,
        labels=labels,
        episodes=asdict(episodes),
        note=f"{len(labels)} {part} samples of {dataset.note}",
    )
