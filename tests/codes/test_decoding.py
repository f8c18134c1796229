"""Named rows out of the readout: the others stand out more, the named ones no more."""

import math

import numpy as np
import pytest

from support import seeded
from zktrace.codes import Code, CodeKey, soft, sums, unpack, without
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
