"""Reproducible exponentials, logarithms and sums, against Python's own."""

import math

import numpy as np
import pytest

from zktrace.codes.elementary import exponential, logarithm, total


def test_the_exponential() -> None:
    x = -np.concatenate([np.linspace(0, 3, 500), np.geomspace(1e-12, 690, 500)])
    wanted = np.array([math.exp(value) for value in x.tolist()])
    assert np.abs(exponential(x) / wanted - 1).max() < 1e-9
    assert exponential(np.array([0.0]))[0] == 1.0
    assert exponential(np.array([-1e9, -700.0])).tolist() == exponential(np.array([-700.0, -700.0])).tolist()
    assert exponential(np.array([-1e300]))[0] > 0


def test_the_logarithm() -> None:
    x = np.concatenate([np.geomspace(1e-300, 1e300, 999), np.linspace(0.5, 2, 500)])
    wanted = np.array([math.log(value) for value in x.tolist()])
    assert np.abs(logarithm(x) - wanted).max() < 1e-9


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_sums_are_those_of_halves(size: int) -> None:
    """In the fixed order: the slow recursion on Python's floats."""
    values = np.random.default_rng(size).standard_normal((3, size)) * 1e6

    def slow(numbers: list[float]) -> float:
        if len(numbers) == 1:
            return numbers[0]
        half = len(numbers) // 2
        return slow([a + b for a, b in zip(numbers[:half], numbers[half:], strict=True)])

    padded = 1 << max(0, size - 1).bit_length()
    for row, found in zip(values.tolist(), total(values).tolist(), strict=True):
        assert found == slow(row + [0.0] * (padded - size))
        assert found == pytest.approx(math.fsum(row), rel=1e-12)
