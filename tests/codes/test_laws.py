"""Laws of biases: published values, the same integers everywhere, and what a position is worth."""

import math

import numpy as np
import pytest
from flint import ctx
from numpy.polynomial import legendre

from support import seeded
from zktrace.codes import LAWS, Code, CodeKey, Law, draw
from zktrace.codes.laws import NUIDA_LIMIT, _nuida
from zktrace.errors import InputError

PUBLISHED = {  # Nuida et al., Des. Codes Cryptogr. 52 (2009), table of c-indistinguishable distributions
    2: ([0.50000], [1.00000]),
    4: ([0.21132, 0.78868], [0.50000, 0.50000]),
    6: ([0.11270, 0.50000, 0.88730], [0.33201, 0.33598, 0.33201]),
    8: ([0.06943, 0.33001, 0.66999, 0.93057], [0.24833, 0.25167, 0.25167, 0.24833]),
}


def seed(label: str) -> bytes:
    return seeded(label)(32)


def law_of(colluders: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and probabilities of the drawn integers."""
    points, ends = _nuida(colluders)
    whole = [0, *ends.tolist(), 2**64]
    return points / 2**32, np.diff([end / 2**64 for end in whole])


@pytest.mark.parametrize("colluders", [2, 3, 4, 5, 6, 7, 8])
def test_points_and_weights_are_the_published_ones(colluders: int) -> None:
    points, weights = law_of(colluders)
    wanted = PUBLISHED[2 * math.ceil(colluders / 2)]
    assert np.abs(points - wanted[0]).max() < 1e-5
    assert np.abs(weights - wanted[1]).max() < 1e-5


@pytest.mark.parametrize("colluders", [9, 20, 64])
def test_points_and_weights_are_those_of_the_formula(colluders: int) -> None:
    """(p (1 - p))^(-3/2) / L'(p)^2 at the roots of the shifted Legendre polynomial, in plain floats."""
    degree = math.ceil(colluders / 2)
    polynomial = legendre.Legendre.basis(degree)
    x = np.sort(legendre.leggauss(degree)[0])
    p = (1 + x) / 2
    weights = (p * (1 - p)) ** -1.5 / polynomial.deriv()(x) ** 2
    points, found = law_of(colluders)
    assert np.abs(points - p).max() < 1e-9
    assert np.abs(found - weights / weights.sum()).max() < 1e-9


def test_words_of_up_to_c_colluders_look_alike() -> None:
    """c-indistinguishable: E[p^x (1-p)^(l-x) ((x/p - (l-x)/(1-p)) √(p (1-p)))] has the same sign-free value.

    For every 0 < x < l <= c the expectation of p^x (1-p)^(l-x) (x/p - (l-x)/(1-p)) √(p(1-p)) is 0.
    """
    for colluders in (3, 5, 8):
        p, weights = law_of(colluders)
        for size in range(2, colluders + 1):
            for ones in range(1, size):
                slope = ones / p - (size - ones) / (1 - p)
                value = weights @ (p**ones * (1 - p) ** (size - ones) * slope * np.sqrt(p * (1 - p)))
                assert abs(value) < 1e-8


def test_the_draw_follows_the_weights() -> None:
    found = draw(seed("nuida"), 40_000, 6, "nuida").thresholds
    points, _ = _nuida(6)
    shares = np.array([(found == point).mean() for point in points])
    assert np.abs(shares - PUBLISHED[6][1]).max() < 0.012  # five deviations
    assert set(found.tolist()) == set(points.tolist())


def test_a_fair_bias_is_one_half_exactly() -> None:
    found = draw(seed("fair"), 33, 5, "fair")
    assert found.thresholds.tolist() == [2**31] * 33
    assert found.colluders == 5


@pytest.mark.parametrize("law", LAWS)
def test_a_longer_code_begins_with_a_shorter_one(law: Law) -> None:
    short, long = draw(seed("prefix"), 100, 5, law), draw(seed("prefix"), 300, 5, law)
    assert long.thresholds[:100].tolist() == short.thresholds.tolist()


@pytest.mark.parametrize("bits", [2, 53, 500])
def test_the_working_precision_does_not_matter(bits: int) -> None:
    _nuida.cache_clear()
    draw.cache_clear()
    with ctx.workprec(bits):
        found = draw(seed("precision"), 64, 7, "nuida")
        assert ctx.prec == bits
    _nuida.cache_clear()
    draw.cache_clear()
    assert found == draw(seed("precision"), 64, 7, "nuida")


def test_codes_of_different_laws_are_different_codes() -> None:
    codes = [
        Code(key=CodeKey.generate(entropy=seeded("key")), label="weight", length=64, colluders=4, law=law)
        for law in LAWS
    ]
    assert len({code.fingerprint for code in codes}) == len(LAWS)
    assert len({code.biases for code in codes}) == len(LAWS)
    assert len({code.bias_seed for code in codes}) == 1
    fair = codes[LAWS.index("fair")].rows(range(200))
    assert abs(np.unpackbits(fair, axis=1).mean() - 0.5) < 0.025


def test_what_is_no_law_is_refused() -> None:
    with pytest.raises(InputError, match="unknown law 'arcsine'"):
        draw(seed("no"), 16, 2, "arcsine")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"2..{NUIDA_LIMIT}"):
        draw(seed("no"), 16, NUIDA_LIMIT + 1, "nuida")
    draw(seed("no"), 2000, NUIDA_LIMIT, "nuida")  # within the cutoff
    with pytest.raises(InputError, match="unknown law"):
        Code(key=CodeKey.generate(entropy=seeded("key")), label="w", length=8, colluders=2, law="x")  # type: ignore[arg-type]
