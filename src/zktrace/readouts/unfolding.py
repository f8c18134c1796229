"""BatchNorm layers that were folded into the convolutions before them, taken out again.

An exporter drops a BatchNorm layer by writing it into filter and bias:

    W'_c = g_c W_c        b'_c = beta_c + g_c (b_c - mean_c)        g_c = gamma_c / sqrt(var_c + eps)

Against the shared model, g_c of a suspect is the least-squares ratio of its filter to the shared one. The
layer is the one whose own g in the shared model is nearest, so no name tells which belongs to which. With
the shared model's mean and var it gives back gamma_c and beta_c, and the filter less its factor.

The reference is the shared model. Rows, keys and directions play no part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded
from zktrace.primitives.text import shown
from zktrace.readouts.assignment import assign
from zktrace.readouts.channels import EPSILON, MAX_FILTERS, PARTS
from zktrace.readouts.directions import Floats
from zktrace.readouts.realigning import Tensors
from zktrace.readouts.scales import Arrays, natural, scale_names, shape_of

MOST_LAYERS: Final = 512  # of one size
_STATISTICS: Final = ("running_mean", "running_var")
_LIKE: Final = 0.5  # of a layer's own factors: at most so far from them are the suspect's
_ORDER: Final = 1e-6  # what places in the order of names count, where factors say nothing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Folded:
    """A convolution of the suspect, and how many times the shared model's filters its filters are."""

    name: str  # of the weight
    ratio: Floats  # NaN where the shared filter is zero


def unfolded(suspect: Arrays, shared: Arrays, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
    """The named tensors of a suspect without BatchNorm layers, these made again; one at a time.

    What a BatchNorm layer holds is given under the shared model's names, with the shared model's statistics.
    Other tensors are the suspect's own; names that it lacks or has in another shape are left out.
    """
    given = _under_names(suspect, shared)
    pairs = _pairs(given, shared)
    layers = {f"{norm}.{part}": (norm, part) for norm in pairs for part in PARTS}
    filters = {each.name: (norm, each) for norm, each in pairs.items()}

    def make(name: str) -> NDArray[Any]:
        if name in layers:
            norm, part = layers[name]
            return _layer(given, shared, norm, pairs[norm], part)
        array = given[name]
        if name in filters:
            norm, each = filters[name]
            gain = _usable(each.ratio, _gain(shared, norm))
            return array.astype(np.float64) / gain.reshape(-1, *[1] * (array.ndim - 1))
        return array

    def there(name: str) -> bool:
        own = name in given and name in shared and shape_of(given, name) == shape_of(shared, name)
        return own or name in layers

    return Tensors(filter(there, names), make, shared)


def _under_names(suspect: Arrays, shared: Arrays) -> Arrays:
    """The suspect under the shared model's names: what stands before all of them is dropped."""
    weights = [name for name in shared if len(shape_of(shared, name)) >= 2]
    if not weights:
        raise InputError("the shared model has no filters")
    last = weights[0]
    for prefix in dict.fromkeys(name.removesuffix(last) for name in suspect if name.endswith(last)):
        if all(f"{prefix}{name}" in suspect for name in weights):
            return {name.removeprefix(prefix): suspect[name] for name in suspect if name.startswith(prefix)}
    raise InputError(f"the suspect has no filters under the shared model's names, {shown(last)} and others")


def _pairs(given: Arrays, shared: Arrays) -> dict[str, _Folded]:
    """Of each BatchNorm layer of the shared model, the convolution it was folded into."""
    norms = [name.removesuffix(".weight") for name in scale_names(shared)]
    if not norms:
        raise InputError("the shared model has no BatchNorm layers")
    present = [norm for norm in norms if f"{norm}.weight" in given]
    if present:
        raise InputError(f"the suspect has the BatchNorm layer {shown(present[0])}: it is not folded")
    sizes = {norm: _size(shared, norm) for norm in norms}
    found: dict[str, _Folded] = {}
    for size in dict.fromkeys(sizes.values()):
        layers = [norm for norm in norms if sizes[norm] == size]
        filters = [each for each in _filters(given, shared) if shape_of(shared, each)[0] == size]
        found.update(_assigned(layers, [_ratio(given, shared, each) for each in filters], shared))
    return {norm: found[norm] for norm in norms}


def _filters(given: Arrays, shared: Arrays) -> Iterable[str]:
    """Names of weights in the order of their names, as far as both have them in one shape."""
    for name in sorted(shared, key=natural):
        shape = shape_of(shared, name)
        if len(shape) >= 2 and name in given and shape_of(given, name) == shape:
            yield name


def _size(shared: Arrays, norm: str) -> int:
    shapes = {shape_of(shared, f"{norm}.{part}") for part in PARTS if f"{norm}.{part}" in shared}
    if len(shapes) != 1 or any(f"{norm}.{part}" not in shared for part in PARTS):
        raise InputError(f"the shared model's {shown(norm)} is no BatchNorm layer with scale and shift")
    return next(iter(shapes))[0]


def _assigned(norms: list[str], folded: list[_Folded], shared: Arrays) -> Mapping[str, _Folded]:
    """Layers of one size with convolutions of as many filters, each with its nearest."""
    if len(folded) < len(norms):
        raise InputError(f"{len(norms)} BatchNorm layers for {len(folded)} convolutions of their size")
    if len(folded) > MOST_LAYERS:
        raise LimitExceeded(f"{len(folded)} convolutions of one size, at most {MOST_LAYERS} are unfolded")
    away = np.zeros((len(folded), len(folded)))
    for row, norm in enumerate(norms):
        own = _gain(shared, norm)
        for column, each in enumerate(folded):
            away[row, column] = _distance(each.ratio, own) + _ORDER * abs(row - column)
    chosen = assign(-away)[: len(norms)]
    for row, norm in enumerate(norms):
        if not away[row, chosen[row]] < _LIKE:
            raise InputError(f"no convolution of the suspect has {shown(norm)} folded into it")
    return {norm: folded[column] for norm, column in zip(norms, chosen, strict=True)}


def _distance(ratio: Floats, own: Floats) -> float:
    """How far the suspect's factors are from a layer's own, as a part of these; at most 2."""
    known = np.isfinite(ratio)
    size = float(np.linalg.norm(own[known]))
    return min(float(np.linalg.norm(ratio[known] - own[known])) / size, 2.0) if size > 0 else 2.0


def _ratio(given: Arrays, shared: Arrays, name: str) -> _Folded:
    wanted, found = (_rows(each[name], name) for each in (shared, given))
    with np.errstate(all="ignore"):  # what is no number is told apart by its being none
        ratio = np.einsum("ij,ij->i", found, wanted) / np.einsum("ij,ij->i", wanted, wanted)
    return _Folded(name=name, ratio=ratio)


def _rows(array: NDArray[Any], name: str) -> Floats:
    if array.dtype.kind != "f" or array.size > MAX_FILTERS:
        raise InputError(f"{shown(name)}: {array.size} numbers of type {array.dtype} are not unfolded")
    if not np.isfinite(array).all():
        raise InputError(f"{shown(name)}: has numbers that are not finite")
    return array.reshape(len(array), -1).astype(np.float64)


def _gain(shared: Arrays, norm: str) -> Floats:
    scale, variance = (shared[f"{norm}.{part}"].astype(np.float64) for part in ("weight", "running_var"))
    return np.asarray(scale / np.sqrt(variance + EPSILON))


def _usable(ratio: Floats, own: Floats) -> Floats:
    """The suspect's factors, or the layer's own where they are no number to divide by."""
    good = np.isfinite(ratio) & (ratio != 0)
    return np.where(good, ratio, np.where(own != 0, own, 1.0))


def _layer(given: Arrays, shared: Arrays, norm: str, folded: _Folded, part: str) -> NDArray[Any]:
    """Scale, shift or statistics of a layer."""
    if part in _STATISTICS:
        return np.array(shared[f"{norm}.{part}"])
    own = _gain(shared, norm)
    ratio = np.where(np.isfinite(folded.ratio), folded.ratio, own)
    mean, variance = (shared[f"{norm}.{each}"].astype(np.float64) for each in _STATISTICS)
    bias = f"{folded.name.removesuffix('.weight')}.bias"
    if part != "bias":
        return np.asarray(ratio * np.sqrt(variance + EPSILON))
    if bias not in given or shape_of(given, bias) != ratio.shape:
        return np.array(shared[f"{norm}.bias"])
    before = shared[bias].astype(np.float64) if bias in shared else 0.0
    return np.asarray(given[bias].astype(np.float64) - ratio * (before - mean))
