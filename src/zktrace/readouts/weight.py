"""The weight carrier as a tracer or a judge reads it: projections of BatchNorm scales on secret directions.

    paper      z_b = <gamma, E_b> of the suspect alone; a bit is the sign (`def:overlay`)
    informed   z_b = <gamma - gamma_shared, E_b> with each layer's mean taken out, real-valued

A reader is made from the seed of the directions, which tells nothing of any row.
"""

from functools import cached_property
from typing import Final

import numpy as np

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.readouts.alignment import align_scales
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.reader import Reader, Survey, finite
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays, centred, gather, layer_sizes, scale_names
from zktrace.readouts.suspects import check_layer_names, layer_names, plain
from zktrace.readouts.unfolding import unfolded

FOLDED: Final = "folded"  # BatchNorm layers that were written into convolutions


def weight_directions(seed: bytes, *, length: int, layers: tuple[int, ...]) -> Directions:
    """The family E_T of the weight carrier, one direction a position of the code."""
    return Directions(label="weight", seed=seed, dimension=sum(layers), count=length)


class WeightReader(Reader):
    """Reads values from a model with BatchNorm layers of the sizes that the terms have."""

    @classmethod
    def survey(cls, name: str, shared: Arrays, *, length: int, pool: Pool | None, draws: Stream) -> Survey:
        """The layers of the shared model, which must have room for the code."""
        layers = layer_sizes(shared)
        room = sum(layers) - len(layers)
        if length > room:
            raise InputError(
                f"the weight carrier's code has {length} bits, the model's scales have room for {room}"
            )
        return Survey(dimension=sum(layers), length=length, layers=layers)

    @cached_property
    def directions(self) -> Directions:
        """What the scales are projected on."""
        return weight_directions(self.terms.seed, length=self.terms.length, layers=self.terms.layers)

    def project(self, arrays: Arrays) -> Floats:
        """The projections of one model alone. Of the shared model, they are the reference."""
        given, layers = plain(arrays), self.terms.layers
        if self.terms.names is not None:
            check_layer_names(layer_names(given), self.terms.names)
        found = layer_sizes(given)
        if found != layers:
            raise InputError(
                f"the model has {sum(found)} BatchNorm scales in {len(found)} layers, "
                f"the release {sum(layers)} in {len(layers)}: {_first_difference(found, layers)}"
            )
        gamma = gather(given)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            gamma = centred(gamma, layers) if self.terms.profile == "informed" else gamma
            return finite(self.directions.project(gamma))

    def disguised(self, suspect: Arrays, how: str) -> bool:
        """Layers that are there were not folded into others."""
        return how != FOLDED or not scale_names(suspect)

    def aligned(self, suspect: Arrays, how: str, *, shared: Arrays, pool: Pool | None) -> Floats:
        """`channels`: permuted and rescaled, they are put back. `folded`: BatchNorm layers are made again."""
        if how == FOLDED:
            return self.project(unfolded(suspect, shared, list(shared)))
        return self.project(align_scales(suspect, shared))


def _first_difference(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    for at, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            return f"layer {at + 1} has {one} scales, not {other}"
    return f"{abs(len(found) - len(wanted))} layers {'more' if len(found) > len(wanted) else 'less'}"
