"""Strategies: the marking assumption, and the moments the paper states for a coalition."""

import math

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st

from support import seeded
from zktrace.codes import Code, CodeKey, unpack
from zktrace.codes.strategies import (
    STRATEGIES,
    flip,
    guessed_biases,
    linear_channel,
    lowering,
    majority,
    minority,
    worst_case,
)
from zktrace.errors import InputError

CODE = Code(key=CodeKey.generate(entropy=seeded("strategies")), label="s", length=4096, colluders=3)


def words(bits: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """The word of every strategy."""
    rng = np.random.default_rng(seed)
    found = {name: strategy(bits, rng) for name, strategy in STRATEGIES.items()}
    return found | {"worst": worst_case(bits, colluders=3, tilt=0.1, flip=0.05)}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_every_strategy_keeps_the_marks(k: int, n: int, seed: int) -> None:
    """Where all colluders agree the word does; everywhere it is some colluder's bit."""
    bits = np.random.default_rng(seed).integers(0, 2, (k, n), dtype=np.uint8)
    for name, word in words(bits, seed).items():
        assert word.shape == (n,), name
        assert word.dtype == np.uint8, name
        assert ((word == bits).any(axis=0)).all(), name


def test_what_the_strategies_do() -> None:
    bits = np.array([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]])
    found = words(bits, 0)
    assert found["majority"].tolist() == [0, 0, 1, 1]
    assert found["minority"].tolist() == [0, 1, 0, 1]
    assert found["all-ones"].tolist() == [0, 1, 1, 1]
    assert found["all-zeros"].tolist() == [0, 0, 0, 1]


def test_randomness_is_the_argument() -> None:
    bits = unpack(CODE.rows(range(4)), 4096)
    for name, word in words(bits, 1).items():
        assert (word == words(bits, 1)[name]).all()
    assert (words(bits, 1)["coin-flip"] != words(bits, 2)["coin-flip"]).any()
    ties = bits.sum(axis=0) == 2
    rng = np.random.default_rng(3)
    assert majority(bits, rng)[ties].mean() == pytest.approx(0.5, abs=0.1)
    assert minority(bits, rng)[ties].mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("size", "tilt", "rate"), [(2, 0.1, 0.0), (3, 0.02, 0.15), (3, 0.3, 0.0), (5, 0.1, 0.1)]
)
def test_the_worst_case_is_the_larger_integral(size: int, tilt: float, rate: float) -> None:
    """`eq:finite-coal-mgf`, column by column, by adaptive integration over p itself."""
    delta = 1 / 900
    constant = math.pi - 4 * math.asin(math.sqrt(delta))

    def integral(k: int, v: int) -> float:
        def f(p: float) -> float:
            a = (k - size * p) / math.sqrt(p * (1 - p))
            e = math.exp(tilt * (2 * v - 1) * a)
            density = 1 / (constant * math.sqrt(p * (1 - p)))
            return density * p**k * (1 - p) ** (size - k) * ((1 - rate) / e + rate * e)

        return scipy.integrate.quad(f, delta, 1 - delta, limit=200)[0]

    columns = np.array([[int(j < k) for k in range(size + 1)] for j in range(size)])
    word = worst_case(columns, colluders=3, tilt=tilt, flip=rate)
    assert word[0] == 0
    assert word[size] == 1
    for k in range(1, size):
        zero, one = integral(k, 0), integral(k, 1)
        assert word[k] == (one > zero) or one == pytest.approx(zero, rel=1e-9)


@pytest.mark.parametrize("q", [0.0, 0.1, 0.4])
def test_the_moments_of_a_flipped_coalition_score(q: float) -> None:
    """`lem:coalmean`: flips scale the mean by 1 - 2q and leave the second moment."""
    rng = np.random.default_rng(4)
    p = CODE.biases.probabilities()
    deviation = np.sqrt(p * (1 - p))
    plain, flipped = [], []
    for trial in range(60):
        bits = unpack(CODE.rows(range(3 * trial, 3 * trial + 3)), 4096)
        word = majority(bits, rng)
        a = (bits.sum(axis=0, dtype=np.int64) - 3 * p) / deviation
        plain.append((2.0 * word - 1) * a)
        flipped.append((2.0 * flip(word, q, rng) - 1) * a)
    t, t_flipped = np.concatenate(plain), np.concatenate(flipped)
    error = 5 * t.std() / math.sqrt(len(t))
    assert t_flipped.mean() == pytest.approx((1 - 2 * q) * t.mean(), abs=error)
    assert (t_flipped**2).mean() == pytest.approx((t**2).mean(), rel=1e-12)
    variance = t.var() + 4 * q * (1 - q) * t.mean() ** 2
    assert t_flipped.var() == pytest.approx(variance, abs=2 * error * abs(t.mean()) + error**2)


def test_flips_have_their_rate() -> None:
    word = np.zeros(20_000, dtype=np.uint8)
    rng = np.random.default_rng(5)
    assert flip(word, 0.0, rng).sum() == 0
    assert flip(word, 1.0, rng).sum() == 20_000
    assert flip(word, 0.3, rng).mean() == pytest.approx(0.3, abs=0.015)
    assert word.sum() == 0


def test_the_linear_channel() -> None:
    rng = np.random.default_rng(6)
    bits = np.array([[0] * 5_000, [1] * 5_000, [1] * 5_000])
    assert linear_channel(bits, 0.0, rng)[0] == pytest.approx(1 / 3)
    noisy = linear_channel(bits, 0.3, rng)
    assert noisy.mean() == pytest.approx(1 / 3, abs=0.02)
    assert noisy.std() == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("rows", [[], [[]], [0, 1], [[0, 2]], [[0.5]], [["0"]]])
def test_rows_that_cannot_be(rows: list) -> None:
    rng = np.random.default_rng(0)
    for strategy in STRATEGIES.values():
        with pytest.raises(InputError, match="rows"):
            strategy(rows, rng)


def test_numbers_that_cannot_be() -> None:
    bits, rng = [[0, 1], [1, 1]], np.random.default_rng(0)
    for wrong in (-0.1, math.nan, 1.1):
        with pytest.raises(InputError):
            flip(bits[0], wrong, rng)
        with pytest.raises(InputError):
            worst_case(bits, colluders=2, tilt=0.1, flip=wrong)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError):
            linear_channel(bits, wrong, rng)
        with pytest.raises(InputError):
            worst_case(bits, colluders=2, tilt=wrong)


def slowly_lowered(bits: np.ndarray, word: np.ndarray, biases: np.ndarray) -> list[int]:
    """The same symbol by symbol, every score added up anew."""

    def greatest(symbols: dict[int, int]) -> float:
        return max(
            sum(
                (2 * y - 1) * (row[at] - biases[at]) / math.sqrt(biases[at] * (1 - biases[at]))
                for at, y in symbols.items()
            )
            for row in bits
        )

    places = range(bits.shape[1])
    mixed = [at for at in places if 0 < bits[:, at].sum() < len(bits)]
    symbols = {at: int(word[at]) for at in places if at not in mixed}
    for at in mixed:
        one, zero = greatest({**symbols, at: 1}), greatest({**symbols, at: 0})
        symbols[at] = int(word[at]) if abs(one - zero) < 1e-9 else int(one < zero)
    return [symbols[at] for at in places]


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_lowering_is_the_slow_choice_and_keeps_what_members_share(k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (k, n), dtype=np.uint8)
    word, biases = rng.integers(0, 2, n, dtype=np.uint8), rng.uniform(0.05, 0.95, n)
    found = lowering(bits, word, biases)
    assert found.tolist() == slowly_lowered(bits, word, biases)
    alike = bits.min(axis=0) == bits.max(axis=0)
    assert (found[alike] == word[alike]).all()


def test_biases_are_guessed_from_the_colluders_rows() -> None:
    assert guessed_biases(np.array([[0, 1, 1], [0, 0, 1]])).tolist() == [1 / 6, 1 / 2, 5 / 6]
    with pytest.raises(InputError, match="as many biases between 0 and 1"):
        lowering(np.eye(2, dtype=np.uint8), np.array([0, 1]), np.array([0.5, 1.0]))
