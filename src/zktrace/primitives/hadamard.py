"""Products with Hadamard matrices of Sylvester's form, many rows at a time.

The matrix of n = 2^k is the Kronecker product of two small ones, so a product is two matrix products with
them: n (r + c) steps where n = r c, done by BLAS, against n log n of a butterfly that numpy does slowly.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError

Singles = NDArray[np.float32]

SIZE_LIMIT: Final = 1 << 16


@lru_cache(maxsize=16)
def matrix(size: int) -> Singles:
    """H of a power of two: H[i, j] = (-1)^(bits that i and j share)."""
    if not 1 <= size <= SIZE_LIMIT or size & (size - 1):
        raise InputError(f"a Hadamard matrix has a power of two of rows, at most {SIZE_LIMIT}, not {size}")
    found = np.ones((1, 1), dtype=np.float32)
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    found.flags.writeable = False
    return found


def transform(rows: Singles) -> Singles:
    """Every row times H, which is symmetric: of shape (count, n), n a power of two."""
    size = rows.shape[-1]
    low = 1 << ((size.bit_length() - 1) // 2)
    cells = rows.reshape(-1, low) @ matrix(low)
    found: Singles = np.matmul(matrix(size // low), cells.reshape(-1, size // low, low))
    return found.reshape(rows.shape)
