"""Biases as exact rationals T/2^32 (`def:overlay`), and what else, beside a key, makes a code.

`laws` draws them. Whatever the law, a bias is rounded to a multiple of 2^-32; from then on that rational
*is* the bias.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.codes.checks import Floats, whole
from zktrace.errors import InputError

Thresholds = NDArray[np.uint32]

BIAS_BITS: Final = 32
ONE: Final = 1 << BIAS_BITS  # the bias 1, which no position has
LENGTH_LIMIT: Final = 1 << 20  # positions
COLLUDERS_LIMIT: Final = 1 << 16
_LABEL_LIMIT: Final = 255  # bytes
_CUTOFF_COEFFICIENT: Final = 300


def cutoff(colluders: int) -> Fraction:
    """δ_c = 1/(300c): biases lie in [δ_c, 1 - δ_c]."""
    c = whole(colluders, "the coalition size of a code", 2, COLLUDERS_LIMIT)
    return Fraction(1, _CUTOFF_COEFFICIENT * c)


def threshold_range(colluders: int) -> tuple[int, int]:
    """The least and the greatest T with T/2^32 in [δ_c, 1 - δ_c]."""
    low = -(-ONE // cutoff(colluders).denominator)
    return low, ONE - low


@dataclass(frozen=True, kw_only=True, eq=False)
class Biases:
    """p_b = T_b/2^32 of every position, and the coalition size whose cutoff they keep."""

    thresholds: Thresholds  # T, read-only
    colluders: int  # c

    def __post_init__(self) -> None:
        low, high = threshold_range(self.colluders)
        given = np.asarray(self.thresholds)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InputError("thresholds must be one row of integers")
        whole(len(given), "the length of a code", 1, LENGTH_LIMIT)
        outside = (given < low) | (given > high)
        if outside.any():
            at = int(np.argmax(outside))
            limit = cutoff(self.colluders)
            raise InputError(f"the bias {int(given[at])}/2^32 of position {at} is beyond the cutoff {limit}")
        kept = given.astype(np.uint32)
        kept.flags.writeable = False
        object.__setattr__(self, "thresholds", kept)
        object.__setattr__(self, "colluders", int(self.colluders))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Biases):
            return NotImplemented
        same = np.array_equal(self.thresholds, other.thresholds)
        return self.colluders == other.colluders and same

    def __hash__(self) -> int:
        return hash((self.colluders, self.thresholds.tobytes()))

    @property
    def length(self) -> int:
        """n_t, the number of positions."""
        return len(self.thresholds)

    @property
    def vary(self) -> bool:
        """Whether positions differ in their bias: under a fair law none does, and a readout has no slope."""
        return bool((self.thresholds != self.thresholds[0]).any())

    def probabilities(self) -> Floats:
        """p_b in float64, without error: T has 32 bits."""
        return self.thresholds / float(ONE)

    def fractions(self) -> list[Fraction]:
        """p_b as rational numbers."""
        return [Fraction(threshold, ONE) for threshold in self.thresholds.tolist()]


def identity(label: str, length: int, colluders: int) -> tuple[bytes, bytes, bytes]:
    """What, beside key and law, makes a code, as bytes; InputError if it makes none."""
    if not isinstance(label, str):
        raise InputError(f"the label of a code is text, not {label!r}")
    try:
        name = label.encode()
    except UnicodeEncodeError:
        raise InputError("the label of a code is not valid Unicode") from None
    if not 1 <= len(name) <= _LABEL_LIMIT:
        raise InputError(f"the label of a code has 1..{_LABEL_LIMIT} bytes, not {len(name)}")
    positions = whole(length, "the length of a code", 1, LENGTH_LIMIT)
    size = cutoff(colluders).denominator // _CUTOFF_COEFFICIENT
    return name, positions.to_bytes(8, "big"), size.to_bytes(8, "big")
