"""Rewrites that keep what a model computes: positive rescaling and permutation of channels.

Between a BatchNorm layer and the convolution that reads it stands a ReLU, so a channel may leave the first
times f > 0 and enter the second divided by f; channels may change places likewise. A residual stream is one
set of channels for all layers that write to it:

    stage 1        written by bn1 and every layer1.*.bn2
    stage s > 1    written by layer<s>.0.downsample.1 and every layer<s>.*.bn2
    in a block     written by its bn1 alone, read by its conv2

The stream of the last stage is read by `fc`, or, where a model has none, becomes its features.
A BatchNorm layer has freedoms of its own as well, which need no other layer: its filter may be scaled and
turned in sign with its running mean, and its scale grow with the running deviation.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded
from zktrace.learning.arrays import Arrays, State

Floats = NDArray[np.float64]

EPSILON: Final = 1e-5  # of this package's BatchNorm layers
LARGEST_SPREAD: Final = 4.0
LARGEST_STATE: Final = 1 << 26  # numbers; they are held in double precision
PARTS: Final = ("weight", "bias", "running_mean", "running_var")
_BLOCK: Final = re.compile(r"layer([1-4])\.([0-9]{1,3})\.conv1\.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """One set of channels: which convolutions and BatchNorm layers write it, which weights read it."""

    writers: tuple[tuple[str, str], ...]  # (convolution, BatchNorm layer)
    readers: tuple[str, ...]  # weights whose second axis these channels are
    features: bool  # whether nothing reads them but the user of the model


def channel_sets(state: Arrays) -> tuple[Channels, ...]:
    """Every set of channels of a ResNet of basic blocks, from the image on."""
    counts = [0, 0, 0, 0]
    for found in filter(None, map(_BLOCK.fullmatch, state)):
        counts[int(found.group(1)) - 1] += 1
    sets = tuple(_sets(counts, head="fc.weight" in state))
    for each in sets:
        needed = [f"{bn}.{part}" for _, bn in each.writers for part in PARTS]
        needed += [f"{conv}.weight" for conv, _ in each.writers] + list(each.readers)
        for name in needed:
            if name not in state:
                raise InputError(f"the state lacks {name!r}: not a ResNet of basic blocks")
        sizes = {len(state[f"{bn}.{part}"]) for _, bn in each.writers for part in PARTS}
        sizes |= {state[name].shape[1] for name in each.readers}
        if len(sizes) != 1:
            raise InputError(f"the channels of {each.writers[0][1]} have several sizes: {sorted(sizes)}")
    return sets


def _sets(counts: list[int], *, head: bool) -> Iterator[Channels]:
    for stage, count in enumerate(counts, start=1):
        blocks = [f"layer{stage}.{block}" for block in range(count)]
        first = (
            ("conv1", "bn1")
            if stage == 1
            else (f"layer{stage}.0.downsample.0", f"layer{stage}.0.downsample.1")
        )
        readers = [f"{block}.conv1.weight" for block in (blocks if stage == 1 else blocks[1:])]
        if stage < len(counts):
            readers += [f"layer{stage + 1}.0.conv1.weight", f"layer{stage + 1}.0.downsample.0.weight"]
        elif head:
            readers.append("fc.weight")
        yield Channels(
            writers=(first, *((f"{block}.conv2", f"{block}.bn2") for block in blocks)),
            readers=tuple(readers),
            features=stage == len(counts) and not head,
        )
        for block in blocks:
            yield Channels(
                writers=((f"{block}.conv1", f"{block}.bn1"),),
                readers=(f"{block}.conv2.weight",),
                features=False,
            )


def rescale(
    state: Arrays,
    rng: np.random.Generator,
    *,
    spread: float = 1.0,
    features: bool = False,
    norms: bool = False,
) -> State:
    """Every channel times exp(spread * N(0, 1)) where it is written, divided by it where it is read.

    `features`: the features of a model without `fc` as well, which changes them. `norms`: also the freedoms
    inside a BatchNorm layer: filter and running mean by one such factor and a random sign, scale and running
    deviation by another. Outputs stay, up to rounding.
    """
    if not 0.0 < spread <= LARGEST_SPREAD:
        raise InputError(f"a spread of {spread}: must lie above 0 and at most at {LARGEST_SPREAD:g}")
    done = _Rewriting(state)
    for each in done.sets:
        size = done.size(each)
        if features or not each.features:
            done.scale(each, np.exp(spread * rng.standard_normal(size)))
        for conv, bn in each.writers if norms else ():
            signs = rng.choice([-1.0, 1.0], size)
            filters, deviations = np.exp(spread * rng.standard_normal((2, size)))
            done.scale_inside(conv, bn, signs * filters, deviations)
    return done.state()


def permute(state: Arrays, rng: np.random.Generator, *, features: bool = False) -> State:
    """The channels of every set in another order. `features`: those of a model without `fc` as well."""
    done = _Rewriting(state)
    for each in done.sets:
        if features or not each.features:
            done.reorder(each, rng.permutation(done.size(each)))
    return done.state()


class _Rewriting:
    """A state in double precision while it is rewritten."""

    def __init__(self, state: Arrays) -> None:
        self.sets = channel_sets(state)
        self._types = {name: array.dtype for name, array in state.items()}
        self._order = list(state)
        touched = {name for each in self.sets for name in self._names(each)}
        count = sum(state[name].size for name in touched)
        if count > LARGEST_STATE:
            raise LimitExceeded(f"a model of {count} numbers: at most {LARGEST_STATE} are rewritten")
        self._arrays = {
            name: array.astype(np.float64) if name in touched else np.array(array)
            for name, array in state.items()
        }

    @staticmethod
    def _names(each: Channels) -> Iterator[str]:
        yield from each.readers
        for conv, bn in each.writers:
            yield f"{conv}.weight"
            yield from (f"{bn}.{part}" for part in PARTS)

    def size(self, each: Channels) -> int:
        """How many channels there are."""
        return len(self._arrays[f"{each.writers[0][1]}.weight"])

    def scale(self, each: Channels, factors: Floats) -> None:
        """Times the factors where written, divided by them where read."""
        for _, bn in each.writers:
            self._arrays[f"{bn}.weight"] *= factors
            self._arrays[f"{bn}.bias"] *= factors
        for name in each.readers:
            self._arrays[name] /= _along(factors, self._arrays[name].ndim, axis=1)

    def scale_inside(self, conv: str, bn: str, filters: Floats, deviations: Floats) -> None:
        """Filters and running means by one factor; scales and running deviations by the other."""
        variance = self._arrays[f"{bn}.running_var"] + EPSILON
        # a variance below zero cannot be stored: such a channel is scaled less
        wanted = np.maximum(np.abs(filters) * deviations, np.sqrt(EPSILON / variance))
        weight = self._arrays[f"{conv}.weight"]
        weight *= _along(filters, weight.ndim, axis=0)
        self._arrays[f"{bn}.running_mean"] *= filters
        self._arrays[f"{bn}.running_var"] = np.maximum(variance * wanted**2 - EPSILON, 0.0)
        self._arrays[f"{bn}.weight"] *= wanted / filters

    def reorder(self, each: Channels, order: NDArray[np.int64]) -> None:
        """Channel i becomes what channel order[i] was."""
        for conv, bn in each.writers:
            for name in (f"{conv}.weight", *(f"{bn}.{part}" for part in PARTS)):
                self._arrays[name] = self._arrays[name][order]
        for name in each.readers:
            self._arrays[name] = self._arrays[name][:, order]

    def state(self) -> State:
        """In the types and the order of the state that was given."""
        made = {
            name: np.ascontiguousarray(self._arrays[name].astype(self._types[name])) for name in self._order
        }
        for name, array in made.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(f"{name!r} would have numbers that are not finite: a smaller spread")
        return {name: array.reshape(self._arrays[name].shape) for name, array in made.items()}


def _along(factors: Floats, dimensions: int, *, axis: int) -> Floats:
    return factors.reshape([-1 if each == axis else 1 for each in range(dimensions)])
