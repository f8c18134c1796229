"""Unit directions from a seed, block by block (docs/spec/directions.md).

Direction j of a family is a Gaussian vector, normalised. Its coordinates come from an AES-256-CTR stream at
an offset of its own, so any block is made alone and the whole family, maybe gigabytes, never exists.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.shake import Shake

Floats = NDArray[np.float64]

BLOCK: Final = 256  # directions made at a time,
BLOCK_BYTES: Final = 1 << 25  # but at most as many as take this many bytes, or one
_KEY_BYTES: Final = 32
_CIPHER_BLOCK: Final = 16
_WORD: Final = 2.0**-32


@dataclass(frozen=True, kw_only=True)
class Directions:
    """`count` unit vectors of `dimension` coordinates under a seed: public for marks, secret for tracing."""

    label: str
    seed: bytes
    dimension: int
    count: int

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.count < 0:
            raise InputError(f"{self.count} directions of {self.dimension} coordinates")

    def block(self, start: int, stop: int) -> Floats:
        """Directions start..stop-1, as rows."""
        if not 0 <= start <= stop <= self.count:
            raise InputError(f"directions {start} to {stop} of {self.count}")
        rows = stop - start
        if rows == 0:
            return np.empty((0, self.dimension))
        words = np.frombuffer(self._stream(start, rows), dtype="<u4").reshape(rows, 2, self._pairs)
        radius = np.sqrt(-2.0 * np.log((words[:, 0] + 0.5) * _WORD))
        angle = words[:, 1] * (2.0 * math.pi * _WORD)
        gauss = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)), axis=1)[:, : self.dimension]
        unit: Floats = gauss / np.linalg.norm(gauss, axis=1, keepdims=True)
        return unit

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """All directions: (index of the first, block) one block after the other."""
        return self.blocks_of(0, self.count)

    def blocks_of(self, start: int, stop: int) -> Iterator[tuple[int, Floats]]:
        """Directions start..stop-1: (index of the first, block), each of a bounded number of bytes."""
        step = max(1, min(BLOCK, BLOCK_BYTES // (8 * self.dimension)))
        for first in range(start, stop, step):
            yield first, self.block(first, min(first + step, stop))

    def project(self, vector: Floats) -> Floats:
        """<vector, direction j> for every j, with one block in memory at a time."""
        if vector.shape != (self.dimension,):
            raise InputError(f"a vector of {vector.size} coordinates for directions of {self.dimension}")
        parts = [block @ vector for _, block in self._kept or self.blocks()]
        return np.concatenate(parts) if parts else np.empty(0)

    @cached_property
    def _kept(self) -> list[tuple[int, Floats]]:
        """All blocks, if they are small: whoever reads a thousand copies makes them once."""
        return list(self.blocks()) if 8 * self.count * self.dimension <= BLOCK_BYTES else []

    @property
    def _pairs(self) -> int:
        """Box-Muller pairs of one direction, a multiple of two so that a direction is whole cipher blocks."""
        return -(-self.dimension // 4) * 2

    @cached_property
    def _key(self) -> bytes:
        parts = (self.label.encode(), self.dimension.to_bytes(8, "big"), self.seed)
        return Shake("zkt-directions-v1", *parts).digest(_KEY_BYTES)

    def _stream(self, start: int, rows: int) -> bytes:
        size = 8 * self._pairs  # bytes of one direction
        counter = start * (size // _CIPHER_BLOCK)
        cipher = Cipher(algorithms.AES(self._key), modes.CTR(counter.to_bytes(_CIPHER_BLOCK, "big")))
        return cipher.encryptor().update(bytes(size * rows))
