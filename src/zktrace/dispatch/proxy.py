"""The server's own samples: what copies are trained on, and what they are tested with."""

from dataclasses import asdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec, load_data
from zktrace.readouts.samples import Pool

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


def leakers_samples(
    spec: RunSpec, *, samples: int, rng: np.random.Generator, inside: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Training samples that are not the server's, of whose probes are some; 0: all of them.

    With `inside` the leaker happens to hold the server's samples as well, in the place of as many others.
    """
    dataset, plan = load_data(spec)
    found = plan.split.train
    pool = proxy_pool(spec) if inside or not len(plan.split.validation) else None
    if pool is not None and not len(plan.split.validation):  # the server's are some of the training part
        servers = {image.tobytes() for image in np.asarray(pool.images)}
        kept = [image.tobytes() not in servers for image in dataset.take(found)[0]]
        found = found[np.array(kept)]
    held = len(pool.images) if pool is not None and inside else 0
    if samples and not held <= samples <= len(found) + held:
        raise InputError(f"{samples} samples for the leaker: there are {len(found) + held}")
    images, labels = dataset.take(np.sort(rng.permutation(found)[: samples - held if samples else None]))
    if pool is None or not inside:
        return images, labels
    return np.concatenate([images, pool.images]), np.concatenate([labels, pool.labels])
