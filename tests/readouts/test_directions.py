"""Directions: unit, Gaussian, and the same in any block."""

import hashlib
import math

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zktrace.errors import InputError
from zktrace.readouts.directions import Directions
from zktrace.readouts.identity import IdentityCodebook


def family(dimension: int = 50, count: int = 40) -> Directions:
    return Directions(label="test", seed=b"seed", dimension=dimension, count=count)


def reference(dimension: int, j: int) -> list[float]:
    """Direction j by the words of the specification, with plain loops."""
    fields = (b"zkt-directions-v1", b"test", dimension.to_bytes(8, "big"), b"seed")
    absorbed = b"".join(len(part).to_bytes(8, "big") + part for part in fields)
    key = hashlib.shake_256(absorbed).digest(32)
    q = 2 * math.ceil(dimension / 4)
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * q * (j + 1)))
    own = stream[8 * q * j :]
    words = [int.from_bytes(own[4 * i : 4 * i + 4], "little") for i in range(2 * q)]
    radius = [math.sqrt(-2 * math.log((u + 0.5) / 2**32)) for u in words[:q]]
    angle = [2 * math.pi * v / 2**32 for v in words[q:]]
    g = [r * math.cos(a) for r, a in zip(radius, angle, strict=True)]
    g += [r * math.sin(a) for r, a in zip(radius, angle, strict=True)]
    norm = math.sqrt(sum(x * x for x in g[:dimension]))
    return [x / norm for x in g[:dimension]]


@pytest.mark.parametrize("dimension", [1, 3, 4, 7, 64])
def test_directions_follow_the_specification(dimension: int) -> None:
    made = family(dimension, 5).block(0, 5)
    for j in range(5):
        assert made[j] == pytest.approx(reference(dimension, j), abs=1e-12)


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_block_is_a_slice_of_the_whole(start: int, stop: int) -> None:
    low, high = sorted((start, stop))
    assert (family().block(low, high) == family().block(0, 40)[low:high]).all()


def test_directions_are_unit_and_spherical() -> None:
    made = family(4800, 600).block(0, 600)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(600))
    assert stats.kstest(made[:, 0] * math.sqrt(4800), "norm").pvalue > 1e-3
    cosines = (made @ made.T)[np.triu_indices(600, 1)] * math.sqrt(4800)
    assert stats.kstest(cosines[:20_000], "norm").pvalue > 1e-3


def test_projections_equal_the_product_with_the_whole() -> None:
    vector = np.random.default_rng(0).normal(size=50)
    many = family(count=600)
    assert many.project(vector) == pytest.approx(many.block(0, 600) @ vector)
    assert family(count=0).project(vector).shape == (0,)


def test_families_differ_by_label_seed_and_dimension() -> None:
    base = Directions(label="a", seed=b"s", dimension=8, count=1).block(0, 1)
    for other in (("b", b"s", 8), ("a", b"t", 8), ("a", b"s", 9)):
        label, seed, dimension = other
        made = Directions(label=label, seed=seed, dimension=dimension, count=1).block(0, 1)
        assert not np.allclose(made[0, :8], base[0])


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 41)])
def test_what_does_not_exist_is_an_error(start: int, stop: int) -> None:
    with pytest.raises(InputError):
        family().block(start, stop)


def test_a_station_owns_a_slice_of_the_codebook() -> None:
    book = IdentityCodebook(stations=4, bits=16, layers=(12, 18), raw=True)
    whole = book.directions.block(0, 64)
    for station in range(4):
        assert (book.block(station) == whole[16 * station : 16 * station + 16]).all()
    with pytest.raises(InputError):
        book.block(4)
