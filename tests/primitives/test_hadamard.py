"""Products with Hadamard matrices, against their definition."""

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.primitives.hadamard import (
    LEAST_SIGNS,
    MOST_SIGNS,
    SIZE_LIMIT,
    matrix,
    transform,
    transformed,
    transformed_signs,
)


@pytest.mark.parametrize("size", [1, 2, 8, 64, 128])
def test_an_entry_counts_the_bits_that_row_and_column_share(size: int) -> None:
    wanted = [[(-1) ** (i & j).bit_count() for j in range(size)] for i in range(size)]
    assert (matrix(size) == np.array(wanted)).all()
    assert (matrix(size) @ matrix(size) == size * np.eye(size)).all()


@pytest.mark.parametrize("size", [1, 2, 4, 32, 64, 128, 256, 512, 2048, 8192])
def test_the_fast_product_is_the_plain_one(size: int) -> None:
    rows = np.random.default_rng(size).integers(-9, 10, (5, size)).astype(np.float32)
    wanted = rows @ matrix(size)
    assert (transform(rows) == wanted).all()  # whole numbers: no rounding in any order
    spare = np.empty_like(rows)
    found = transformed(rows, spare)
    assert (found == wanted).all()
    assert found is rows or found is spare


@pytest.mark.parametrize("size", [0, 3, 48, -2, 2 * SIZE_LIMIT])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(InputError, match="power of two"):
        matrix(size)
    with pytest.raises(InputError, match="power of two"):
        transform(np.empty((1, max(size, 0)), dtype=np.float32))


@pytest.mark.parametrize("size", [LEAST_SIGNS, 256, 512, 2048, 4096, 8192])
@pytest.mark.parametrize("count", [1, 5])
def test_the_product_of_signs_is_the_plain_one(size: int, count: int) -> None:
    octets = np.random.default_rng(size).integers(0, 256, (count, size // 8), dtype=np.uint8)
    octets[0] = 0  # all plus: the largest sum there is
    signs = 1.0 - 2.0 * np.unpackbits(octets, axis=1)
    rows, spare = (np.full((count, size), np.nan, dtype=np.float32) for _ in range(2))
    found = transformed_signs(octets, rows, spare)
    assert found is rows
    assert found[0, 0] == size
    assert (found == signs @ matrix(size)).all()


def test_the_largest_sums_of_signs_are_right() -> None:
    rows, spare = (np.empty((2, MOST_SIGNS), dtype=np.float32) for _ in range(2))
    octets = np.zeros((2, MOST_SIGNS // 8), dtype=np.uint8)
    octets[1] = 255
    found = transformed_signs(octets, rows, spare)
    assert found[:, 0].tolist() == [MOST_SIGNS, -MOST_SIGNS]
    assert not found[:, 1:].any()


@pytest.mark.parametrize("size", [64, 384, 2 * MOST_SIGNS])
def test_other_rows_of_signs_are_refused(size: int) -> None:
    rows = np.empty((1, size), dtype=np.float32)
    with pytest.raises(InputError, match="power of two"):
        transformed_signs(np.zeros((1, size // 8), dtype=np.uint8), rows, rows.copy())
