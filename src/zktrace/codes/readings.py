"""From the values that a carrier reads to scores of rows."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.codes.biases import ONE, Biases
from zktrace.codes.blind import blind
from zktrace.codes.checks import Floats
from zktrace.codes.coefficients import Coefficients, symmetric
from zktrace.codes.decoding import without
from zktrace.codes.scores import sums
from zktrace.codes.soft import soft
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits


def _hard(values: Floats, biases: Biases, _named: Bits) -> Coefficients:
    return symmetric((values > 0).astype(np.uint8), biases)


def _soft(values: Floats, biases: Biases, named: Bits) -> Coefficients:
    return soft(without(values, biases, named) if len(named) else values, biases)


_SCORES: Final[Mapping[str, Callable[[Floats, Biases, Bits], Coefficients]]] = {
    "hard": _hard,  # signs alone, as in the paper; nobody is taken out
    "soft": _soft,  # the linear channel; named rows are projected out
    "map": blind,  # an estimated channel; named rows are known
}


def coefficients_of(
    values: Floats, biases: Biases, score: str, named_rows: Bits | None = None
) -> Coefficients:
    """What rows are scored with, once these rows (packed, as from `Code.rows`) are named."""
    if score not in _SCORES:
        raise InputError(f"no score {score!r}: {', '.join(_SCORES)}")
    nobody = np.empty((0, -(-biases.length // 8)), dtype=np.uint8)
    return _SCORES[score](values, biases, nobody if named_rows is None else named_rows)


def floats(found: NDArray[np.int64], coefficients: Coefficients) -> NDArray[np.float64]:
    """S of everybody, for people: `Coefficients.score` in 64 bits, which hold it."""
    exact: NDArray[np.int64] = found * ONE - coefficients.offset
    return exact / float(coefficients.denominator)


def deviations(
    values: NDArray[np.float64], biases: Biases, rows: NDArray[np.uint8], rule: str
) -> NDArray[np.float64]:
    """Scores of packed rows in standard deviations of an innocent's: about normal for one (`lem:innoc`)."""
    coefficients = coefficients_of(values, biases, "hard" if rule == "paper" else "soft")
    p = biases.probabilities()
    c = coefficients.numerators / float(1 << coefficients.scale_bits)
    spread = float(np.sqrt((c * c * p * (1.0 - p)).sum()))
    found = floats(sums(rows, coefficients), coefficients)
    return found / spread if spread else np.zeros(len(found))
