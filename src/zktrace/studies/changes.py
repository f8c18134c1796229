"""What a leaker may do to a copy of any model: other types, fewer bits, fewer weights, noise.

Nothing here knows an architecture, a row or the shared model.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from zktrace.attacks.bfloat16 import rounded
from zktrace.attacks.scales import quantise_all
from zktrace.attacks.weights import noise_matrices, prune_matrices
from zktrace.learning.arrays import Array, Arrays
from zktrace.models import ModelState, Tensor

PRUNED: Final = 0.5  # of the weights of each matrix
NOISE: Final = 0.05  # of the deviation of each matrix


def as_state(arrays: Arrays) -> ModelState:
    """Named arrays as a model."""
    return ModelState(Tensor.from_array(name, np.asarray(each)) for name, each in arrays.items())


def single(arrays: Arrays) -> dict[str, Array]:
    """Every real number as float32, as a network computes with it."""
    return {
        name: np.asarray(each, np.float32) if each.dtype.kind == "f" else each
        for name, each in arrays.items()
    }


def half(model: Arrays) -> ModelState:
    """float16."""
    return as_state({name: each.astype(np.float16) for name, each in single(model).items()})


def brain(model: Arrays) -> ModelState:
    """bfloat16, which numpy does not have."""
    return ModelState(
        Tensor(name=name, dtype="bfloat16", shape=each.shape, data=rounded(each.astype(np.float64)).data)
        for name, each in single(model).items()
    )


def bits(count: int) -> Callable[[Arrays], ModelState]:
    """Every array rounded to even steps, as wide for all of its numbers."""
    return lambda model: as_state(quantise_all(single(model), bits=count))


def prune(model: Arrays) -> ModelState:
    """The smaller half of every matrix becomes 0."""
    return as_state(prune_matrices(single(model), share=PRUNED))


def noise(model: Arrays, rng: np.random.Generator) -> ModelState:
    """Gaussian, on every matrix, as large as a part of its deviation."""
    return as_state(noise_matrices(single(model), sigma=NOISE, rng=rng))


FORMATS: Final[Mapping[str, Callable[[Arrays], ModelState]]] = {
    "float16": half,
    "bfloat16": brain,
    "8 bits": bits(8),
    "4 bits": bits(4),
    "half of the weights pruned": prune,
}
