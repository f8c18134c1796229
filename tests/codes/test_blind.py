"""Blind MAP: the estimated channel, its ratios against the formula, and what it traces that soft does not."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from support import seeded
from zktrace.certificates.certificate import smallest_threshold, tail_bound
from zktrace.codes import Biases, Code, CodeKey, Coefficients, soft, sums, unpack, without
from zktrace.codes.blind import MOST_COLLUDERS, Collusion, _Data, _ratios, blind, estimate
from zktrace.codes.strategies import STRATEGIES, linear_channel
from zktrace.errors import InputError

N = 512


def code_number(number: int) -> Code:
    key = CodeKey.generate(entropy=seeded(f"blind {number}"))
    return Code(key=key, label="blind", length=N, colluders=3)


CODE = code_number(0)


def word(name: str, rows: np.ndarray, seed: int) -> np.ndarray:
    return 2.0 * STRATEGIES[name](unpack(rows, N), np.random.default_rng(seed)) - 1


def strengths(coefficients: Coefficients, rows: np.ndarray) -> np.ndarray:
    """Scores in an innocent's deviations."""
    spread = math.sqrt(coefficients.variance())
    return coefficients.scores_float(sums(rows, coefficients)) / spread


def data_of(z: np.ndarray, biases: Biases, named: np.ndarray | None = None) -> _Data:
    ones = np.zeros(N, dtype=np.int64) if named is None else named.sum(axis=0, dtype=np.int64)
    return _Data(z=z, p=biases.probabilities(), ones=ones, named=0 if named is None else len(named))


@pytest.mark.parametrize("votes", [None, np.array([0.005, 0.9, 0.2, 0.995])])
def test_ratios_are_those_of_enumeration(votes: np.ndarray | None) -> None:
    """Three colluders, one of them named: sum over all bits of the third, position by position."""
    levels = np.array([-1.0, -0.3, 0.3, 1.0]) if votes is None else np.array([-1.0, 1.0])
    channel = Collusion(colluders=3, levels=levels, noise=0.7, votes=votes)
    rng = np.random.default_rng(1)
    z, known = rng.standard_normal(N), unpack(CODE.rows([7]), N)
    found = _ratios(data_of(z, CODE.biases, known), channel)
    p = CODE.biases.probabilities()

    def density(at: int, ones: int) -> float:
        """Of the reading, in units of the nearest level's."""
        near = [math.exp(-0.5 * ((z[at] - level) / 0.7) ** 2) for level in levels]
        value = near[ones] if votes is None else votes[ones] * near[1] + (1 - votes[ones]) * near[0]
        return 0.995 * value / max(near) + 0.005

    for at in range(0, N, 37):
        both = [0.0, 0.0]
        for own, other in itertools.product((0, 1), repeat=2):
            chance = p[at] if other else 1 - p[at]
            both[own] += chance * density(at, own + other + int(known[0, at]))
        assert found[at] == pytest.approx(math.log(both[1] / both[0]), abs=1e-7)


@pytest.mark.parametrize(
    ("name", "size"), [("minority", 3), ("minority", 5), ("all-ones", 4), ("majority", 3)]
)
def test_the_channel_of_a_word_is_found(name: str, size: int) -> None:
    z = word(name, CODE.rows(range(size)), 2)
    found = estimate(data_of(z, CODE.biases))
    assert found.votes is not None
    assert abs(found.colluders - size) <= 1
    votes = found.votes[1:-1]
    wanted = {"minority": (votes[0] > 0.6, votes[-1] < 0.4), "majority": (votes[0] < 0.4, votes[-1] > 0.6)}
    assert all(wanted.get(name, (votes > 0.6).tolist()))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_channel_of_averages_is_linear(size: int) -> None:
    z = 3.0 + 2.0 * linear_channel(unpack(CODE.rows(range(size)), N), 0.1, np.random.default_rng(3))
    found = estimate(data_of(z, CODE.biases))
    assert found.votes is None
    assert found.colluders == size
    assert (found.levels[0], found.levels[-1]) == pytest.approx((1.0, 5.0), abs=0.2)
    assert found.noise == pytest.approx(0.2, abs=0.06)


LEVEL = Fraction(1, 1000) * Fraction(3, 4) / 2 * Fraction(9, 10)  # the first stage's, half of it, a tail


def named(coefficients: Coefficients, rows: np.ndarray, recipients: int) -> int:
    """How many of the rows are beyond the certified threshold."""
    least = smallest_threshold(coefficients, recipients=recipients, level=LEVEL).threshold
    return sum(coefficients.score(int(each)) > least for each in sums(rows, coefficients))


@pytest.mark.parametrize(
    ("name", "size", "recipients"), [("minority", 5, 10**6), ("all-ones", 4, 10**6), ("minority", 8, 10)]
)
def test_words_that_soft_cannot_follow_are_traced(name: str, size: int, recipients: int) -> None:
    """n = 512, a budget of 1/1000, the first stage alone: coalitions of which somebody is named."""
    by_map = by_soft = 0
    for trial in range(6):
        code = code_number(trial)
        rows = code.rows(range(size))
        z = word(name, rows, trial)
        by_map += named(blind(z, code.biases), rows, recipients) > 0
        by_soft += named(soft(z, code.biases), rows, recipients) > 0
    assert by_map >= 5
    assert by_soft <= 4


def test_rows_already_named_are_known() -> None:
    """Two of three by minority are known: the third is named among more, and more than by soft."""
    found = []
    for trial in range(4):
        code = code_number(trial)
        rows = code.rows(range(3))
        z = word("minority", rows, trial)
        last, least = rows[2:], []
        for made in (
            blind(z, code.biases),
            blind(z, code.biases, rows[:2]),
            soft(without(z, code.biases, rows[:2]), code.biases),
        ):
            score = made.score(int(sums(last, made)[0]))
            least.append(float(tail_bound(made, score).mid()))
        found.append(least)
    before, after, linear = np.mean(found, axis=0)  # ln of the chance that an innocent scores more
    assert after < before - 5
    assert after < linear - 5


@pytest.mark.parametrize(("noise", "recipients"), [(0.3, 10**6), (1.2, 10)])
def test_on_averages_it_costs_little(noise: float, recipients: int) -> None:
    found = []
    for trial in range(6):
        code = code_number(trial)
        rows = code.rows(range(3))
        z = linear_channel(unpack(rows, N), noise, np.random.default_rng(trial))
        found.append([named(make(z, code.biases), rows, recipients) for make in (blind, soft)])
    by_map, by_soft = np.sum(found, axis=0)
    assert by_soft >= 3
    assert by_map >= by_soft - 3  # of 18


def test_innocents_stay_innocent() -> None:
    z = word("minority", CODE.rows(range(5)), 4)
    found = strengths(blind(z, CODE.biases, CODE.rows([0, 1])), CODE.rows(range(100, 8100)))
    assert abs(found.mean()) < 0.05
    assert found.var() == pytest.approx(1, rel=0.07)


def test_a_readout_that_says_nothing_and_one_with_too_many_named() -> None:
    for values in (np.zeros(N), np.full(N, 2.5)):
        assert not blind(values, CODE.biases).numerators.any()
    z = word("majority", CODE.rows(range(3)), 5)
    assert blind(z, CODE.biases, CODE.rows(range(MOST_COLLUDERS - 1))).numerators.any()
    assert not blind(z, CODE.biases, CODE.rows(range(MOST_COLLUDERS))).numerators.any()
    with pytest.raises(InputError, match="finite"):
        blind(np.full(N, np.inf), CODE.biases)


def test_the_unit_of_the_readout_does_not_matter() -> None:
    z = linear_channel(unpack(CODE.rows(range(2)), N), 0.5, np.random.default_rng(6))
    assert blind(z * 2.0**40, CODE.biases) == blind(z, CODE.biases)


def test_the_opposite_of_a_word_is_not_explained() -> None:
    """Nobody is named by a reversed channel: tampering stays tampering."""
    rows = CODE.rows(range(200))
    z = 1.0 - 2.0 * unpack(rows[:1], N)[0]
    assert named(blind(z, CODE.biases), rows[:1], 10) == 0
    assert named(soft(z, CODE.biases).negated(), rows[:1], 10) == 1


def test_wild_readouts_have_coefficients() -> None:
    rng = np.random.default_rng(7)
    for values in (
        rng.standard_cauchy(N) * 1e200,
        np.where(np.arange(N) == 3, 1e300, 0.0),
        rng.random(N) > 0.9,
    ):
        with np.errstate(all="ignore"):
            blind(np.asarray(values, dtype=np.float64), CODE.biases)
