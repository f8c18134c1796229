"""Coefficients: a score is an exact number, and the symmetric score is the paper's."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import seeded
from zktrace.codes import Biases, Code, CodeKey, Coefficients, quantise, sums, symmetric, unpack
from zktrace.errors import InputError

KEY = CodeKey.generate(entropy=seeded("coefficients"))
CODE = Code(key=KEY, label="coefficients", length=512, colluders=2)
BIASES = CODE.biases
HALF = Biases(thresholds=np.full(3, 2**31), colluders=2)


def random_word(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, 512)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-(2**20), 2**20), st.integers(7_158_279, 2**32 - 7_158_279), st.booleans()),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 24),
)
def test_a_score_is_exact(positions: list[tuple[int, int, bool]], scale: int) -> None:
    """S = Σ c (X - p) in rational numbers, against the integer formula; its float is the nearest one."""
    c, t, x = (list(column) for column in zip(*positions, strict=True))
    biases = Biases(thresholds=np.array(t), colluders=2)
    coefficients = Coefficients(numerators=np.array(c), scale_bits=scale, biases=biases)
    exact = sum(
        (Fraction(ci, 2**scale) * (int(xi) - Fraction(ti, 2**32)) for ci, ti, xi in positions_of(c, t, x)),
        Fraction(0),
    )
    total = sum(ci for ci, xi in zip(c, x, strict=True) if xi)
    assert coefficients.score(total) == exact
    assert coefficients.scores_float(np.array([total]))[0] == float(exact)
    assert coefficients.negated().score(-total) == -exact
    variance = sum(
        Fraction(ci, 2**scale) ** 2 * Fraction(ti, 2**32) * (1 - Fraction(ti, 2**32))
        for ci, ti in zip(c, t, strict=True)
    )
    assert coefficients.variance() == variance


def positions_of(*columns: list) -> list[tuple]:
    return list(zip(*columns, strict=True))


def test_scores_stay_exact_at_the_limit() -> None:
    """2^32 L - Σ C T just below 2^63."""
    biases = Biases(thresholds=np.full(1, 7_158_279), colluders=2)
    coefficients = Coefficients(numerators=np.array([2**31 - 1]), scale_bits=0, biases=biases)
    for total in (0, 2**31 - 1):
        assert coefficients.scores_float(np.array([total]))[0] == float(coefficients.score(total))
    assert coefficients.negated().score(0) == -coefficients.score(0)
    with pytest.raises(InputError, match="belongs to no row"):
        coefficients.scores_float(np.array([2**31]))


@given(st.floats(-1000, 1000), st.integers(0, 16))
def test_rounding_is_to_nearest_and_ties_to_even(value: float, scale: int) -> None:
    found = quantise([value, 0.0, 1.0], HALF, scale_bits=scale)
    assert found.numerators.tolist() == [round(Fraction(value) * 2**scale), 0, 2**scale]
    assert found.values()[0] == found.numerators[0] / 2**scale


def test_ties() -> None:
    assert quantise([0.5, 1.5, -2.5], HALF, scale_bits=0).numerators.tolist() == [0, 2, -2]


@pytest.mark.parametrize(
    ("values", "scale", "reason"),
    [
        ([0, math.nan, 0], 8, "position 1 is not"),
        ([0, 0, math.inf], 8, "position 2 is not"),
        ([0, 0], 8, r"shape \(3,\)"),
        (["a", 0, 0], 8, "real numbers"),
        ([1j, 0, 0], 8, "real numbers"),
        ([2.0**31, 0, 0], 0, "2\\^31 or more"),
        ([1e300, 0, 0], 8, "2\\^31 or more"),
        ([2.0**22, 2.0**22, 1.0], 8, "use a smaller scale"),
        ([0, 0, 0], -1, "scale"),
        ([0, 0, 0], 25, "scale"),
    ],
)
def test_values_that_cannot_be_coefficients(values: list, scale: int, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        quantise(values, HALF, scale_bits=scale)


@pytest.mark.parametrize("numerators", [[1, 2], [1.0, 2.0, 3.0], [[1, 2, 3]]])
def test_numerators_that_cannot_be(numerators: list) -> None:
    with pytest.raises(InputError, match="3 integers"):
        Coefficients(numerators=np.array(numerators), scale_bits=8, biases=HALF)


def test_coefficients_are_frozen_values() -> None:
    one, same = quantise([1, 2, 3], HALF), quantise([1, 2, 3], HALF)
    assert one == same
    assert hash(one) == hash(same)
    assert one != quantise([1, 2, 3], HALF, scale_bits=9)
    assert one != one.negated()
    assert one.negated().negated() == one
    with pytest.raises(ValueError, match="read-only"):
        one.numerators[0] = 5


# ── the symmetric score, `eq:U-def` ────────────────────────────────────────────────────────────────────────


def test_the_symmetric_score_is_the_papers_up_to_rounding() -> None:
    word = random_word(1)
    p = BIASES.probabilities()
    paper = (2 * word - 1) / np.sqrt(p * (1 - p))
    found = symmetric(word, BIASES)
    assert np.abs(found.values() - paper).max() <= 1 / 512 + 1e-12
    finer = symmetric(word, BIASES, scale_bits=16)
    assert np.abs(finer.values() - paper).max() <= 2.0**-17 + 1e-12


def test_antisymmetry() -> None:
    """U(x, 1 - y, p) = -U(x, y, p), `eq:antisym`, exactly: rounding is symmetric."""
    word = random_word(2)
    assert symmetric(1 - word, BIASES) == symmetric(word, BIASES).negated()


def test_no_position_scores_more_than_b() -> None:
    """|U| <= B = √((1 - δ)/δ), up to the rounding of a coefficient."""
    c, p = symmetric(random_word(3), BIASES).values(), BIASES.probabilities()
    largest = np.maximum(np.abs(c) * (1 - p), np.abs(c) * p)
    assert largest.max() <= math.sqrt(599) + 1 / 512
    edge = Biases(thresholds=np.array([7_158_279, 2**32 - 7_158_279]), colluders=2)
    for y in (0, 1):
        assert abs(symmetric([y, y], edge).values()[0]) * (1 - 1 / 600) <= math.sqrt(599) + 1 / 512


@pytest.mark.parametrize("kind", ["random", "zeros", "ones", "row"])
def test_an_innocents_moments_do_not_depend_on_the_word(kind: str) -> None:
    """`lem:innoc`: mean 0 and variance n; the variance is also exact in `variance`, up to rounding."""
    words = {
        "random": random_word(4),
        "zeros": np.zeros(512, dtype=int),
        "ones": np.ones(512, dtype=int),
        "row": unpack(CODE.rows([100_000])[0], 512),
    }
    coefficients = symmetric(words[kind], BIASES)
    assert float(coefficients.variance()) == pytest.approx(512, rel=2e-3)
    count = 20_000
    scores = np.concatenate(
        [coefficients.scores_float(sums(block, coefficients)) for block in CODE.blocks(0, count, 5_000)]
    )
    assert abs(scores.mean()) < 4 * math.sqrt(512 / count)
    assert scores.var() == pytest.approx(512, rel=0.06)


@pytest.mark.parametrize("word", [[0] * 511, [2] + [0] * 511, [0.0] * 512, [[0] * 512], ["0"] * 512])
def test_what_is_not_a_word(word: list) -> None:
    with pytest.raises(InputError, match="word"):
        symmetric(word, BIASES)
