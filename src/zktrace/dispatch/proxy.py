"""The server's own samples: what copies are trained on, and what they are tested with."""

from dataclasses import asdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.dispatch.releases import Pool
from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec, load_data

LARGEST: Final = 4096  # samples that a release keeps
_FIFTH: Final = 5
_PROXY: Final = 8  # purpose of randomness


def proxy_pool(spec: RunSpec, *, largest: int = LARGEST) -> Pool:
    """The validation part of a run's data; a fixed fifth of the training part where there is none."""
    dataset, plan = load_data(spec)
    if len(plan.split.validation):
        part, found = "validation", plan.split.validation
    else:
        part, found = "training", plan.split.train
        largest = min(largest, len(found) // _FIFTH)
    if not len(found) or largest < 1:
        raise InputError("the data has no samples that a server could hold")
    chosen = spec.rng(_PROXY).permutation(found)[:largest]
    images, labels = dataset.take(np.sort(chosen))
    return Pool(
        images=images,
        labels=labels,
        episodes=asdict(spec.preset.episodes),
        note=f"{len(labels)} {part} samples of {dataset.note}",
    )


def evaluation_samples(spec: RunSpec) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The test part of a run's data."""
    dataset, plan = load_data(spec)
    return dataset.take(plan.split.test)
