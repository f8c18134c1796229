"""Packed GF(2) against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.primitives.gf2 import LinearMap, pack, transpose, unpack, weight


@pytest.mark.parametrize(("m", "l"), [(64, 8), (128, 64), (1024, 512)])
def test_products_equal_the_triple_loop_sums(m: int, l: int) -> None:
    random = np.random.default_rng(m)
    a = random.integers(0, 2, (m, l))
    x = random.integers(0, 2, (7, l))
    expected = [[sum(int(a[i, j]) * int(row[j]) for j in range(l)) % 2 for i in range(m)] for row in x]
    product = LinearMap(pack(a.astype(np.uint8)))(pack(x.astype(np.uint8)))
    assert unpack(product).tolist() == expected


@pytest.mark.parametrize(("m", "l"), [(8, 8), (64, 8), (8, 640), (1280, 640)])
def test_a_transpose_has_every_bit_at_its_mirrored_place(m: int, l: int) -> None:
    rows = np.random.default_rng(l).integers(0, 256, (m, l // 8), dtype=np.uint8)
    columns = transpose(rows)
    assert columns.shape == (l, m // 8)
    assert np.array_equal(unpack(columns), unpack(rows).T)


def test_an_empty_batch_has_an_empty_product() -> None:
    a = LinearMap(np.zeros((64, 1), dtype=np.uint8))
    assert a(np.zeros((0, 1), dtype=np.uint8)).shape == (0, 8)


@given(st.binary(min_size=1, max_size=40))
def test_weight_and_packing(data: bytes) -> None:
    packed = np.frombuffer(data, dtype=np.uint8)
    assert weight(packed) == sum(bin(byte).count("1") for byte in data)
    assert pack(unpack(packed)).tobytes() == data
