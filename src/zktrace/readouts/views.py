"""The views in which a probe of the output carrier is shown: as it is, mirrored, shifted, and both.

A bit is written into the surroundings of its probe, so it stands in all of them; what a suspect gets wrong
differs from view to view. The scores of a probe are the mean over its views.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.readouts.directions import Floats


class View(NamedTuple):
    """Mirrored first, then moved; what moves in at a border is the image reflected there."""

    mirrored: bool
    down: int
    right: int


VIEWS: Final = (View(False, 0, 0), View(True, 0, 0), View(False, 2, -2), View(True, -2, 2))
_SHIFT: Final = 2


def in_views(images: NDArray[Any]) -> NDArray[Any]:
    """Images (n, channels, height, width), all in the first view, then all in the second, and so on.

    Of inputs that are no images all views are the same: as they are.
    """
    if images.ndim != 4:
        return np.concatenate([images] * len(VIEWS))
    if min(images.shape[2:]) <= _SHIFT:
        raise InputError(f"images of shape {images.shape} are too small to be shifted by {_SHIFT} pixels")
    return np.concatenate([_seen(images, each) for each in VIEWS])


def _seen(images: NDArray[Any], view: View) -> NDArray[Any]:
    turned = images[..., ::-1] if view.mirrored else images
    padded = np.pad(turned, ((0, 0), (0, 0), (_SHIFT, _SHIFT), (_SHIFT, _SHIFT)), mode="reflect")
    height, width = images.shape[2:]
    top, left = _SHIFT - view.down, _SHIFT - view.right
    return padded[:, :, top : top + height, left : left + width]


def mean_view(scores: Floats) -> Floats:
    """One row a probe, from the rows of `in_views`."""
    if len(scores) % len(VIEWS):
        raise InputError(f"{len(scores)} rows of scores are no {len(VIEWS)} views of the same probes")
    parts = (scores / len(VIEWS)).reshape(len(VIEWS), -1, scores.shape[1])  # no sum overflows
    found: Floats = parts.sum(axis=0)
    return found
