"""Public identity marks: every station's codeword in its own block of directions.

Station i (counted from 0 in the order of the roster) owns directions i n .. (i+1) n - 1 of one public family.
The family is fixed by a public seed and the roster's size; nothing here is secret.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers.bn_scale import Arrays, ScaleCarrier
from zktrace.carriers.directions import Directions, Floats
from zktrace.errors import InputError

Words = NDArray[np.uint8]  # (stations, bits), entries 0 and 1

DEFAULT_SEED = b"zktrace public identity codebook"


@dataclass(frozen=True, kw_only=True)
class IdentityCodebook:
    """E: `bits` directions for each of `stations` stations in a space of `omega` scales."""

    stations: int
    bits: int
    omega: int
    seed: bytes = DEFAULT_SEED

    @cached_property
    def directions(self) -> Directions:
        """All columns of E."""
        return Directions(
            label="identity", seed=self.seed, dimension=self.omega, count=self.stations * self.bits
        )

    def block(self, station: int) -> Floats:
        """E_i, one direction a row."""
        if not 0 <= station < self.stations:
            raise InputError(f"station {station} of {self.stations}")
        return self.directions.block(station * self.bits, (station + 1) * self.bits)

    def extract(self, arrays: Arrays) -> Words:
        """h: the bits read from a model, a row for each station."""
        values = ScaleCarrier(directions=self.directions).read(arrays)
        return (values > 0).astype(np.uint8).reshape(self.stations, self.bits)
