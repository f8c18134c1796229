"""Products with Hadamard matrices of Sylvester's form, many rows at a time.

The matrix of n = 2^k is the Kronecker product of small ones, so a product is a few matrix products with
them, done by BLAS: about 50 n steps for n = 4096, against n log n of a butterfly that numpy does slowly.
The small ones have at most 32 rows: BLAS starts no threads of its own for them, which would be in each
other's way where rows are shared out among threads already.

Rows of signs need no real numbers: eight signs are a byte, whose products are looked up, and sums of up to
128 signs, halved, are a byte each. That takes half the time of BLAS; whole numbers are exact either way.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError

Singles = NDArray[np.float32]
Octets = NDArray[np.uint8]

SIZE_LIMIT: Final = 1 << 16
LEAST_SIGNS: Final = 1 << 7  # in a row of signs: their sums are bytes,
MOST_SIGNS: Final = 1 << 14  # and those of longer rows are int16
_BITS: Final = 5  # of the rows of a small matrix, at most
_TOGETHER: Final = 128  # rows that are multiplied at a time by the last of them


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


def transformed_signs(octets: Octets, rows: Singles, spare: Singles) -> Singles:
    """Rows of signs times H; whole numbers, in `rows`. Two arrays of the shape (count, n) are overwritten.

    A byte of `octets` has eight signs, the most significant bit first, and a one is minus.
    """
    count, size = rows.shape
    if not LEAST_SIGNS <= size <= MOST_SIGNS or size & (size - 1):
        raise InputError(f"a row of {size} signs: a power of two from {LEAST_SIGNS} to {MOST_SIGNS}")
    many = size // 128
    first, second, third, _ = rows.view(np.int8).reshape(4, 16, -1)
    eights = first.view(np.uint64).reshape(16, many, count)
    np.take(_halves(), octets.reshape(count, many, 16).transpose(2, 1, 0), out=eights, mode="clip")
    made = _summed(first, second).view(np.uint64).reshape(16, many, count)
    np.copyto(third.view(np.uint64).reshape(many, count, 16), made.transpose(1, 2, 0))
    one, two = spare.view(np.int16).reshape(2, many, -1)
    np.multiply(third.reshape(many, -1), np.int16(2), out=one)
    found = _summed(one, two).reshape(many, count, 128)
    np.copyto(rows.reshape(count, many, 128), found.transpose(1, 0, 2))
    return rows


@lru_cache(maxsize=1)
def _halves() -> NDArray[np.uint64]:
    """Of every byte of signs: half of their eight products with H, an int8 each."""
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    return (signs @ matrix(8) / 2).astype(np.int8).view(np.uint64).reshape(256)


def _summed(rows: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
    """H times an array, by butterflies along its first axis; both are overwritten, one is returned.

    numpy is quick at it where what follows that axis is long: from some 4,096 numbers on it uses no buffer.
    """
    half = len(rows) // 2
    while half:
        given, made = (each.reshape(-1, 2, half * each.shape[1]) for each in (rows, spare))
        np.add(given[:, 0], given[:, 1], out=made[:, 0])
        np.subtract(given[:, 0], given[:, 1], out=made[:, 1])
        rows, spare, half = spare, rows, half // 2
    return rows


def _cut(rows: Singles, height: int, width: int) -> Singles:
    return rows.reshape(-1, height, width)


@lru_cache(maxsize=32)
def _factors(size: int) -> tuple[int, ...]:
    """Powers of two up to 32 whose product is a power of two: the last is as large as may be.

    It costs least for its size, and those in the middle cost less the more numbers come after them.
    """
    _check(size)
    bits = size.bit_length() - 1
    last = min(bits, _BITS)
    parts = -(-(bits - last) // _BITS)
    others = (1 << (bits - last + at) // parts for at in range(parts))
    return (*others, 1 << last)
