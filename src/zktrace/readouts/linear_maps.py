"""A suspect's features in the reference's coordinates, fitted on anchor images that are no probes.

    procrustes    the rotation, with a shift, that brings features nearest to the reference's; equal widths
    ridge         any linear map and a shift, kept small where anchors say little; for any two widths

Both see features of public images alone: no row, no probe, no direction.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.readouts import fits
from zktrace.readouts.directions import Floats

METHODS: Final = ("procrustes", "ridge")
RIDGE: Final = 1e-3  # of the mean variance of a feature, a sample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Map:
    """x -> (x - origin) matrix + target, from a suspect's features to the reference's coordinates."""

    matrix: Floats  # (d', d)
    origin: Floats  # (d',)
    target: Floats  # (d,)

    def apply(self, features: NDArray[np.floating]) -> Floats:
        """Features (m, d') in the reference's coordinates, (m, d)."""
        if features.ndim != 2 or features.shape[1] != len(self.origin):
            raise InputError(f"features of shape {features.shape} for a map from {len(self.origin)}")
        return (features.astype(np.float64) - self.origin) @ self.matrix + self.target


def align_features(
    suspect: NDArray[np.floating], reference: NDArray[np.floating], method: str, *, ridge: float = RIDGE
) -> Map:
    """The map that brings a suspect's features (m, d') of anchors to the reference's (m, d)."""
    theirs, ours = _checked("suspect", suspect), _checked("reference", reference)
    if len(theirs) != len(ours) or len(ours) < 2:
        raise InputError(f"{len(theirs)} and {len(ours)} anchors: two or more, the same of both")
    if method not in METHODS:
        raise InputError(f"alignment {method!r} is not known; it is one of {', '.join(METHODS)}")
    if not 0.0 < ridge < np.inf:
        raise InputError(f"a ridge of {ridge}: must be a positive number")
    origin, target = theirs.mean(axis=0), ours.mean(axis=0)
    theirs, ours = theirs - origin, ours - target
    with np.errstate(all="ignore"):  # what overflows is refused below
        matrix = _rotation(theirs, ours) if method == "procrustes" else fits.ridge(theirs, ours, pull=ridge)
    if not np.isfinite(matrix).all():
        raise InputError("the suspect's features are too large to be aligned")
    return Map(matrix=matrix, origin=origin, target=target)


def _rotation(theirs: Floats, ours: Floats) -> Floats:
    """Q orthogonal with |theirs Q - ours| least."""
    if theirs.shape[1] != ours.shape[1]:
        raise InputError(
            f"features of {theirs.shape[1]} and {ours.shape[1]} numbers: "
            "a rotation needs equal widths, ridge does not"
        )
    return nearest_rotation(theirs.T @ ours)


def nearest_rotation(product: Floats) -> Floats:
    """U V^T of the singular vectors of theirs^T ours; NaN if it has numbers that are not finite.

    Directions in which the anchors say nothing are left where they are, as far as they can be.
    """
    if not np.isfinite(product).all():
        return np.full(product.shape, np.nan)
    left, sizes, right = np.linalg.svd(product)
    known = sizes > sizes[0] * len(sizes) * np.finfo(np.float64).eps
    turn = left[:, known] @ right[known]
    if not known.all():
        free_left, free_right = left[:, ~known], right[~known]
        inner_left, _, inner_right = np.linalg.svd(free_left.T @ free_right.T)
        turn = turn + free_left @ (inner_left @ inner_right) @ free_right
    return np.asarray(turn, dtype=np.float64)


def _checked(whose: str, features: NDArray[np.floating]) -> Floats:
    if features.ndim != 2 or not features.size or features.dtype.kind != "f":
        raise InputError(f"the {whose}'s features have shape {features.shape} and type {features.dtype}")
    if not np.isfinite(features).all():
        raise InputError(f"the {whose}'s features are not finite")
    return features.astype(np.float64)
