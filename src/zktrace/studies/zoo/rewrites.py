"""Disguises of the zoo's networks that keep what they compute: channels in another order and size."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.arrays import Arrays, State

Floats = NDArray[np.float64]
Rewrite = Callable[[Arrays, np.random.Generator], State]
SPREAD: Final = 0.5  # of the logarithms of factors


def plain_net(model: Arrays, rng: np.random.Generator) -> State:
    """Channels between ReLUs permuted and rescaled, from the first convolution to the hidden layer."""
    found = _copied(model)
    layers = ["convs.0", "convs.1", "convs.2", "convs.3", "hidden", "head"]
    for before, after in pairwise(layers):
        order, factors = _drawn(len(found[f"{before}.bias"]), rng)
        for part in ("weight", "bias"):
            found[f"{before}.{part}"] = _along(found[f"{before}.{part}"][order], factors, 0)
        weight = found[f"{after}.weight"]
        if before == "convs.3":  # four places of every channel, after pooling
            weight = weight.reshape(len(weight), len(order), -1)
        weight = _along(weight[:, order], 1 / factors, 1)
        found[f"{after}.weight"] = weight.reshape(len(weight), *model[f"{after}.weight"].shape[1:])
    return _single(found)


def perceptron(model: Arrays, rng: np.random.Generator) -> State:
    """Hidden units permuted and rescaled; scikit-learn's matrices map from rows to columns."""
    found = _copied(model)
    for layer in range(sum(name.startswith("coefs_.") for name in model) - 1):
        order, factors = _drawn(len(found[f"intercepts_.{layer}"]), rng)
        found[f"coefs_.{layer}"] = found[f"coefs_.{layer}"][:, order] * factors
        found[f"intercepts_.{layer}"] = found[f"intercepts_.{layer}"][order] * factors
        found[f"coefs_.{layer + 1}"] = _along(found[f"coefs_.{layer + 1}"][order], 1 / factors, 0)
    return _single(found)


def _drawn(size: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
    return rng.permutation(size), np.exp(SPREAD * rng.standard_normal(size))


def _copied(model: Arrays) -> dict[str, Floats]:
    return {name: np.asarray(each, np.float64) for name, each in model.items()}


def _single(found: dict[str, Floats]) -> State:
    return {name: np.ascontiguousarray(each, np.float32) for name, each in found.items()}


def _along(weights: Floats, factors: Floats, axis: int) -> Floats:
    return np.asarray(weights * factors.reshape([-1 if each == axis else 1 for each in range(weights.ndim)]))


_NAME: Final = "channels permuted and rescaled"
REWRITES: Final[Mapping[str, Mapping[str, Rewrite]]] = {  # by network
    "cnn": {_NAME: plain_net},
    "mlp": {_NAME: perceptron},
}
