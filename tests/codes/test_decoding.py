"""Named rows out of the readout: the others stand out more, the named ones no more."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize

from support import seeded
from zktrace.codes import Code, CodeKey, soft, sums, unpack, without
from zktrace.codes.decoding import _nonnegative_fit, _normal_equations
from zktrace.codes.strategies import STRATEGIES, linear_channel
from zktrace.errors import InputError

N = 512


def code_number(number: int) -> Code:
    key = CodeKey.generate(entropy=seeded(f"decoding {number}"))
    return Code(key=key, label="decoding", length=N, colluders=2)


CODE = code_number(0)


def scores(z: np.ndarray, code: Code, rows: np.ndarray) -> np.ndarray:
    coefficients = soft(z, code.biases)
    return coefficients.scores_float(sums(rows, coefficients)) / math.sqrt(N)


@pytest.mark.parametrize(("k", "named", "noise", "gain"), [(3, 2, 0.0, 6), (5, 3, 0.3, 1), (8, 4, 0.3, 0.4)])
def test_the_others_stand_out_more(k: int, named: int, noise: float, gain: float) -> None:
    rng = np.random.default_rng(k)
    before, after, gone = [], [], []
    for trial in range(12):
        code = code_number(trial)
        rows = code.rows(range(k))
        z = linear_channel(unpack(rows, N), noise, rng)
        rest = without(z, code.biases, rows[:named])
        before.append(scores(z, code, rows[named:]).mean())
        after.append(scores(rest, code, rows[named:]).mean())
        gone.append(scores(rest, code, rows[:named]).mean())
    assert np.mean(after) > np.mean(before) + gain
    assert abs(np.mean(gone)) < 1


@pytest.mark.parametrize("name", STRATEGIES)
def test_hard_words_too(name: str) -> None:
    """The channel is not linear then; what is taken out is the linear part of the named row."""
    rng = np.random.default_rng(9)
    before, after, gone = [], [], []
    for trial in range(12):
        code = code_number(trial)
        rows = code.rows(range(3))
        z = 2.0 * STRATEGIES[name](unpack(rows, N), rng) - 1
        rest = without(z, code.biases, rows[:1])
        before.append(scores(z, code, rows[1:]).mean())
        after.append(scores(rest, code, rows[1:]).mean())
        gone.append(scores(rest, code, rows[:1]).mean())
    assert np.mean(after) > np.mean(before)
    assert abs(np.mean(gone)) < 1


def test_innocents_stay_innocent() -> None:
    rng = np.random.default_rng(10)
    rows = CODE.rows(range(4))
    rest = without(linear_channel(unpack(rows, N), 0.3, rng), CODE.biases, rows[:3])
    found = scores(rest, CODE, CODE.rows(range(100, 10_100)))
    assert abs(found.mean()) < 0.04
    assert found.var() == pytest.approx(1, rel=0.06)


def test_a_negated_copy() -> None:
    rng = np.random.default_rng(11)
    rows = CODE.rows(range(3))
    z = linear_channel(unpack(rows, N), 0.3, rng)
    assert np.allclose(without(-z, CODE.biases, rows[:2]), -without(z, CODE.biases, rows[:2]), atol=1e-9)


def test_a_row_named_twice_counts_once() -> None:
    rng = np.random.default_rng(12)
    rows = CODE.rows([0, 1, 2])
    z = linear_channel(unpack(rows, N), 0.3, rng)
    once, twice = without(z, CODE.biases, rows[:1]), without(z, CODE.biases, rows[[0, 0]])
    assert np.abs(once - twice).max() < 1e-6


def test_a_stranger_takes_away_little() -> None:
    """A row that has no part in the copy gets a share near zero, never a negative one."""
    rng = np.random.default_rng(13)
    rows = CODE.rows(range(3))
    z = linear_channel(unpack(rows, N), 0.3, rng)
    strangers = CODE.rows(range(50, 55))
    rest = without(z, CODE.biases, strangers)
    assert np.corrcoef(rest, z)[0, 1] > 0.97
    assert np.abs(rest - z).max() < 0.5
    assert scores(rest, CODE, rows).mean() > scores(z, CODE, rows).mean() - 0.5


def test_the_unit_is_kept_and_the_readout_is_not_touched() -> None:
    rng = np.random.default_rng(14)
    rows = CODE.rows(range(3))
    z = linear_channel(unpack(rows, N), 0.3, rng)
    kept = z.copy()
    rest = without(z, CODE.biases, rows[:1])
    assert (z == kept).all()
    assert (without(z * 1024, CODE.biases, rows[:1]) == rest * 1024).all()


@pytest.mark.parametrize("values", [np.zeros(N), np.full(N, 3.5)])
def test_a_readout_that_says_nothing_comes_back(values: np.ndarray) -> None:
    assert (without(values, CODE.biases, CODE.rows([0])) == values).all()


def test_nobody_named() -> None:
    z = np.random.default_rng(15).standard_normal(N)
    found = without(z, CODE.biases, CODE.rows([]))
    assert (found == z).all()
    assert found is not z


def test_rows_and_readouts_that_cannot_be() -> None:
    with pytest.raises(InputError, match="finite"):
        without(np.full(N, np.nan), CODE.biases, CODE.rows([0]))
    with pytest.raises(InputError, match="shape"):
        without(np.zeros(N), CODE.biases, CODE.rows([0])[:, :5])


def test_normal_equations_are_the_sums_they_stand_for() -> None:
    """Against rational numbers: whole weights, so the products of matrices are without error."""
    rng = np.random.default_rng(16)
    bits = unpack(CODE.rows(range(5)), N)
    p, target, weights = CODE.biases.probabilities(), rng.standard_normal(N), rng.random(N) * 7
    gram, right = _normal_equations(bits.astype(np.float64), p, target, weights)
    columns = [[Fraction(int(x)) - Fraction(q) for x, q in zip(row, p, strict=True)] for row in bits]
    power = 52 - N.bit_length() - 3
    whole = [round(Fraction(w) * 2**power) for w in weights]
    for i, first in enumerate(columns):
        pulled = sum(w * a * Fraction(t) for w, a, t in zip(whole, first, target, strict=True))
        assert right[i] == pytest.approx(float(pulled), rel=1e-9, abs=2.0**power * 1e-9)
        for j, second in enumerate(columns):
            exact = sum(w * a * b for w, a, b in zip(whole, first, second, strict=True))
            assert gram[i, j] == pytest.approx(float(exact), rel=1e-11, abs=2.0**power * 1e-9)


def test_the_fit_is_that_of_a_slow_solver() -> None:
    rng = np.random.default_rng(17)
    rows = CODE.rows(range(12))
    bits, p = unpack(rows, N), CODE.biases.probabilities()
    weights = rng.random(N) + 0.1
    target = 0.3 * (bits[:4] - p).sum(axis=0) + 0.5 * rng.standard_normal(N)
    shares = _nonnegative_fit(bits, CODE.biases, target, weights)
    root = np.sqrt(weights)
    wanted = scipy.optimize.nnls((root * (bits - p)).T, root * target)[0]
    active = wanted > 0
    assert np.abs(np.array(shares) - wanted)[:4].max() < 0.05
    assert np.abs(np.array(shares) - wanted).max() < 0.1  # what is left out once stays out
    assert active[:4].all()


def fair_code(length: int) -> Code:
    key = CodeKey.generate(entropy=seeded(f"fair {length}"))
    return Code(key=key, label="decoding", length=length, colluders=2, law="fair")


@pytest.mark.parametrize(("k", "noise"), [(3, 0.0), (8, 0.3), (24, 0.05)])
def test_a_fair_code_has_no_slope_and_is_decoded_all_the_same(k: int, noise: float) -> None:
    code = fair_code(1024)
    assert not code.biases.vary
    rng = np.random.default_rng(k)
    rows = code.rows(range(k + 500))
    z = linear_channel(unpack(rows[:k], 1024), noise, rng)
    half = k // 2
    rest = without(z, code.biases, rows[:half])

    def read(values: np.ndarray) -> np.ndarray:
        coefficients = soft(values, code.biases)
        return coefficients.scores_float(sums(rows, coefficients)) / math.sqrt(1024)

    before, after = read(z), read(rest)
    assert after[half:k].mean() > before[half:k].mean() + 1
    assert abs(after[:half].mean()) < 1
    assert abs(after[k:].mean()) < 0.2
    assert after[k:].var() == pytest.approx(1, rel=0.25)


def test_many_rows() -> None:
    """128 of 128 colluders' rows explain the readout but for its noise."""
    code = fair_code(2048)
    rows = code.rows(range(128))
    z = linear_channel(unpack(rows, 2048), 0.02, np.random.default_rng(18))
    assert without(z, code.biases, rows).std() == pytest.approx(0.02 * math.sqrt(1 - 128 / 2048), rel=0.05)


def test_more_rows_than_positions() -> None:
    """Rows that others make up are not needed; nothing is divided by zero."""
    code = fair_code(16)
    z = np.random.default_rng(19).standard_normal(16)
    assert np.isfinite(without(z, code.biases, code.rows(range(60)))).all()
