"""Soft coefficients: what they gain, what they never look at, and readouts that say nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codes import reference
from support import seeded
from zktrace.codes import Biases, Code, CodeKey, Coefficients, fit_channel, soft, sums, symmetric, unpack
from zktrace.codes.strategies import linear_channel
from zktrace.errors import InputError

N = 512


def code_number(number: int, length: int = N) -> Code:
    key = CodeKey.generate(entropy=seeded(f"soft {number}"))
    return Code(key=key, label="soft", length=length, colluders=2)


CODE = code_number(0)


def mean_score(coefficients: Coefficients, rows: np.ndarray) -> float:
    """In deviations of an innocent's score."""
    return float(coefficients.scores_float(sums(rows, coefficients)).mean()) / math.sqrt(N)


def table(noise: float, trials: int, spoil=None) -> dict[int, tuple[float, float]]:  # noqa: ANN001
    """Colluders' mean (soft, symmetric) score for each coalition size, over fresh codes of 10 recipients."""
    rng = np.random.default_rng(2024)
    result = {}
    for k in (1, 2, 3, 5, 8):
        found = []
        for trial in range(trials):
            code = code_number(trial)
            rows = code.rows(range(10))[rng.permutation(10)[:k]]
            z = linear_channel(unpack(rows, N), noise, rng)
            z = z if spoil is None else spoil(z, rng)
            hard = symmetric((z > 0).astype(np.uint8), code.biases)
            found.append((mean_score(soft(z, code.biases), rows), mean_score(hard, rows)))
        result[k] = tuple(np.mean(found, axis=0))
    return result


def test_what_soft_readouts_gain() -> None:
    """Mean score of colluders under averaging and noise 0.3; n = 512, c = 2, ten recipients."""
    found = table(0.3, trials=12)
    for k, (gentle, hard) in found.items():
        print(f"k={k}: soft {gentle:.2f} sigma, symmetric {hard:.2f} sigma")
    wanted = {1: (18.0, 14.0), 2: (12.0, 7.0), 3: (9.3, 4.5), 5: (6.5, 2.7), 8: (4.5, 1.5)}
    for k, (gentle, hard) in wanted.items():
        assert found[k][0] > gentle
        assert hard < found[k][1] < hard + 2.2


def test_a_few_wild_positions_cost_little() -> None:
    """Every fiftieth position multiplied by 50."""
    found = table(0.3, trials=6, spoil=lambda z, rng: np.where(rng.random(N) < 0.02, 50 * z, z))
    assert found[5][0] > 6.0
    assert found[8][0] > 4.1


def test_one_absurd_position_is_dropped() -> None:
    rng = np.random.default_rng(3)
    rows = CODE.rows(range(5))
    z = linear_channel(unpack(rows, N), 0.3, rng)
    wanted = mean_score(soft(z, CODE.biases), rows)
    for value in (1e6, -1e15, 1e300):
        z[40] = value
        found = soft(z, CODE.biases)
        assert found.numerators[40] == 0
        assert mean_score(found, rows) == pytest.approx(wanted, abs=0.3)
    assert not soft(np.where(np.arange(N) == 40, 1e300, 5.0), CODE.biases).numerators.any()


def test_without_noise_nothing_breaks() -> None:
    found = table(0.0, trials=4)
    assert found[1][0] > 19
    assert found[8][0] > 7


@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_channel_is_found(k: int) -> None:
    rng = np.random.default_rng(5)
    code = code_number(1, 4096)
    bits = unpack(code.rows(range(k)), 4096)
    channel = fit_channel(3.0 * linear_channel(bits, 0.3, rng), code.biases)
    assert channel is not None
    unit = 2.0**channel.unit
    assert channel.slope * unit == pytest.approx(3, rel=0.1)
    assert channel.noise * unit**2 == pytest.approx(9 * 0.09, rel=0.35)
    assert channel.spread * unit**2 == pytest.approx(9 / k, rel=0.25)


def test_the_bits_are_those_of_scalar_arithmetic() -> None:
    rng = np.random.default_rng(6)
    thresholds = CODE.biases.thresholds.tolist()
    bits = unpack(CODE.rows(range(4)), N)
    for values in (
        linear_channel(bits, 0.3, rng),
        rng.standard_cauchy(N) * 1e-9 + 7,
        2.0 * bits[0] - 1,
        np.where(rng.random(N) < 0.05, 1.0, 0.0),
        rng.standard_normal(N) * 1e150,
    ):
        assert soft(values, CODE.biases).numerators.tolist() == reference.soft(values.tolist(), thresholds)


def test_innocents_have_mean_zero_and_variance_n() -> None:
    """`lem:innoc` for soft coefficients."""
    rng = np.random.default_rng(7)
    z = linear_channel(unpack(CODE.rows([1, 2, 3]), N), 0.3, rng)
    coefficients = soft(z, CODE.biases)
    assert float(coefficients.variance()) == pytest.approx(N, rel=3e-3)
    scores = coefficients.scores_float(sums(CODE.rows(range(10, 20_010)), coefficients))
    assert abs(scores.mean()) < 4 * math.sqrt(N / 20_000)
    assert scores.var() == pytest.approx(N, rel=0.06)


@settings(max_examples=30, deadline=None)
@given(st.integers(-900, 900), st.integers(0, 1000))
def test_the_unit_of_the_readout_does_not_matter(power: int, seed: int) -> None:
    z = np.random.default_rng(seed).standard_normal(64)
    biases = code_number(2, 64).biases
    assert soft(np.ldexp(z, power), biases) == soft(z, biases)


def test_an_offset_does_not_matter_and_a_sign_turns_the_score() -> None:
    rng = np.random.default_rng(8)
    z = linear_channel(unpack(CODE.rows([1, 2, 3]), N), 0.3, rng)
    base = soft(z, CODE.biases).numerators
    assert np.abs(soft(z + 40, CODE.biases).numerators - base).max() <= 1
    assert np.abs(soft(-z, CODE.biases).numerators + base).max() <= 1


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1e-320, 1.7e308])
def test_a_constant_readout_says_nothing(value: float) -> None:
    assert not soft(np.full(N, value), CODE.biases).numerators.any()
    assert fit_channel(np.full(N, value), CODE.biases) is None


def test_a_readout_that_is_a_line_in_the_bias_says_nothing() -> None:
    p = CODE.biases.probabilities()
    assert not soft(0.3 + 2 * (2 * p - 1), CODE.biases).numerators.any()


@pytest.mark.parametrize("length", [1, 2, 15])
def test_a_readout_too_short_to_be_judged_says_nothing(length: int) -> None:
    biases = code_number(3, length).biases
    assert soft(np.arange(length) % 2, biases).numerators.tolist() == [0] * length


def test_equal_biases() -> None:
    """Nothing to regress on: the readout about its mean is left."""
    biases = Biases(thresholds=np.full(32, 2**31), colluders=2)
    found = soft(np.arange(32) % 2, biases).values()
    assert np.abs(np.abs(found) - 2).max() < 0.1


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=20, max_size=20))
def test_every_finite_readout_has_coefficients(values: list[float]) -> None:
    biases = code_number(4, 20).biases
    found = soft(values, biases)
    variance = float(found.variance())
    assert variance == 0 or variance == pytest.approx(20, rel=0.05)
    assert found.numerators.tolist() == reference.soft(values, biases.thresholds.tolist())


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_readout_must_be_finite(wrong: float) -> None:
    values = np.zeros(N)
    values[17] = wrong
    with pytest.raises(InputError, match="readout must be finite: position 17"):
        soft(values, CODE.biases)


def test_a_readout_of_another_length() -> None:
    with pytest.raises(InputError, match=r"shape \(512,\)"):
        soft(np.zeros(N + 1), CODE.biases)
