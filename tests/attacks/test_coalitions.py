"""docs/coalitions.md in numbers: where every weight carries every bit, every coalition is an average.

The marks are made here, by the formula and nothing else: blocks of n weights, a Hadamard matrix, two signs a
weight that no colluder knows.
"""

import re
from functools import cache
from itertools import product
from math import comb, erf
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from zktrace.attacks.collusion import STRATEGIES, collude

Floats = NDArray[np.float64]

BITS, BLOCKS, AMPLITUDE, SIGMA = 256, 400, 0.01, 0.7
SYMMETRIC = tuple(each for each in STRATEGIES if each != "weighted")


def hadamard(size: int) -> Floats:
    found = np.ones((1, 1))
    while len(found) < size:
        found = np.block([[found, found], [found, -found]])
    return found


H = hadamard(BITS)


class Key(NamedTuple):
    """Two signs a weight: (blocks, bits) each."""

    s: Floats
    r: Floats


def key(seed: int) -> Key:
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (2, BLOCKS, BITS))
    return Key(s=signs[0], r=signs[1])


def dense(row: Floats, key: Key) -> Floats:
    """a sigma n^(-1/2) S o H (R o t), block by block."""
    return AMPLITUDE * SIGMA * BITS**-0.5 * key.s * ((key.r * row) @ H)


def read_dense(weights: Floats, key: Key) -> Floats:
    """The mean over blocks of n^(-1/2) R o H (S o w / sigma), in amplitudes."""
    return (BITS**-0.5 * key.r * ((key.s * weights / SIGMA) @ H)).mean(axis=0) / AMPLITUDE


def single(row: Floats, key: Key) -> Floats:
    """For comparison: a weight carries one bit, a sigma S t."""
    return AMPLITUDE * SIGMA * key.s * row


def read_single(weights: Floats, key: Key) -> Floats:
    return (key.s * weights / SIGMA).mean(axis=0) / AMPLITUDE


class Found(NamedTuple):
    rows: Floats  # (colluders, bits)
    readout: Floats  # (bits,), in amplitudes, less the shared model's

    @property
    def slope(self) -> float:
        """Of the readout on the mean row."""
        mean = self.rows.mean(axis=0)
        return float(self.readout @ mean / (mean @ mean))

    @property
    def shares(self) -> Floats:
        """Of the readout on every row."""
        return np.asarray(np.linalg.lstsq(self.rows.T, self.readout, rcond=None)[0])


@cache
def leak(strategy: str, colluders: int, kind: str, seed: int = 0) -> Found:
    """What is read of a coalition's model of (BLOCKS, BITS) weights."""
    rng = np.random.default_rng([seed, colluders])
    signs, shared = key(seed), SIGMA * rng.standard_normal((BLOCKS, BITS))
    rows = rng.choice([-1.0, 1.0], (colluders, BITS))
    write, read = (dense, read_dense) if kind == "dense" else (single, read_single)
    copies = [{"w": shared + write(row, signs)} for row in rows]
    weights = np.arange(1, colluders + 1) if strategy == "weighted" else None
    leaked = collude(copies, strategy, rng=rng, weights=weights)["w"]  # type: ignore[arg-type]
    return Found(rows=rows, readout=read(leaked, signs) - read(shared, signs))


class Predicted(NamedTuple):
    shares: Floats  # of each row in the readout
    noise: float  # deviation of a position's readout
    error: float  # of these numbers, which are a simulation's


def predicted(strategy: str, rows: Floats, samples: int = 400_000) -> Predicted:
    """What the page says: the slopes of a strategy on normal numbers as correlated as the rows are."""
    rng, count = np.random.default_rng(9), len(rows)
    gram = rows @ rows.T / BITS
    normal = np.linalg.cholesky(gram) @ rng.standard_normal((count, samples))
    made = collude([{"w": each} for each in normal], strategy, rng=rng)["w"]
    beyond = normal @ (made - normal.mean(axis=0)) / samples  # the mean's own part is known exactly
    shares = 1 / count + np.linalg.solve(gram, beyond)
    moment = float((made**2).mean())
    left = moment - float(shares @ gram @ shares)
    error = 2 * (moment / samples) ** 0.5
    return Predicted(shares=shares, noise=max(left, 0.0) ** 0.5 / BLOCKS**0.5, error=error)


def test_the_reference_reads_what_it_writes() -> None:
    rng = np.random.default_rng(1)
    row, shared = rng.choice([-1.0, 1.0], BITS), rng.standard_normal((BLOCKS, BITS))
    for write, read in ((dense, read_dense), (single, read_single)):
        assert read(shared + write(row, key(1)), key(1)) - read(shared, key(1)) == pytest.approx(row)


@pytest.mark.parametrize("colluders", [2, 3, 5, 8])
@pytest.mark.parametrize("strategy", SYMMETRIC)
def test_a_dense_mark_turns_every_symmetric_strategy_into_the_mean(strategy: str, colluders: int) -> None:
    """The mean row at full size; beyond it rows only as far as they are alike; then noise of a known size."""
    found = leak(strategy, colluders, "dense")
    expected = predicted(strategy, found.rows)
    mean, unsure = found.rows.mean(axis=0), expected.noise / BITS**0.5
    assert found.slope == pytest.approx(1, abs=5 * expected.noise / (mean @ mean) ** 0.5 + 5 / BITS)
    assert expected.shares.sum() == pytest.approx(1, abs=3 * colluders * expected.error)
    assert found.shares == pytest.approx(expected.shares, abs=5 * unsure + 3 * expected.error)
    left = (found.readout - found.shares @ found.rows).std()
    if strategy == "mean" or (colluders == 2 and strategy in {"median", "midrange", "modified-negative"}):
        assert left < 1e-9
    else:
        assert left == pytest.approx(expected.noise, rel=5 * (2 * BITS) ** -0.5)


@pytest.mark.parametrize("colluders", [2, 3, 5, 8])
def test_a_mixture_reads_as_its_weights(colluders: int) -> None:
    shares = np.arange(1, colluders + 1) / (colluders * (colluders + 1) / 2)
    assert leak("weighted", colluders, "dense").shares == pytest.approx(shares, abs=1e-9)


@pytest.mark.parametrize("strategy", ["farthest", "modified-negative"])
def test_one_bit_a_weight_lets_a_coalition_choose_the_word(strategy: str) -> None:
    """Five colluders who take the value farthest from the mean write the minority's bit."""
    assert leak(strategy, 5, "dense").slope > 0.9
    assert leak(strategy, 5, "single").slope < 0


@pytest.mark.parametrize("strategy", ["median", "minimum", "maximum", "midrange"])
def test_one_bit_a_weight_turns_the_ends_and_the_middle_into_votes(strategy: str) -> None:
    """Of eight signs the least and the greatest say nearly nothing, the middle one more than the mean."""
    assert leak(strategy, 8, "dense").slope == pytest.approx(1, abs=0.1)
    assert abs(leak(strategy, 8, "single").slope - 1) > 0.5


@pytest.mark.parametrize("gain", [0.0, 0.25, 0.5])
def test_who_knows_the_shared_model_shrinks_the_mark_by_a_gain(gain: float) -> None:
    """Moved towards the shared model, or cut off around it, the mean row stays what is read, but smaller."""
    rng, colluders = np.random.default_rng(3), 3
    signs, shared = key(3), SIGMA * rng.standard_normal((BLOCKS, BITS))
    rows = rng.choice([-1.0, 1.0], (colluders, BITS))
    marks = np.stack([dense(row, signs) for row in rows])
    mean = rows.mean(axis=0)
    pulled = read_dense(shared + gain * marks.mean(axis=0), signs) - read_dense(shared, signs)
    assert pulled == pytest.approx(gain * mean)
    bound = gain * AMPLITUDE * SIGMA
    cut = read_dense(shared + marks.mean(axis=0).clip(-bound, bound), signs) - read_dense(shared, signs)
    found = Found(rows=rows, readout=cut)
    inside = (np.abs(marks.mean(axis=0)) < bound).mean()  # the mean slope of what cuts off
    assert found.slope == pytest.approx(inside, abs=0.02)
    assert found.shares == pytest.approx(np.full(colluders, found.slope / colluders), abs=0.02)


def page_table(title: str) -> dict[str, list[float]]:
    """The numbers of a table of the page, strategy by strategy."""
    page = (Path(__file__).parents[2] / "docs" / "coalitions.md").read_text()
    lines = page[page.index(title) :].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {
        name: [float(cell) for cell in row[1:5]] for row in rows for name in re.findall("`([a-z-]+)`", row[0])
    }


def test_the_noise_is_what_the_page_says() -> None:
    table = page_table("| v at k =")
    assert set(table) == set(SYMMETRIC)
    rng = np.random.default_rng(8)
    for place, colluders in enumerate((2, 3, 5, 8)):
        normal = rng.standard_normal((colluders, 400_000))
        for strategy, values in table.items():
            made = collude([{"w": each} for each in normal], strategy, rng=rng)["w"]
            beyond = (made - normal.mean(axis=0)) ** 2  # independent of the mean, so that the rest is this
            unsure = 5 * float(beyond.std()) / beyond.size**0.5
            assert values[place] == pytest.approx(beyond.mean(), abs=0.005 + unsure)


def test_votes_of_signs_are_what_the_page_says() -> None:
    table = page_table("| strategy | k = 2")
    assert set(table) == set(SYMMETRIC) - {"random-negative"}
    rng = np.random.default_rng(8)
    for place, colluders in enumerate((2, 3, 5, 8)):
        every = np.array(list(product([-1.0, 1.0], repeat=colluders))).T
        columns = np.repeat(every, 2**16 // every.shape[1], axis=1)  # a coin is tossed for each
        mean = columns.mean(axis=0)
        for strategy, values in table.items():
            made = collude([{"w": each} for each in columns], strategy, rng=rng)["w"]
            slope = float(made @ mean / (mean @ mean))
            assert values[place] == pytest.approx(slope, abs=0.005 + 5 * (colluders / mean.size) ** 0.5)


def test_how_far_a_mark_is_from_normal() -> None:
    """Kurtosis 3 - 2/n; the distribution function is off by half of the largest step, 1/sqrt(2 pi n)."""
    for n in (64, 256, 512):
        values = np.arange(-n, n + 1, 2) / n**0.5
        chances = np.array([comb(n, each) / 2**n for each in range(n + 1)])
        assert chances @ values**2 == pytest.approx(1)
        assert chances @ values**4 == pytest.approx(3 - 2 / n)
        below = np.concatenate([[0.0], np.cumsum(chances)])
        normal = np.array([(1 + erf(each / 2**0.5)) / 2 for each in values])
        apart = max(np.abs(below[1:] - normal).max(), np.abs(below[:-1] - normal).max())
        assert apart == pytest.approx((2 * np.pi * n) ** -0.5, rel=2 / n)
    row = np.random.default_rng(4).choice([-1.0, 1.0], BITS)
    marks = dense(row, key(4)) / (AMPLITUDE * SIGMA)
    assert (marks**2).mean() == pytest.approx(1)  # exactly: the transform is orthogonal
    assert (marks**4).mean() == pytest.approx(3 - 2 / BITS, abs=5 * (96 / marks.size) ** 0.5)
