"""Weight-w vectors in few bytes, one encoding each (Elias-Fano).

The positions p_0 < ... < p_{w-1} of the ones are split into a low part of k = floor(log2(m/w)) bits and a
high part h_i. The code is a bit string of w + ceil(m/2^k) bits with bit h_i + i set for every i, followed by
the low parts, k bits each, and zero bits up to a whole byte. A string of w ones determines the high parts, so
every code word has one decoding and every vector one code word.

For m = 1280, w = 132 that is 86 bytes (the entropy is 77) and both ways are a handful of array operations
for a whole batch.
"""

import numpy as np
from numpy.typing import NDArray

from zktrace.primitives.gf2 import Bits, pack, unpack


def _low_bits(length: int, weight: int) -> int:
    return (length // weight).bit_length() - 1


def _high_length(length: int, weight: int) -> int:
    return weight - (-length >> _low_bits(length, weight))


def coded_bytes(length: int, weight: int) -> int:
    """Size of the code of one vector."""
    return -(-(_high_length(length, weight) + weight * _low_bits(length, weight)) // 8)


def encode(vectors: Bits, *, length: int, weight: int) -> Bits:
    """The codes of a batch of packed vectors of exact weight, shape (batch, coded_bytes)."""
    low = _low_bits(length, weight)
    positions = np.nonzero(unpack(vectors))[1].reshape(-1, weight)
    bits = np.zeros((len(vectors), 8 * coded_bytes(length, weight)), dtype=np.uint8)
    np.put_along_axis(bits, (positions >> low) + np.arange(weight), 1, axis=1)
    start = _high_length(length, weight)
    shifts = np.arange(low - 1, -1, -1)
    lows = (positions[:, :, None] >> shifts) & 1
    bits[:, start : start + weight * low] = lows.reshape(len(vectors), weight * low)
    return pack(bits)


def decode(codes: Bits, *, length: int, weight: int) -> tuple[Bits, NDArray[np.bool_]]:
    """The packed vectors of a batch of codes, and for each code whether it is canonical.

    The vector of a code that is not canonical means nothing.
    """
    low = _low_bits(length, weight)
    start = _high_length(length, weight)
    end = start + weight * low
    bits = unpack(codes)
    valid = (bits[:, :start].sum(axis=1, dtype=np.int64) == weight) & ~bits[:, end:].any(axis=1)
    vectors = np.zeros((len(codes), length), dtype=np.uint8)
    good = np.flatnonzero(valid)
    highs = np.nonzero(bits[good, :start])[1].reshape(-1, weight) - np.arange(weight)
    places = 1 << np.arange(low - 1, -1, -1)
    lows = bits[good, start:end].reshape(-1, weight, low) @ places
    positions = (highs << low) + lows
    inside = (np.diff(positions, axis=1) > 0).all(axis=1) & (positions[:, -1] < length)
    valid[good[~inside]] = False
    vectors[good[inside, None], positions[inside]] = 1
    return pack(vectors), valid
