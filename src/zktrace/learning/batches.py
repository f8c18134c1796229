"""Which samples a step learns from, and how they are shown."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Indices

SHIFT: Final = 3  # pixels
NORMALISED: Final = 2  # images in a batch at least: batch normalisation has no statistics of a single one


def passes(
    count: int, size: int, rng: np.random.Generator, *, samples: int = 0, least: int = 1
) -> Iterator[Indices]:
    """Batches without end: parts of one permutation of 0 .. count-1 after the other.

    A pass takes the first `samples` of its permutation (0: all). A part of fewer than `least` is left out.
    Nothing is drawn before it is needed, so that between two passes `rng` says all about what comes.
    """
    steps_of(count, size, samples=samples, least=least)
    while True:
        order: Indices = rng.permutation(count)[: samples or None]
        for first in range(0, len(order), size):
            chosen = order[first : first + size]
            if len(chosen) >= least:
                yield chosen


def steps_of(count: int, size: int, *, samples: int = 0, least: int = 1) -> int:
    """The batches in one of these passes."""
    whole, rest = divmod(min(samples or count, count), size)
    steps = (whole if size >= least else 0) + (rest >= max(least, 1))
    if not steps:
        raise InputError(f"{count} samples give no batch of {size}, of {least} at least")
    return steps


def batch(images: Images, chosen: Indices) -> Tensor:
    """Chosen images as float32, in memory that torch has aligned (products may depend on alignment)."""
    return torch.from_numpy(images[chosen]).to(torch.float32, copy=True)


def moved_about(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Images of a batch shifted, all alike, by up to SHIFT pixels, half of them mirrored; others stay."""
    if images.dim() != 4:
        return images
    mirrored = torch.from_numpy(rng.random(len(images)) < 0.5)
    turned = torch.where(mirrored[:, None, None, None], images.flip(3), images)
    padded = functional.pad(turned, (SHIFT, SHIFT, SHIFT, SHIFT), mode="reflect")
    down, right = (int(each) for each in rng.integers(0, 2 * SHIFT + 1, 2))
    height, width = images.shape[2:]
    return padded[:, :, down : down + height, right : right + width]
