"""The weight carrier as a tracer or a judge reads it: projections of BatchNorm scales on secret directions.

    paper      z_b = <gamma, E_b> of the suspect alone; a bit is the sign (`def:overlay`)
    informed   z_b = <gamma - gamma_shared, E_b> with each layer's mean taken out, real-valued

A reader is made from the seed of the directions, which tells nothing of any row.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from zktrace.carriers import PROFILES, Profile
from zktrace.errors import InputError
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.scales import Arrays, centred, gather, layer_sizes
from zktrace.readouts.suspects import check_layer_names, layer_names, plain

LABEL: Final = "weight"


def weight_directions(seed: bytes, *, length: int, layers: tuple[int, ...]) -> Directions:
    """The family E_T of the weight carrier, one direction a position of the code."""
    return Directions(label=LABEL, seed=seed, dimension=sum(layers), count=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightReader:
    """Reads `length` values from a model with BatchNorm layers of the sizes `layers`."""

    seed: bytes
    length: int
    layers: tuple[int, ...]
    profile: Profile
    reference: Floats | None = None  # the shared model's own projections; informed reading is less these
    names: tuple[str, ...] | None = None  # of the shared model's layers; None: any are taken in their order

    def __post_init__(self) -> None:
        check_reference(self.profile, self.reference, self.length)

    @cached_property
    def directions(self) -> Directions:
        """What the scales are projected on."""
        return weight_directions(self.seed, length=self.length, layers=self.layers)

    def project(self, arrays: Arrays) -> Floats:
        """The projections of one model alone. Of the shared model, they are the reference."""
        given = plain(arrays)
        if self.names is not None:
            check_layer_names(layer_names(given), self.names)
        found = layer_sizes(given)
        if found != self.layers:
            raise InputError(
                f"the model has {sum(found)} BatchNorm scales in {len(found)} layers, "
                f"the release {sum(self.layers)} in {len(self.layers)}: "
                f"{_first_difference(found, self.layers)}"
            )
        gamma = gather(given)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            gamma = centred(gamma, self.layers) if self.profile == "informed" else gamma
            return finite(self.directions.project(gamma))

    def read(self, arrays: Arrays) -> Floats:
        """The readout of a suspect."""
        return less_reference(self.project(arrays), self.profile, self.reference)


def check_reference(profile: str, reference: Floats | None, length: int) -> None:
    """Refuse a profile that is not known, and a reference that does not go with it."""
    if profile not in PROFILES:
        raise InputError(f"profile {profile!r} is not known; it is one of {', '.join(PROFILES)}")
    if reference is None:
        return
    if profile == "paper":
        raise InputError("the paper's profile reads a suspect without a reference")
    if reference.shape != (length,) or not np.isfinite(reference).all():
        raise InputError(f"a reference must be {length} finite numbers, not of shape {reference.shape}")


def less_reference(values: Floats, profile: Profile, reference: Floats | None) -> Floats:
    """A suspect's projections as its readout."""
    if profile == "paper":
        return values
    if reference is None:
        raise InputError("an informed reader needs the shared model's own readout")
    with np.errstate(over="ignore"):
        return finite(values - reference)


def finite(values: Floats) -> Floats:
    """The same values, none of them beyond what a float holds."""
    if not np.isfinite(values).all():
        raise InputError("the model's numbers are too large to be read")
    return values


def _first_difference(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    for at, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if one != other:
            return f"layer {at + 1} has {one} scales, not {other}"
    return f"{abs(len(found) - len(wanted))} layers {'more' if len(found) > len(wanted) else 'less'}"
