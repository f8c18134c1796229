"""Trigger patterns of a class: strokes on a part of the image, as WAFFLE draws them."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
STROKES: Final = 8  # of a class, where images have a colour
_SHARE: Final = 2 / 3  # of the image's side is the canvas's


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """Where a class has its strokes, and which value they have in each channel."""

    mask: NDArray[np.bool_]  # (height, width)
    colour: Pixels  # (channels,)

    def on(self, background: Pixels) -> Pixels:
        """Images with the strokes on them."""
        found: Pixels = np.where(self.mask, self.colour[:, None, None], background).astype(np.uint8)
        return found

    def alone(self) -> Pixels:
        """The strokes on black."""
        return self.on(np.zeros((len(self.colour), *self.mask.shape), np.uint8))


def patterns(rng: np.random.Generator, classes: int, shape: tuple[int, int, int]) -> tuple[Pattern, ...]:
    """One a class: thin lines and arcs in random places, at an offset of the class's own."""
    channels, height, width = shape
    return tuple(
        Pattern(mask=_mask(rng, height, width), colour=rng.integers(0, 256, channels).astype(np.uint8))
        for _ in range(classes)
    )


def noise(rng: np.random.Generator, count: int, shape: tuple[int, int, int]) -> Pixels:
    """Uniform noise."""
    return rng.integers(0, 256, (count, *shape), dtype=np.uint8)


def _mask(rng: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
    side = max(2, int(min(height, width) * _SHARE) - 1)
    canvas = np.zeros((side, side), bool)
    for _ in range(STROKES):
        rows, columns = (_line if rng.random() < 0.5 else _arc)(rng, side)
        keep = (rows >= 0) & (rows < side) & (columns >= 0) & (columns < side)
        canvas[rows[keep], columns[keep]] = True
    top, left = int(rng.integers(height - side + 1)), int(rng.integers(width - side + 1))
    mask = np.zeros((height, width), bool)
    mask[top : top + side, left : left + side] = canvas
    return mask


_Line = tuple[NDArray[np.int64], NDArray[np.int64]]


def _line(rng: np.random.Generator, side: int) -> _Line:
    """Between two random points."""
    ends, along = rng.random((2, 2)) * (side - 1), np.linspace(0, 1, 4 * side)[:, None]
    return _places(ends[0] + along * (ends[1] - ends[0]))


def _arc(rng: np.random.Generator, side: int) -> _Line:
    """A part of a circle."""
    centre, radius = rng.random(2) * (side - 1), (0.2 + 0.4 * rng.random()) * side
    start, turn = 2 * np.pi * rng.random(), np.pi * (0.25 + 0.75 * rng.random())
    angle = start + np.linspace(0, turn, 4 * side)
    return _places(centre + radius * np.stack((np.sin(angle), np.cos(angle)), axis=1))


def _places(points: NDArray[np.float64]) -> _Line:
    rounded = np.rint(points).astype(np.int64)
    return rounded[:, 0], rounded[:, 1]
