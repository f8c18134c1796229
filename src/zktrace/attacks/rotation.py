"""Rotations that an attacker draws."""

import numpy as np
from numpy.typing import NDArray


def orthogonal(size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """An orthogonal matrix, every one as likely as any other."""
    q, r = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(q * np.where(np.diagonal(r) < 0, -1.0, 1.0), dtype=np.float64)
