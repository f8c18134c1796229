"""What a leaker of a study holds: samples of the run's data."""

import numpy as np

from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.data.proxy import proxy_pool


def leakers_samples(
    spec: RunSpec, *, samples: int, rng: np.random.Generator, inside: bool = False
) -> tuple[Images, Labels]:
    """Training samples that are not the server's, of whose probes are some; 0: all of them.

    With `inside` the leaker happens to hold the server's samples as well, in the place of as many others.
    """
    dataset, plan = spec.source.load()
    found = plan.split.train
    apart = len(plan.split.validation) > 0  # else the server's are some of the training part
    pool = None if apart and not inside else proxy_pool(spec.source, spec.preset.episodes)
    if pool is not None and not apart:
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
