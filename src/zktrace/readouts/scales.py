"""The BatchNorm scales of a model as one vector (`label_method_watermark_embedding`).

A BatchNorm layer is recognised by its buffers: `<layer>.weight` is a scale if `<layer>.running_var` stands
beside it. Layers are ordered by name with numbers compared as numbers, which for ResNets is the order of the
network: bn1, layer1.0.bn1, layer1.0.bn2, ..., layer2.0.downsample.1, ...

How many scales there are is found from shapes alone, and bounded, before any of them is read.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded
from zktrace.primitives.text import shown
from zktrace.readouts.directions import Floats

Arrays = Mapping[str, NDArray[Any]]

MAX_LAYERS: Final = 4096
MAX_SCALES: Final = 1 << 20  # a ResNet-152 has 75,712


def scale_names(names: Iterable[str]) -> list[str]:
    """The names of the BatchNorm scales among a state's names, in the carrier's order."""
    known = set(names)
    scales = [
        name
        for name in known
        if name.endswith(".weight") and f"{name.removesuffix('.weight')}.running_var" in known
    ]
    if len(scales) > MAX_LAYERS:
        raise LimitExceeded(f"{len(scales)} BatchNorm layers, at most {MAX_LAYERS} are read")
    return sorted(scales, key=lambda name: (natural(name), name))


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key: digits as numbers (of any length, so by length first), everything else as text."""
    parts = re.split(r"([0-9]+)", name)  # text and digits in turn
    parts[1::2] = (digits.lstrip("0") for digits in parts[1::2])
    return [(1, len(part), part) if at % 2 else (0, 0, part) for at, part in enumerate(parts)]


def gather(arrays: Arrays) -> Floats:
    """gamma: all scales of a state, one after the other, in float64."""
    return np.concatenate(_parts(arrays))


def layer_sizes(arrays: Arrays) -> tuple[int, ...]:
    """How many scales each BatchNorm layer of a state has, in the carrier's order. Reads none of them."""
    return tuple(_sizes(arrays).values())


def centred(vectors: Floats, layers: tuple[int, ...]) -> Floats:
    """Vectors over all scales (the last axis) less their mean in each layer."""
    if vectors.shape[-1] != sum(layers):
        raise InputError(f"a vector of {vectors.shape[-1]} scales for layers of {sum(layers)}")
    parts = np.split(vectors, np.cumsum(layers)[:-1], axis=-1)
    return np.concatenate([part - part.mean(axis=-1, keepdims=True) for part in parts], axis=-1)


def _parts(arrays: Arrays) -> list[Floats]:
    names = list(_sizes(arrays))
    parts = [np.asarray(arrays[name], dtype=np.float64) for name in names]
    for name, part in zip(names, parts, strict=True):
        if not np.isfinite(part).all():
            raise InputError(f"{name}: a scale that is not finite")
    return parts


def _sizes(arrays: Arrays) -> dict[str, int]:
    """The number of scales by the name of each layer's, in the carrier's order."""
    names = scale_names(arrays)
    if not names:
        raise InputError("the model has no BatchNorm scales to read")
    shapes = {name: shape_of(arrays, name) for name in names}
    for name, shape in shapes.items():
        if len(shape) != 1 or shape != shape_of(arrays, f"{name.removesuffix('.weight')}.running_var"):
            raise InputError(f"{shown(name)}: not the scale of a BatchNorm layer, its shape is {shape}")
    sizes = {name: shape[0] for name, shape in shapes.items()}
    if sum(sizes.values()) > MAX_SCALES:
        raise LimitExceeded(f"{sum(sizes.values())} BatchNorm scales, at most {MAX_SCALES} are read")
    return sizes


def shape_of(arrays: Arrays, name: str) -> tuple[int, ...]:
    """The shape of an array, which is not made for that where the arrays can tell."""
    told = getattr(arrays, "shape", None)
    found: tuple[int, ...] = told(name) if callable(told) else np.shape(arrays[name])
    return found
