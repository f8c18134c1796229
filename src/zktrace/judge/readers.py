"""How the judge reads a model itself. What the light core cannot read takes a factory that is handed in.

    weight             scales, by the light core
    output, of scores  nothing is read: the matrix is what the model said
    feature, output    what a network says of the probes: `zktrace.dispatch.judging`, which needs torch

A factory gives a function from a model to its *projections*: what the model says by itself, without a
reference. Of the shared model they are the reference. Everything after that is arithmetic of the light core.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from zktrace.carriers import CARRIERS, Profile
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import OutputReader
from zktrace.readouts.weight import WeightReader, less_reference
from zktrace.registry.records import Layout

SUM_TOLERANCE: Final = 1e-9  # of the scale: what the order of a float64 sum can move
ALIGNED_TOLERANCE: Final = 1e-6  # the same, through an alignment
NETWORK_TOLERANCE: Final = (
    1e-4  # a float32 network by other kernels: 4e-6 was measured between two of torch's
)
OUTPUT_TOLERANCE: Final = 1e-3  # a readout of such scores, which standardising and whitening move more: 3e-5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A carrier that is to be read: all of it is on record, or opened against what is."""

    carrier: str
    seed: bytes  # of the directions
    length: int
    layout: Layout
    probes: ModelState | None  # with the digest of the layout, if they were given

    @property
    def profile(self) -> Profile:
        return cast(Profile, self.layout.profile)

    @property
    def tolerance(self) -> float:
        """Of projections, as a part of the largest."""
        return NETWORK_TOLERANCE if CARRIERS[self.carrier].network else SUM_TOLERANCE

    @property
    def readout_tolerance(self) -> float:
        """Of a readout made of them, as a part of `scale`."""
        return OUTPUT_TOLERANCE if CARRIERS[self.carrier].answers else self.tolerance

    def readout(self, projected: Floats, reference: Floats | None) -> Floats:
        """What projections are beyond a reference, as they are scored."""
        if not CARRIERS[self.carrier].answers:
            return less_reference(projected, self.profile, reference)
        if reference is None:
            raise InputError(f"the {self.carrier} carrier has no reference")
        classes = self.layout.dimension
        reader = OutputReader(seed=self.seed, length=self.length, classes=classes, reference=reference)
        if projected.size != reference.size:
            raise InputError(f"{projected.size} scores, {self.length} probes x {classes} classes are read")
        return reader.read_scores(projected.reshape(self.length, classes))

    def scale(self, projected: Floats, readout: Floats, reference: Floats | None) -> float:
        """What an error of the readout is held against."""
        if CARRIERS[self.carrier].answers:
            return float(np.abs(readout).max())
        return max(float(np.abs(each).max()) for each in (projected, reference) if each is not None)


Project = Callable[[Arrays], Floats]
Readers = Callable[[Wanted], Project | None]


def light_readers(wanted: Wanted) -> Project | None:
    """What needs no network: scales."""
    if CARRIERS[wanted.carrier].network:
        return None
    return WeightReader(
        seed=wanted.seed, length=wanted.length, layers=wanted.layout.layers, profile=wanted.profile
    ).project
