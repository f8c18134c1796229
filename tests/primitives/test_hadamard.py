"""Products with Hadamard matrices, against their definition."""

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.primitives.hadamard import SIZE_LIMIT, matrix, transform, transformed


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
