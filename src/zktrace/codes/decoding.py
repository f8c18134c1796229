"""Taking recipients who were already named out of a readout, so that the others can be scored again.

Each colluder's row is noise to the score of the next one. Under the linear channel the readout less its
mean is Σ_j β_j (X_jb - p_b) plus noise, with β_j = 2a/k; the rows that are known are fitted and subtracted.
The result depends on the readout, the biases and the named rows only. If the named rows are colluders',
an innocent's row is as independent of it as of the readout.

Every machine gets the same bits, also for hundreds of rows: weights are rounded to so few bits that every
partial sum of a product of matrices is a whole number below 2^53, and whatever else is added up is rounded
once.
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
_EXACT_BITS: Final = 52  # of a sum of whole numbers in float64
_NO_PIVOT: Final = 2.0**-31  # of the diagonal: a row that those before it make up already


def without(values: ArrayLike, biases: Biases, named_rows: Bits) -> Floats:
    """The readout with the named rows (packed, as from `Code.rows`) projected out.

    Weighted least squares of the residual on the columns X_j - p, each coefficient between 0 and 2a and
    all together at most 2a: averaging weights are nonnegative and add up to at most one. Biases that do not
    vary tell nothing of a; then they are nonnegative only.
    """
    readout = real_vector(values, biases.length, "the readout")
    rows = packed_rows(named_rows, biases.length)
    channel = fit_channel(readout, biases)
    if channel is None or not len(rows) or (channel.slope == 0.0 and biases.vary):
        return readout.copy()
    sign = math.copysign(1.0, channel.slope)  # a copy may come back negated
    bits = np.unpackbits(rows, axis=1, count=biases.length)
    shares = _nonnegative_fit(bits, biases, sign * channel.residuals, channel.weights)
    together = math.fsum(shares)
    shrink = min(1.0, 2.0 * abs(channel.slope) / together) if biases.vary and together > 0.0 else 1.0
    p = biases.probabilities()
    part = np.zeros(biases.length)
    for share, row in zip(shares, bits, strict=True):
        part += (sign * shrink * share) * (row - p)
    return readout - np.ldexp(part, channel.unit)


def _nonnegative_fit(bits: Bits, biases: Biases, target: Floats, weights: Floats) -> list[float]:
    """Least squares with nonnegative coefficients: what comes out negative is left out, and again."""
    gram, right = _normal_equations(bits.astype(np.float64), biases.probabilities(), target, weights)
    active = np.arange(len(bits))
    while len(active):
        found = _solve(gram[np.ix_(active, active)], right[active])
        kept = active[found > 0.0]
        if len(kept) == len(active):
            shares = np.zeros(len(bits))
            shares[active] = found
            return shares.tolist()
        active = kept
    return [0.0] * len(bits)


def _normal_equations(bits: Floats, p: Floats, target: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Σ_b w_b (X_ib - p_b)(X_jb - p_b), and Σ_b w_b (X_jb - p_b) t_b, in whole units of the weights."""
    power = _EXACT_BITS - len(p).bit_length() - math.frexp(float(weights.max()))[1]
    whole = np.rint(np.ldexp(weights, power))
    both: Floats = (bits * whole) @ bits.T  # whole numbers below 2^53, in whatever order they are added
    aside, pull = whole * p, whole * target
    once = _sums(bits, aside)
    gram = both - (once[:, None] + once[None, :]) + math.fsum((aside * p).tolist())
    return gram, _sums(bits, pull) - math.fsum((pull * p).tolist())


def _sums(bits: Floats, terms: Floats) -> Floats:
    """Σ_b X_jb t_b of every row, each rounded once."""
    return np.array([math.fsum((row * terms).tolist()) for row in bits])


def _solve(gram: Floats, right: Floats) -> Floats:
    """Normal equations by elimination, entry by entry; a row that is not needed has 0."""
    size = len(right)
    diagonal = gram.diagonal().copy()
    gram[np.arange(size), np.arange(size)] += _RIDGE * diagonal
    used = np.zeros(size, dtype=bool)
    for i in range(size):  # positive definite: no pivoting
        used[i] = gram[i, i] > _NO_PIVOT * diagonal[i]
        if used[i]:
            factors = gram[i + 1 :, i] / gram[i, i]
            gram[i + 1 :, i:] -= factors[:, None] * gram[i, i:]
            right[i + 1 :] -= factors * right[i]
    solution = np.zeros(size)
    for i in np.flatnonzero(used)[::-1]:
        known = math.fsum((gram[i, i + 1 :] * solution[i + 1 :]).tolist())
        solution[i] = (right[i] - known) / gram[i, i]
    return solution
