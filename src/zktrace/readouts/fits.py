"""Linear maps between tables of numbers, one row an image, by least squares."""

import numpy as np

from zktrace.readouts.directions import Floats


def ridge(given: Floats, wanted: Floats, *, pull: float) -> Floats:
    """(X'X + pull v I)^-1 X'Y with v the mean of the diagonal of X'X: close to `wanted` and not large.

    0 for an X of zeros, not a number where a product overflows.
    """
    square = given.T @ given
    size = float(np.trace(square)) / len(square)
    if not np.isfinite(square).all() or not size > 0:
        return np.full((given.shape[1], wanted.shape[1]), np.nan if size > 0 else 0.0)
    square[np.diag_indices_from(square)] += pull * size
    return np.asarray(np.linalg.solve(square, given.T @ wanted), dtype=np.float64)
