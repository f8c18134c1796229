"""Products with Hadamard matrices of Sylvester's form, many rows at a time.

The matrix of n = 2^k is the Kronecker product of small ones, so a product is a few matrix products with
them, done by BLAS: about 50 n steps for n = 4096, against n log n of a butterfly that numpy does slowly.
The small ones have at most 32 rows: BLAS starts no threads of its own for them, which would be in each
other's way where rows are shared out among threads already.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError

Singles = NDArray[np.float32]

SIZE_LIMIT: Final = 1 << 16
_BITS: Final = 5  # of the rows of a small matrix, at most
_TOGETHER: Final = 64  # rows that are multiplied at a time by the last of them


def _check(size: int) -> None:
    if not 1 <= size <= SIZE_LIMIT or size & (size - 1):
        raise InputError(f"a Hadamard matrix has a power of two of rows, at most {SIZE_LIMIT}, not {size}")


@lru_cache(maxsize=16)
def matrix(size: int) -> Singles:
    """H of a power of two: H[i, j] = (-1)^(bits that i and j share)."""
    _check(size)
    found = np.ones((1, 1), dtype=np.float32)
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    found.flags.writeable = False
    return found


def transform(rows: Singles) -> Singles:
    """Every row times H, which is symmetric: of shape (count, n), n a power of two."""
    return transformed(rows.copy(), np.empty_like(rows))


def transformed(rows: Singles, spare: Singles) -> Singles:
    """The same in place: two arrays of one shape are overwritten; the one with the products is returned."""
    size = rows.shape[-1]
    after = size
    for factor in _factors(size):
        after //= factor
        if after > 1:
            np.matmul(matrix(factor), _cut(rows, factor, after), out=_cut(spare, factor, after))
        else:
            many = min(_TOGETHER, size // factor)
            np.matmul(_cut(rows, many, factor), matrix(factor), out=_cut(spare, many, factor))
        rows, spare = spare, rows
    return rows


def _cut(rows: Singles, height: int, width: int) -> Singles:
    return rows.reshape(-1, height, width)


@lru_cache(maxsize=32)
def _factors(size: int) -> tuple[int, ...]:
    """Powers of two up to 32, nearly alike, whose product is a power of two."""
    _check(size)
    bits = size.bit_length() - 1
    parts = -(-bits // _BITS) or 1
    return tuple(1 << (bits // parts + (at < bits % parts)) for at in range(parts))
