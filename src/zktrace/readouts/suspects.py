"""Suspects come back under other names and element types: one form in which readers take them.

    module.layer1.0.bn1.weight    whatever stands before the names of all BatchNorm layers is dropped
    head.weight                   what does not stand under that prefix is left out
    float16, bfloat16, float64    are read as what they are; integers, NaN and infinity in a scale are refused

A suspect whose layers are others than the reader's, or called otherwise, is refused by the reader, which
knows them: layers are read in the order of their names.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.text import shown
from zktrace.readouts.scales import Arrays, layer_sizes, scale_names

_SHOWN: Final = 3  # names in a message


def plain(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """A suspect's arrays under plain names, its BatchNorm scales found to be finite real numbers."""
    if scale_names(arrays):
        layer_sizes(arrays)  # from shapes, before anything is read
    for name in scale_names(arrays):
        _check_scale(name, arrays[name])
    return {plain_name: arrays[name] for plain_name, name in plain_names(arrays).items()}


def plain_names(names: Iterable[str]) -> dict[str, str]:
    """What the arrays under the prefix are called without it, and with it."""
    given = list(names)
    scales = scale_names(given)
    if not scales:
        raise InputError("the model has no BatchNorm scales to read")
    prefix = common_prefix(name.removesuffix(".weight") for name in scales)
    return {name.removeprefix(prefix): name for name in given if name.startswith(prefix)}


def common_prefix(layers: Iterable[str]) -> str:
    """What stands before the names of all layers, up to a dot: `net.` of `net.bn1` and `net.layer1.0.bn1`.

    A layer keeps at least the last part of its name.
    """
    paths = [name.split(".")[:-1] for name in layers]
    first = min(paths, key=len, default=[])
    size = 0
    while size < len(first) and all(path[size] == first[size] for path in paths):
        size += 1
    return "".join(f"{part}." for part in first[:size])


def layer_names(names: Iterable[str]) -> tuple[str, ...]:
    """The BatchNorm layers of a state under plain names, in the carrier's order."""
    return tuple(name.removesuffix(".weight") for name in scale_names(plain_names(names)))


def check_layer_names(found: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    """Refuse a suspect whose layers are not called as the shared model's are."""
    if found == wanted:
        return
    unknown, missing = sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))
    raise InputError(
        f"the suspect's BatchNorm layers are not called as the shared model's: {_some(unknown)} instead of "
        f"{_some(missing)}; layers are read in the order of their names, so rename the suspect's to fit"
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(shown(name) for name in names[:_SHOWN]) or "none") + more


def _check_scale(name: str, scale: NDArray[Any]) -> None:
    if scale.dtype.kind != "f":
        raise InputError(
            f"{shown(name)}: scales of type {scale.dtype}; turn them back into real numbers first"
        )
    if not np.isfinite(scale).all():
        raise InputError(f"{shown(name)}: a scale that is not finite")
