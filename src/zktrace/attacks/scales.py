"""Attacks on numbers alone (`sub:attack-protocol`): quantising, pruning, noise, resetting.

The attacker sees a state dictionary as anybody does: a BatchNorm layer is what has a `running_var`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.arrays import Array, Arrays, State

STAGES: Final = ("stem", "layer1", "layer2", "layer3", "layer4")
_VARIANCE: Final = ".running_var"
_PART: Final = 1 << 20  # numbers that are in double precision at a time


def batch_norms(state: Arrays) -> list[str]:
    """The names of the BatchNorm layers that have scales."""
    layers = [name.removesuffix(_VARIANCE) for name in state if name.endswith(_VARIANCE)]
    found = sorted(name for name in layers if f"{name}.weight" in state)
    if not found:
        raise InputError("the model has no BatchNorm layers to attack")
    return found


def quantise_scales(state: Arrays, *, bits: int) -> State:
    """Attack 3: the scales of each layer rounded to 2^bits even steps between their least and greatest."""
    names = {f"{layer}.weight" for layer in batch_norms(state)}
    return _mapped(state, lambda name, array: _quantised(array, bits) if name in names else array)


def quantise_all(state: Arrays, *, bits: int) -> State:
    """Every trained array of more than one number, scales included, rounded to 2^bits even steps each.

    Running statistics stay: deployment tools fold them into the weights or keep them.
    """

    def each(name: str, array: Array) -> Array:
        trained = array.dtype.kind == "f" and array.size > 1 and ".running_" not in name
        return _quantised(array, bits) if trained else array

    return _mapped(state, each)


def _quantised(array: Array, bits: int) -> Array:
    if not 1 <= bits <= 32:
        raise InputError(f"{bits} bits: must be 1..32")
    low, high = float(array.min()), float(array.max())
    step = (high - low) / (2**bits - 1)
    if not np.isfinite(step):
        raise InputError("the model has numbers that are not finite")
    result = array.copy()
    flat = result.reshape(-1)
    for start in range(0, flat.size if step > 0 else 0, _PART):
        exact = flat[start : start + _PART].astype(np.float64)
        flat[start : start + _PART] = low + step * np.round((exact - low) / step)
    return result


def prune_scales(state: Arrays, *, share: float, structured: bool = False) -> State:
    """Attack 1: the smallest scales of the whole model become 0.

    Structured, a channel goes as a whole: its shift and running mean become 0 too, its running variance 1.
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"a share of {share}: must lie in 0..1")
    layers = batch_norms(state)
    sizes = np.concatenate([np.abs(state[f"{layer}.weight"].astype(np.float64)) for layer in layers])
    gone = np.zeros(len(sizes), bool)
    gone[np.argsort(sizes, kind="stable")[: round(share * len(sizes))]] = True
    parts = np.split(gone, np.cumsum([len(state[f"{layer}.weight"]) for layer in layers])[:-1])
    result = {name: array.copy() for name, array in state.items()}
    for layer, part in zip(layers, parts, strict=True):
        for kind, value in (("weight", 0), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            if (structured or kind == "weight") and f"{layer}.{kind}" in result:
                result[f"{layer}.{kind}"][part] = value
    return result


def noise_scales(state: Arrays, *, sigma: float, rng: np.random.Generator) -> State:
    """Attack 2: Gaussian noise of `sigma` times the standard deviation of all scales, on every scale."""
    if not 0.0 <= sigma < np.inf:
        raise InputError(f"noise of {sigma}: must be a number of at least 0")
    layers = batch_norms(state)
    spread = float(np.concatenate([state[f"{layer}.weight"].astype(np.float64) for layer in layers]).std())
    names = {f"{layer}.weight" for layer in layers}

    def each(name: str, array: Array) -> Array:
        if name not in names:
            return array
        return (array + sigma * spread * rng.standard_normal(array.shape)).astype(array.dtype)

    return _mapped(state, each)


def reset_scales(state: Arrays, *, stages: Sequence[str]) -> State:
    """Attack 6: the scales of chosen stages become 1, as before any training."""
    for stage in stages:
        if stage not in STAGES:
            raise InputError(f"stage {stage!r} is not known; it is one of {', '.join(STAGES)}")
    names = {f"{layer}.weight" for layer in batch_norms(state) if stage_of(layer) in stages}
    return _mapped(state, lambda name, array: np.ones_like(array) if name in names else array)


def stage_of(name: str) -> str:
    """Where in a ResNet a layer stands: before the first stage, or in which."""
    found = re.search(r"(?:^|\.)(layer[1-4])\.", name)
    return found.group(1) if found else "stem"


def _mapped(state: Arrays, each: Callable[[str, Array], Array]) -> State:
    """A new state, array by array in the state's order; nothing of the old one is shared."""
    return {name: np.array(each(name, array)) for name, array in state.items()}
