"""Coefficients of a linear score, and the exact number a row scores.

Every score of this package is S_i = Σ_b c_b (X_ib - p_b). Here c_b = C_b/2^s with whole C_b, and
p_b = T_b/2^32, so that with the whole number L_i = Σ_b C_b X_ib

    S_i = (2^32 L_i - Σ_b C_b T_b) / 2^(s + 32),

exactly. Scores are compared, ranked and certified as these integers; floats are for people.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.codes.biases import BIAS_BITS, ONE, Biases
from zktrace.codes.checks import Floats, real_vector, whole
from zktrace.errors import InputError

Integers = NDArray[np.int64]

SCALE_BITS: Final = 8  # coefficients in steps of 1/256,
_FULL_SCALE: Final = 1 << 11  # up to so many positions: a longer code has a bit less for each doubling
SCALE_LIMIT: Final = 24
SUM_LIMIT: Final = 1 << 31  # Σ|C_b| stays below, so 2^32 L and its difference to Σ C T fit 64 bits


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """c_b = C_b/2^s for the positions of `biases`."""

    numerators: Integers  # C, read-only
    scale_bits: int  # s
    biases: Biases

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "scale_bits", whole(self.scale_bits, "the scale of coefficients", 0, SCALE_LIMIT)
        )
        given = np.asarray(self.numerators)
        if given.dtype.kind not in "iu" or given.shape != (self.biases.length,):
            raise InputError(f"numerators must be {self.biases.length} integers")
        if sum(abs(number) for number in given.tolist()) >= SUM_LIMIT:
            raise InputError("the numerators' magnitudes add up to 2^31 or more: use a smaller scale")
        kept = given.astype(np.int64)
        kept.flags.writeable = False
        object.__setattr__(self, "numerators", kept)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Coefficients):
            return NotImplemented
        same = np.array_equal(self.numerators, other.numerators)
        return same and self.scale_bits == other.scale_bits and self.biases == other.biases

    def __hash__(self) -> int:
        return hash((self.scale_bits, self.numerators.tobytes(), self.biases))

    @cached_property
    def offset(self) -> int:
        """Σ_b C_b T_b."""
        return int(np.dot(self.numerators, self.biases.thresholds.astype(np.int64)))

    @property
    def denominator(self) -> int:
        """2^(s + 32): scores are whole multiples of its inverse."""
        return 1 << (self.scale_bits + BIAS_BITS)

    def values(self) -> Floats:
        """c_b in float64, without error."""
        return np.ldexp(self.numerators.astype(np.float64), -self.scale_bits)

    def score(self, total: int) -> Fraction:
        """The score of a row with L = total, exactly."""
        return Fraction(ONE * int(total) - self.offset, self.denominator)

    def scores_float(self, totals: Integers) -> Floats:
        """The scores of rows with L = totals, each the float64 nearest to the exact score."""
        wide: Integers = np.asarray(totals, dtype=np.int64)
        if wide.size and int(np.abs(wide).max()) >= SUM_LIMIT:
            raise InputError("a sum beyond 2^31 belongs to no row")
        exact: Integers = (wide << BIAS_BITS) - self.offset
        return np.ldexp(exact.astype(np.float64), -self.scale_bits - BIAS_BITS)

    def variance(self) -> Fraction:
        """Σ c_b² p_b (1 - p_b), the variance of an innocent's score given the coefficients (`lem:innoc`)."""
        pairs = zip(self.numerators.tolist(), self.biases.thresholds.tolist(), strict=True)
        return Fraction(sum(c * c * t * (ONE - t) for c, t in pairs), self.denominator**2)

    def negated(self) -> "Coefficients":
        """-c_b: the same score for the other tail."""
        return Coefficients(numerators=-self.numerators, scale_bits=self.scale_bits, biases=self.biases)


def usual_scale(length: int) -> int:
    """s of a code's scores: the law of a long sum is computed on a coarser lattice, at next to no cost."""
    return max(0, SCALE_BITS - max(0, ((length - 1) // _FULL_SCALE).bit_length()))


def quantise(values: ArrayLike, biases: Biases, *, scale_bits: int | None = None) -> Coefficients:
    """The nearest multiples of 2^-scale_bits (the usual scale of the length), ties to even."""
    wanted_bits = usual_scale(biases.length) if scale_bits is None else scale_bits
    scale = whole(wanted_bits, "the scale of coefficients", 0, SCALE_LIMIT)
    wanted = real_vector(values, biases.length, "coefficients")
    if np.abs(wanted).max() >= SUM_LIMIT:
        raise InputError("a coefficient of 2^31 or more")
    steps = np.rint(np.ldexp(wanted, scale))
    return Coefficients(numerators=steps.astype(np.int64), scale_bits=scale, biases=biases)


def symmetric(word: ArrayLike, biases: Biases, *, scale_bits: int | None = None) -> Coefficients:
    """The symmetric Tardos score of a decoded word (`eq:U-def`): c_b = (2 y_b - 1)/√(p_b (1 - p_b))."""
    bits = np.asarray(word)
    if bits.shape != (biases.length,) or bits.dtype.kind not in "iub":
        raise InputError(f"a word of this code is {biases.length} bits")
    if not ((bits == 0) | (bits == 1)).all():
        raise InputError("a word has bits 0 and 1 only")
    p = biases.probabilities()
    weights = 1.0 / np.sqrt(p * (1.0 - p))
    return quantise(np.where(bits == 1, weights, -weights), biases, scale_bits=scale_bits)
