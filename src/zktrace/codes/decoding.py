"""Taking recipients who were already named out of a readout, so that the others can be scored again.

Each colluder's row is noise to the score of the next one. Under the linear channel the readout less its
mean is Σ_j β_j (X_jb - p_b) plus noise, with β_j = 2a/k; the rows that are known are fitted and subtracted.
The result depends on the readout, the biases and the named rows only. If the named rows are colluders',
an innocent's row is as independent of it as of the readout.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from zktrace.codes.biases import Biases
from zktrace.codes.checks import Floats, packed_rows, real_vector
from zktrace.codes.soft import fit_channel
from zktrace.primitives.gf2 import Bits

_RIDGE: Final = 2.0**-30  # of the diagonal: equal rows share their part instead of dividing by zero


def without(values: ArrayLike, biases: Biases, named_rows: Bits) -> Floats:
    """The readout with the named rows (packed, as from `Code.rows`) projected out.

    Weighted least squares of the residual on the columns X_j - p, each coefficient between 0 and 2a and
    all together at most 2a: averaging weights are nonnegative and add up to at most one.
    """
    readout = real_vector(values, biases.length, "the readout")
    rows = packed_rows(named_rows, biases.length)
    channel = fit_channel(readout, biases)
    if channel is None or not len(rows) or channel.slope == 0.0:
        return readout.copy()
    p = biases.probabilities()
    sign = math.copysign(1.0, channel.slope)  # a copy may come back negated
    columns = [bits - p for bits in np.unpackbits(rows, axis=1, count=biases.length).astype(np.float64)]
    shares = _nonnegative_fit(columns, sign * channel.residuals, channel.weights)
    together = math.fsum(shares)
    shrink = min(1.0, 2.0 * abs(channel.slope) / together) if together > 0.0 else 0.0
    part = np.zeros(biases.length)
    for share, column in zip(shares, columns, strict=True):
        part += (sign * shrink * share) * column
    return readout - np.ldexp(part, channel.unit)


def _nonnegative_fit(columns: list[Floats], target: Floats, weights: Floats) -> list[float]:
    """Least squares with nonnegative coefficients: what comes out negative is left out, and again.

    Sums of the normal equations are correctly rounded, so every machine agrees.
    """
    weighted = [weights * column for column in columns]
    gram = [[math.fsum((a * b).tolist()) for b in columns] for a in weighted]
    right = [math.fsum((a * target).tolist()) for a in weighted]
    active = list(range(len(columns)))
    while active:
        found = _solve([[gram[i][j] for j in active] for i in active], [right[i] for i in active])
        kept = [j for j, value in zip(active, found, strict=True) if value > 0.0]
        if len(kept) == len(active):
            values = dict(zip(active, found, strict=True))
            return [values.get(j, 0.0) for j in range(len(columns))]
        active = kept
    return [0.0] * len(columns)


def _solve(gram: list[list[float]], right: list[float]) -> list[float]:
    """Normal equations by elimination; both arguments are used up."""
    size = len(right)
    for i in range(size):
        gram[i][i] += _RIDGE * gram[i][i] + 2.0**-1000
    for i in range(size):  # positive definite: no pivoting
        for j in range(i + 1, size):
            factor = gram[j][i] / gram[i][i]
            gram[j] = [b - factor * a for a, b in zip(gram[i], gram[j], strict=True)]
            right[j] -= factor * right[i]
    solution = [0.0] * size
    for i in reversed(range(size)):
        known = math.fsum(gram[i][j] * solution[j] for j in range(i + 1, size))
        solution[i] = (right[i] - known) / gram[i][i]
    return solution
