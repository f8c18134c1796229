"""From the values that a carrier reads to scores of rows."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.codes.biases import ONE, Biases
from zktrace.codes.coefficients import Coefficients, symmetric
from zktrace.codes.scores import sums
from zktrace.codes.soft import soft

HARD: Final = "paper"  # the rule that scores signs; any other one scores values


def coefficients_of(values: NDArray[np.float64], biases: Biases, rule: str) -> Coefficients:
    """What rows are scored with at the first stage."""
    if rule == HARD:
        return symmetric((values > 0).astype(np.uint8), biases)
    return soft(values, biases)


def floats(found: NDArray[np.int64], coefficients: Coefficients) -> NDArray[np.float64]:
    """S of everybody, for people: `Coefficients.score` in 64 bits, which hold it."""
    exact: NDArray[np.int64] = found * ONE - coefficients.offset
    return exact / float(coefficients.denominator)


def deviations(
    values: NDArray[np.float64], biases: Biases, rows: NDArray[np.uint8], rule: str
) -> NDArray[np.float64]:
    """Scores of packed rows in standard deviations of an innocent's: about normal for one (`lem:innoc`)."""
    coefficients = coefficients_of(values, biases, rule)
    p = biases.probabilities()
    c = coefficients.numerators / float(1 << coefficients.scale_bits)
    spread = float(np.sqrt((c * c * p * (1.0 - p)).sum()))
    found = floats(sums(rows, coefficients), coefficients)
    return found / spread if spread else np.zeros(len(found))
