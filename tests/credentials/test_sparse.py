"""The code of fixed-weight vectors: a bijection onto its canonical words."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.credentials import sparse


@pytest.mark.parametrize(
    ("length", "weight"), [(1280, 132), (1024, 128), (128, 16), (64, 1), (192, 1), (64, 32)]
)
@given(data=st.data())
def test_round_trip(length: int, weight: int, data: st.DataObject) -> None:
    positions = data.draw(st.sets(st.integers(0, length - 1), min_size=weight, max_size=weight))
    bits = np.zeros((1, length), dtype=np.uint8)
    bits[0, list(positions)] = 1
    packed = np.packbits(bits, axis=1)
    code = sparse.encode(packed, length=length, weight=weight)
    assert code.shape == (1, sparse.coded_bytes(length, weight))
    again, valid = sparse.decode(code, length=length, weight=weight)
    assert valid.all()
    assert (again == packed).all()


def test_a_vector_of_the_default_set_takes_86_bytes_and_the_papers_80() -> None:
    assert sparse.coded_bytes(1280, 132) == 86
    assert sparse.coded_bytes(1024, 128) == 80


def test_every_byte_string_is_a_canonical_code_or_refused() -> None:
    """All 2^16 strings of the code of 8 positions choose 3 (10 bits and 6 of padding): exactly 56 decode."""
    length, weight = 8, 3
    assert sparse.coded_bytes(length, weight) == 2
    codes = np.array(list(itertools.product(range(256), repeat=2)), dtype=np.uint8)
    vectors, valid = sparse.decode(codes, length=length, weight=weight)
    assert valid.sum() == 56
    assert len(set(vectors[valid].tobytes())) == 56
    assert (np.bitwise_count(vectors[valid]).sum(axis=1) == weight).all()
    assert (sparse.encode(vectors[valid], length=length, weight=weight) == codes[valid]).all()


@given(st.binary(min_size=86, max_size=86))
def test_noise_of_full_size_is_refused_or_canonical(noise: bytes) -> None:
    code = np.frombuffer(noise, dtype=np.uint8).reshape(1, -1)
    vectors, valid = sparse.decode(code, length=1280, weight=132)
    if valid[0]:
        assert (sparse.encode(vectors, length=1280, weight=132) == code).all()


def test_a_length_that_is_no_power_of_two_has_no_code_beyond_its_end() -> None:
    """All 2^16 strings of the code of 12 positions choose 3 (12 bits, 4 of padding): exactly 220 decode."""
    length, weight = 12, 3
    assert sparse.coded_bytes(length, weight) == 2
    codes = np.array(list(itertools.product(range(256), repeat=2)), dtype=np.uint8)
    assert sparse.decode(codes, length=length, weight=weight)[1].sum() == 220


def test_empty_batches_are_fine() -> None:
    none = np.zeros((0, 128), dtype=np.uint8)
    code = sparse.encode(none, length=1024, weight=128)
    assert code.shape == (0, 80)
    assert sparse.decode(code, length=1024, weight=128)[0].shape == (0, 128)
