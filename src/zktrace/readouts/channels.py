"""The sets of channels of a ResNet: which convolution writes and reads which, and whether two models fit."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays

EPSILON: Final = 1e-5  # of BatchNorm layers
MAX_CHANNELS: Final = 4096  # of a layer,
MAX_FILTERS: Final = 1 << 24  # and numbers in its filters
PARTS: Final = ("weight", "bias", "running_mean", "running_var")
_BLOCK: Final = re.compile(r"layer([1-4])\.([0-9]{1,3})\.conv1\.weight")
HEAD: Final = "fc.weight"


Streams: TypeAlias = list[list[tuple[str, str]]]  # of each set: convolutions that write it, with their norms


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution, the BatchNorm layer behind it, and the sets of channels on both sides."""

    name: str
    norm: str
    reads: int | None  # None: the image
    writes: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"


def streams_of(state: Arrays) -> Streams:
    """Sets of channels from the image on: the convolutions and BatchNorm layers that write each."""
    found = [match.groups() for match in map(_BLOCK.fullmatch, state) if match]
    counts = [sum(stage == number for stage, _ in found) for number in "1234"]
    if min(counts) < 2:
        raise InputError("channels are aligned for ResNets of basic blocks only")
    sets = []
    for stage, count in enumerate(counts, start=1):
        blocks = [f"layer{stage}.{number}" for number in range(count)]
        short = f"layer{stage}.0.downsample"
        first = ("conv1", "bn1") if stage == 1 else (f"{short}.0", f"{short}.1")
        sets.append([first, *((f"{block}.conv2", f"{block}.bn2") for block in blocks)])
        sets.extend([(f"{block}.conv1", f"{block}.bn1")] for block in blocks)
    return sets


def convolutions_of(streams: Streams) -> list[Convolution]:
    """Every convolution, with the sets of channels that it reads and writes."""
    inner = {writers[0][0]: number for number, writers in enumerate(streams) if len(writers) == 1}
    outer = [number for number, writers in enumerate(streams) if len(writers) > 1]

    def read_by(name: str) -> int | None:
        if name == "conv1":
            return None
        stage, block, kind = name.removeprefix("layer").split(".")[:3]
        if kind == "conv2":
            return inner[f"layer{stage}.{block}.conv1"]
        before = int(stage) > 1 and int(block) == 0
        return outer[int(stage) - 1 - before]

    return [
        Convolution(name=name, norm=norm, reads=read_by(name), writes=number)
        for number, writers in enumerate(streams)
        for name, norm in writers
    ]


def check_fit(given: Arrays, wanted: Arrays, convolutions: list[Convolution]) -> None:
    """InputError unless both models have these layers, of one shape and of finite numbers."""
    for name in _names(convolutions):
        for whose, state in (("reference", wanted), ("suspect", given)):
            if name not in state:
                raise InputError(f"the {whose} lacks {name!r}: it cannot be aligned")
            if state[name].dtype.kind != "f" or not np.isfinite(state[name]).all():
                raise InputError(f"the {whose}'s {name!r} is not of finite real numbers")
            if name.endswith(".running_var") and state[name].min(initial=0.0) < 0:
                raise InputError(f"the {whose}'s {name!r} has negative variances")
        if given[name].shape != wanted[name].shape:
            raise InputError(
                f"{name!r} has shape {given[name].shape} in the suspect and {wanted[name].shape} in the "
                "reference: only the same architecture can be aligned"
            )
    if set(filter(_BLOCK.fullmatch, given)) != set(filter(_BLOCK.fullmatch, wanted)):
        raise InputError(
            "the suspect is deeper than the reference: only the same architecture can be aligned"
        )
    for each in convolutions:
        shape = wanted[each.weight].shape
        inputs = next(
            (wanted[f"{other.norm}.weight"] for other in convolutions if other.writes == each.reads), None
        )
        sizes = {wanted[f"{each.norm}.{part}"].shape for part in PARTS} | {shape[:1]}
        if math.prod(shape) > MAX_FILTERS or max(shape, default=0) > MAX_CHANNELS:
            raise LimitExceeded(
                f"{each.weight!r} has shape {shape}: at most {MAX_CHANNELS} channels and {MAX_FILTERS} "
                "numbers a layer are aligned"
            )
        if len(shape) != 4 or len(sizes) != 1 or (inputs is not None and len(inputs) != shape[1]):
            raise InputError(f"{each.weight!r} of shape {shape} does not fit the layers around it")
    last = wanted[f"{convolutions[-1].norm}.weight"]
    if HEAD in given and (given[HEAD].ndim != 2 or given[HEAD].shape[1] != len(last)):
        raise InputError(f"{HEAD!r} has shape {given[HEAD].shape}, the model needs (outputs, {len(last)})")


def _names(convolutions: list[Convolution]) -> Iterator[str]:
    for each in convolutions:
        yield each.weight
        yield from (f"{each.norm}.{part}" for part in PARTS)


def flat(weight: NDArray[Any]) -> Floats:
    """Filters as (out, in, area)."""
    return weight.reshape(*weight.shape[:2], -1).astype(np.float64)
