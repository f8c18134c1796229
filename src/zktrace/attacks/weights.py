"""Attacks on the numbers of all matrices of a model, whatever its architecture: pruning and noise."""

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, State


def prune_matrices(state: Arrays, *, share: float) -> State:
    """The smallest numbers of every matrix, as large a part of each, become 0."""
    if not 0.0 <= share < 1.0:
        raise InputError(f"a share of {share}: must be at least 0 and below 1")
    found = {name: np.array(each) for name, each in state.items()}
    for name, each in found.items():
        if each.ndim > 1 and each.dtype.kind == "f":
            sizes = np.abs(each)
            found[name] = np.where(sizes < np.quantile(sizes, share), each.dtype.type(0), each)
    return found


def noise_matrices(state: Arrays, *, sigma: float, rng: np.random.Generator) -> State:
    """Gaussian noise on every matrix, of `sigma` times its own deviation."""
    if not 0.0 <= sigma < np.inf:
        raise InputError(f"noise of {sigma}: must be a number of at least 0")
    found = {name: np.array(each) for name, each in state.items()}
    for name, each in found.items():
        if each.ndim > 1 and each.dtype.kind == "f":
            drawn = rng.standard_normal(each.shape, dtype=np.float32)
            found[name] = (each + np.float32(sigma * float(each.std())) * drawn).astype(each.dtype)
    return found
