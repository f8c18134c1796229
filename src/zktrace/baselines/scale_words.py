"""Words in BatchNorm scales, as FedIPR and its followers write them: signs of <gamma, M_j>."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.certificates.presence import largest_radius
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays
from zktrace.learning.training import Penalty
from zktrace.marking.hinge import HingePenalty
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import centred, gather

Bits = NDArray[np.uint8]
_SCALES: Final = 4800  # of the network that systems were published with here: ResNet-18
_FEWEST: Final = 8


def bits_for(bits: int, scales: int) -> int:
    """As many bits for so many scales as these are for a whole ResNet-18: whole bytes, one at least."""
    if bits < _FEWEST:
        raise InputError(f"a word of {bits} bits: at least {_FEWEST}")
    return max(_FEWEST, round(bits * min(scales, _SCALES) / _SCALES / _FEWEST) * _FEWEST)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleWord:
    """A word and the directions it is read along, one a row."""

    directions: Floats  # (bits, scales)
    bits: Bits  # of 0 and 1

    def __post_init__(self) -> None:
        if self.directions.ndim != 2 or self.bits.shape != self.directions.shape[:1]:
            raise InputError(f"{self.bits.size} bits for directions of shape {self.directions.shape}")

    @property
    def signs(self) -> Floats:
        """Of 1 and -1."""
        found: Floats = 2.0 * self.bits.astype(np.float64) - 1.0
        return found

    def signed(self, suspect: Arrays) -> Floats:
        """t_j <gamma, M_j>: above 0 where a bit is right."""
        gamma = gather(suspect)
        if len(gamma) != self.directions.shape[1]:
            raise InputError(f"a suspect of {len(gamma)} scales, directions of {self.directions.shape[1]}")
        found: Floats = self.signs * (self.directions @ gamma)
        return found

    def right(self, suspect: Arrays) -> int:
        """Bits that are read rightly."""
        return int((self.signed(suspect) > 0).sum())

    def penalty(self, *, weight: float, margin: float) -> Penalty:
        """weight * sum_j max(0, margin - t_j <gamma, M_j>)."""
        hinge = HingePenalty(self.directions, self.bits, margin=margin, drop=0.0, seed=0)
        return lambda model: weight * len(self.bits) * hinge(model)

    def payload(self) -> dict[str, int]:
        """Directions as 32-bit numbers, and the word."""
        return {"projection": 4 * self.directions.size, "word": -(-self.bits.size // 8)}


def gaussian(rng: np.random.Generator, bits: int, layers: tuple[int, ...], *, apart: bool = False) -> Floats:
    """Directions of independent numbers, not normalised; `apart` from the mean of each layer's scales."""
    drawn: Floats = rng.standard_normal((bits, sum(layers)))
    return centred(drawn, layers) if apart else drawn


def allowed_errors(bits: int, chance: Fraction) -> int:
    """Wrong bits that a test may forgive which accepts random words no more often than this; -1: not any."""
    radius = largest_radius(bits, chance)
    return -1 if radius is None else radius
