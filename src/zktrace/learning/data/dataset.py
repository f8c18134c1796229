"""A labelled set of images, whatever it came from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.data.splits import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """(image / 255 - mean) / deviation, a pair of numbers a channel."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, images: NDArray[np.uint8]) -> Images:
        """uint8 [n, channels, height, width] to float32."""
        mean = np.array(self.mean, np.float32)[:, None, None]
        scale = (1 / np.array(self.deviation))[:, None, None].astype(np.float32)
        return (images.astype(np.float32) / np.float32(255) - mean) * scale


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Images, labels, and the names of the classes.

    Bytes stay bytes until they are taken, and a mapped file stays on disk: `take` gives float32.
    """

    name: str
    images: Images | NDArray[np.uint8]  # [n, channels, height, width]
    labels: Labels
    class_names: tuple[str, ...]
    note: str  # for every picture and table made from it
    normalise: Normalisation | None = None  # bytes need one, floats have none
    split: Split | None = None  # the one its source prescribes
    stations: Labels | None = None  # whose receiver heard each sample, where that shows in the image

    def __post_init__(self) -> None:
        count, classes = len(self.images), len(self.class_names)
        if self.images.ndim != 4 or count == 0:
            raise InputError(f"{self.name}: images of shape {self.images.shape}, not [n, channels, h, w]")
        if self.labels.shape != (count,) or self.labels.dtype != np.int64:
            raise InputError(f"{self.name}: {count} images, labels {self.labels.dtype}{self.labels.shape}")
        if not 0 <= self.labels.min() <= self.labels.max() < classes:
            raise InputError(
                f"{self.name}: labels {self.labels.min()}..{self.labels.max()} of {classes} classes"
            )
        if (self.images.dtype == np.uint8) != (self.normalise is not None):
            raise InputError(f"{self.name}: a normalisation belongs to bytes, images are {self.images.dtype}")
        if self.stations is not None and self.stations.shape != (count,):
            raise InputError(f"{self.name}: {count} images, stations of shape {self.stations.shape}")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        channels, height, width = self.images.shape[1:]
        return channels, height, width

    def take(self, indices: ArrayLike) -> tuple[Images, Labels]:
        """Copies of the given images as float32, and their labels."""
        chosen = np.asarray(indices, dtype=np.int64)
        images = self.images[chosen]
        if self.normalise is not None:
            return self.normalise(images.astype(np.uint8, copy=False)), self.labels[chosen]
        return np.ascontiguousarray(images, dtype=np.float32), self.labels[chosen]
