"""What a coalition can make of its rows, for analysis and tests.

A strategy takes the (k, n) matrix of the colluders' bits and returns one word. The marking assumption
holds for each: where all colluders have the same bit, the word has it. Randomness is an argument.
"""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from zktrace.codes.biases import cutoff
from zktrace.codes.checks import Floats
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits

Strategy = Callable[[ArrayLike, Generator], Bits]  # unpacked: one byte a bit
Counts = NDArray[np.int64]

_NODES: Final = 256  # of the quadrature over the bias


def _columns(rows: ArrayLike) -> tuple[Bits, Counts]:
    """The matrix, and the number of ones in each column."""
    matrix = np.asarray(rows)
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "iub":
        raise InputError("colluders' rows are a (k, n) matrix of bits, one byte a bit")
    if not ((matrix == 0) | (matrix == 1)).all():
        raise InputError("colluders' rows have bits 0 and 1 only")
    bits = matrix.astype(np.uint8)
    return bits, bits.sum(axis=0, dtype=np.int64)


def _marked(rows: Bits, ones: Counts, choice: ArrayLike) -> Bits:
    """`choice` where the colluders differ, their common bit elsewhere."""
    mixed = (ones > 0) & (ones < len(rows))
    word: Bits = np.where(mixed, choice, ones > 0).astype(np.uint8)
    return word


def majority(rows: ArrayLike, rng: Generator) -> Bits:
    """The sign of the average; a coin decides a tie."""
    bits, ones = _columns(rows)
    coin = rng.integers(0, 2, bits.shape[1])
    return _marked(bits, ones, np.where(2 * ones == len(bits), coin, 2 * ones > len(bits)))


def minority(rows: ArrayLike, rng: Generator) -> Bits:
    """The bit that fewer colluders have; a coin decides a tie."""
    bits, ones = _columns(rows)
    coin = rng.integers(0, 2, bits.shape[1])
    return _marked(bits, ones, np.where(2 * ones == len(bits), coin, 2 * ones < len(bits)))


def interleaving(rows: ArrayLike, rng: Generator) -> Bits:
    """At each position the bit of a colluder drawn anew."""
    bits, _ = _columns(rows)
    who = rng.integers(0, len(bits), bits.shape[1])
    word: Bits = bits[who, np.arange(bits.shape[1])]
    return word


def all_ones(rows: ArrayLike, rng: Generator) -> Bits:
    """One wherever some colluder has a one."""
    bits, ones = _columns(rows)
    return _marked(bits, ones, 1)


def all_zeros(rows: ArrayLike, rng: Generator) -> Bits:
    """Zero wherever some colluder has a zero."""
    bits, ones = _columns(rows)
    return _marked(bits, ones, 0)


def coin_flip(rows: ArrayLike, rng: Generator) -> Bits:
    """A coin wherever the colluders differ."""
    bits, ones = _columns(rows)
    return _marked(bits, ones, rng.integers(0, 2, bits.shape[1]))


STRATEGIES: Final[dict[str, Strategy]] = {
    "majority": majority,
    "minority": minority,
    "interleaving": interleaving,
    "all-ones": all_ones,
    "all-zeros": all_zeros,
    "coin-flip": coin_flip,
}


def worst_case(rows: ArrayLike, *, colluders: int, tilt: float, flip: float = 0.0) -> Bits:
    """The word of `thm:finite-completeness`: in each column the output with the larger integral in J_s(t, q).

    `colluders` is c of the code, `tilt` is t, `flip` is q. Of equal integrals (2k = s) zero is taken.
    """
    bits, ones = _columns(rows)
    if not (math.isfinite(tilt) and tilt > 0.0):
        raise InputError(f"the tilt must be positive and finite, not {tilt}")
    if not 0.0 <= flip <= 0.5:
        raise InputError(f"the flip rate must lie in [0, 1/2], not {flip}")
    p, weights = _quadrature(colluders)
    size = len(bits)
    choice = np.zeros(size + 1, dtype=np.uint8)
    for k in range(1, size):
        score = (k - size * p) / np.sqrt(p * (1.0 - p))
        chance = weights * p**k * (1.0 - p) ** (size - k)
        up, down = np.exp(tilt * score), np.exp(-tilt * score)
        said_one = float(chance @ ((1.0 - flip) * down + flip * up))
        said_zero = float(chance @ ((1.0 - flip) * up + flip * down))
        choice[k] = 2 * k != size and said_one > said_zero
    return _marked(bits, ones, choice[ones])


def _quadrature(colluders: int) -> tuple[Floats, Floats]:
    """Biases and weights for means under the density of the paper, which is constant in the angle."""
    x, weights = np.polynomial.legendre.leggauss(_NODES)
    first = math.asin(math.sqrt(cutoff(colluders)))
    angles = first + (math.pi / 2 - 2 * first) * (x + 1) / 2
    return np.sin(angles) ** 2, weights / 2


def lowering(rows: ArrayLike, word: ArrayLike, biases: ArrayLike) -> Bits:
    """`word`, steered by the colluders' own scores: where they differ, one position after the other takes the
    symbol that leaves the greatest of their symmetric scores (`eq:U-def`) the least.

    `biases` are what the coalition takes for the code's. Elsewhere the word stays; of equal symbols too.
    """
    bits, ones = _columns(rows)
    steered: Bits = _columns(np.asarray(word)[None, ...])[0][0].copy()
    p = np.asarray(biases, dtype=np.float64)
    if p.shape != steered.shape or len(steered) != bits.shape[1] or not ((p > 0.0) & (p < 1.0)).all():
        raise InputError(f"steering takes {bits.shape[1]} symbols, and as many biases between 0 and 1")
    steps = (bits - p) / np.sqrt(p * (1.0 - p))  # what a one adds to each score
    mixed = (ones > 0) & (ones < len(bits))
    scores = steps[:, ~mixed] @ (2.0 * steered[~mixed] - 1.0)
    for at in np.flatnonzero(mixed):
        step = steps[:, at]
        one, zero = (scores + step).max(), (scores - step).max()
        if one != zero:
            steered[at] = one < zero
        scores += step if steered[at] else -step
    return steered


def guessed_biases(rows: ArrayLike) -> Floats:
    """What a coalition may take for the biases: of m ones among k colluders, (m + 1/2) / (k + 1).

    It is the mean that is left of the density of the paper, whose cutoff is left out.
    """
    bits, ones = _columns(rows)
    guessed: Floats = ((ones + 0.5) / (len(bits) + 1.0)).astype(np.float64)
    return guessed


def flip(word: ArrayLike, rate: float, rng: Generator) -> Bits:
    """The word after independent flips with probability `rate`."""
    bits, _ = _columns(np.asarray(word)[None, ...])
    if not 0.0 <= rate <= 1.0:
        raise InputError(f"the flip rate must lie in [0, 1], not {rate}")
    hit = rng.random((bits.shape[1],)) < rate
    flipped: Bits = bits[0] ^ hit.astype(np.uint8)
    return flipped


def linear_channel(rows: ArrayLike, noise: float, rng: Generator) -> Floats:
    """A real-valued readout of averaged copies: mean_j (2 X_j - 1) plus `noise` times standard normals."""
    bits, ones = _columns(rows)
    if not (math.isfinite(noise) and noise >= 0.0):
        raise InputError(f"the noise must be finite and not negative, not {noise}")
    readout: Floats = 2.0 * ones / len(bits) - 1.0 + noise * rng.standard_normal(bits.shape[1])
    return readout
