"""Linear algebra over GF(2) on packed bits.

A vector of 8k bits is k bytes, most significant bit first; a batch of vectors is a uint8 array of shape
(batch, k). Everything works on the whole batch at once.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]  # packed: eight bits a byte, first bit in the most significant place

_BYTE_VALUES: Final = 256
_SWAPS: Final = tuple(  # of a word of eight rows of eight bits: how far, and which bits
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))
)


def unpack(packed: Bits) -> Bits:
    """One byte a bit, along the last axis."""
    return np.unpackbits(packed, axis=-1)


def pack(bits: Bits) -> Bits:
    """The inverse of `unpack`."""
    return np.packbits(bits, axis=-1)


def weight(packed: Bits) -> NDArray[np.int64]:
    """Hamming weight of each vector of a batch."""
    counts: NDArray[np.int64] = np.bitwise_count(packed).sum(axis=-1, dtype=np.int64)
    return counts


def transpose(rows: Bits) -> Bits:
    """The bits of a packed matrix mirrored: shape (m, l/8) -> (l, m/8), with m and l multiples of 8.

    Tiles of eight by eight bits are words, in which pairs, quads and halves change places, all at once.
    """
    tall, wide = len(rows) // 8, rows.shape[1]
    tiles = np.ascontiguousarray(rows.reshape(tall, 8, wide).transpose(2, 0, 1)).view(">u8")
    words = tiles.astype(np.uint64).reshape(wide, tall)
    for shift, mask in _SWAPS:
        moved = (words ^ (words >> shift)) & mask
        words ^= moved ^ (moved << shift)
    columns = words.astype(">u8").view(np.uint8).reshape(wide, tall, 8)
    return np.ascontiguousarray(columns.transpose(0, 2, 1)).reshape(8 * wide, tall)


class LinearMap:
    """x -> A x for one matrix A and many vectors, by tables of eight columns each.

    For every group of eight columns of A the 256 possible sums are tabulated once; a product is then one
    look-up and one XOR a group ("four Russians"), for all vectors of a batch together.
    """

    def __init__(self, rows: Bits) -> None:
        """`rows` is A packed by rows: shape (m, l/8), with m and l multiples of 64 and 8."""
        columns = transpose(rows).view(np.uint64)  # (l, m/64)
        tables = np.zeros((len(columns) // 8, _BYTE_VALUES, columns.shape[1]), dtype=np.uint64)
        for bit in range(8):
            step = 1 << bit  # the column of bit `bit` counted from the least significant
            column = columns[7 - bit :: 8, None, :]
            tables[:, step : 2 * step] = tables[:, :step] ^ column
        self._tables = tables

    def __call__(self, vectors: Bits) -> Bits:
        """A x for each packed row x of `vectors`, shape (batch, l/8) -> (batch, m/8)."""
        total = np.zeros((len(vectors), self._tables.shape[2]), dtype=np.uint64)
        for table, index in zip(self._tables, vectors.T, strict=True):
            total ^= table[index]
        return total.view(np.uint8)
