"""Public identity marks: every station's codeword in its own block of directions.

Station i (counted from 0 in the order of the roster) owns directions i n .. (i+1) n - 1 of one public family.
The family is fixed by a public seed and the roster's size; nothing here is secret.

Marks live in what differs between the scales of a layer: a direction is read less its mean in each layer. The
mean of a layer's scales holds nearly all of their norm and none of their information, and a random direction
would make half of a word's bits fight it (docs/adr/0004-centred-identity-marks.md). `raw` reads as the paper.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.scales import Arrays, centred, gather, layer_sizes
from zktrace.readouts.suspects import plain

Words = NDArray[np.uint8]  # (stations, bits), entries 0 and 1

DEFAULT_SEED = b"zktrace public identity codebook"
ROWS_LIMIT = 1 << 20


@dataclass(frozen=True, kw_only=True)
class IdentityCodebook:
    """E: `bits` directions for each of `stations` stations in the space of all scales."""

    stations: int
    bits: int
    layers: tuple[int, ...]  # the number of scales in each BatchNorm layer
    raw: bool = False  # as in the paper: the means of layers are part of a readout
    seed: bytes = DEFAULT_SEED
    rows: tuple[int, ...] = ()  # of the stations in a registry, whose blocks are theirs; none: 0, 1, 2 ...

    def __post_init__(self) -> None:
        if self.rows and (len(set(self.rows)) != self.stations or len(self.rows) != self.stations):
            raise InputError(f"{len(self.rows)} rows for {self.stations} stations: one for each")
        if self.rows and not 0 <= min(self.rows) <= max(self.rows) < ROWS_LIMIT:
            raise InputError(f"a row of the codebook lies in 0..{ROWS_LIMIT - 1}")

    @cached_property
    def directions(self) -> Directions:
        """The family that the columns of E are made from."""
        count = max(self.rows, default=self.stations - 1) + 1
        return Directions(
            label="identity", seed=self.seed, dimension=sum(self.layers), count=count * self.bits
        )

    def block(self, station: int) -> Floats:
        """E_i, one direction a row."""
        if not 0 <= station < self.stations:
            raise InputError(f"station {station} of {self.stations}")
        row = self.rows[station] if self.rows else station
        made = self.directions.block(row * self.bits, (row + 1) * self.bits)
        return made if self.raw else centred(made, self.layers)

    def read_block(self, station: int, arrays: Arrays) -> Floats:
        """E_i^T gamma, of one station alone."""
        component = self.component(arrays)
        blocks = self.directions.blocks_of(station * self.bits, (station + 1) * self.bits)
        return np.concatenate([block @ component for _, block in blocks])

    def component(self, arrays: Arrays) -> Floats:
        """The part of a model's scales that marks live in."""
        found = layer_sizes(arrays)
        if found != self.layers:
            raise InputError(
                f"the model has {sum(found)} BatchNorm scales in {len(found)} layers, "
                f"the codebook {sum(self.layers)} in {len(self.layers)}"
            )
        return gather(arrays) if self.raw else centred(gather(arrays), self.layers)

    def read(self, arrays: Arrays) -> Floats:
        """E^T gamma, real-valued, a row for each station; a bit is the sign of one."""
        found = self.directions.project(self.component(arrays)).reshape(-1, self.bits)
        return found[list(self.rows)] if self.rows else found

    def extract(self, arrays: Arrays) -> Words:
        """h: the bits read from a model, a row for each station."""
        return (self.read(arrays) > 0).astype(np.uint8)


def read_component(arrays: Arrays, *, row: int, bits: int, raw: bool = False) -> bytes:
    """One station's bits of a model under whatever names it came, packed. The roster's size plays no part."""
    state = plain(arrays)
    book = IdentityCodebook(stations=row + 1, bits=bits, layers=layer_sizes(state), raw=raw)
    return np.packbits(book.read_block(row, state) > 0).tobytes()
