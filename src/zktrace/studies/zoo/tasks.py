"""What networks of the zoo learn: batches, a loss, and a measure on data that they never saw."""

import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.batches import batch, moved_about
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.data.cifar10 import load_cifar10
from zktrace.learning.episodes import EpisodeSampler, episode_outcome
from zktrace.learning.evaluation import embed, episode_accuracy
from zktrace.learning.resnet import ResNet

Measure = Literal["accuracy", "perplexity"]
Batch = tuple[Tensor, Tensor]  # what goes in, what should come out
SYMBOLS: Final = 97  # printable ASCII, the end of a line, and one symbol for all else
_ALONG: Final = 128  # characters that a language model sees at a time
_MODULES: Final = 400  # of the standard library, in the order of their names
_HELD_OUT: Final = 8  # every so many modules: never trained on
_MEASURED: Final = 512  # windows of held-out text
_SHAPE: Final = EpisodeShape()
_TESTED: Final = 500  # samples at a time


class ZooTask(Protocol):
    """Of one kind of network."""

    @property
    def measure(self) -> Measure:
        """What `measured` gives."""

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Some of the training data."""

    def loss(self, module: nn.Module, given: Batch) -> Tensor:
        """To be made small."""

    def measured(self, module: nn.Module, *, part: int = 1) -> float:
        """On held-out data, or one in `part` of it: the share of right answers, or perplexity a character."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleTask:
    """Samples and their classes."""

    train: tuple[Images | NDArray[np.float32], Labels]
    test: tuple[Images | NDArray[np.float32], Labels]
    moved: bool = False  # whether training images are shifted and mirrored
    measure: Measure = "accuracy"

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Samples drawn at random."""
        samples, labels = self.train
        chosen = rng.integers(0, len(labels), size)
        inputs = batch(samples, chosen)
        return (moved_about(inputs, rng) if self.moved else inputs), torch.from_numpy(labels[chosen])

    def loss(self, module: nn.Module, given: Batch) -> Tensor:
        """Cross-entropy."""
        return functional.cross_entropy(module(given[0]), given[1])

    def measured(self, module: nn.Module, *, part: int = 1) -> float:
        """Accuracy on the test samples."""
        samples, labels = self.test
        asked = np.arange(0, len(labels), part)
        right = 0
        with torch.inference_mode():
            for start in range(0, len(asked), _TESTED):
                some = asked[start : start + _TESTED]
                right += int((module(batch(samples, some)).argmax(1).numpy() == labels[some]).sum())
        return right / len(asked)


@dataclass(frozen=True, kw_only=True, eq=False)
class TextTask:
    """Text, a character at a time."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    measure: Measure = "perplexity"

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """Windows from anywhere in the text."""
        starts = rng.integers(0, len(self.train) - _ALONG, size)
        windows = torch.from_numpy(self.train[starts[:, None] + np.arange(_ALONG + 1)])
        return windows[:, :-1], windows[:, 1:]

    def loss(self, module: nn.Module, given: Batch) -> Tensor:
        """Cross-entropy of every next character."""
        return functional.cross_entropy(module(given[0]).flatten(0, 1), given[1].flatten())

    def measured(self, module: nn.Module, *, part: int = 1) -> float:
        """Perplexity of a character of the held-out text."""
        starts = np.linspace(0, len(self.test) - _ALONG - 1, _MEASURED // part).astype(np.int64)
        windows = torch.from_numpy(self.test[starts[:, None] + np.arange(_ALONG + 1)])
        with torch.inference_mode():
            losses = [
                float(self.loss(module, (part[:, :-1], part[:, 1:]))) for part in torch.split(windows, 64)
            ]
        return float(np.exp(np.mean(losses)))


@dataclass(frozen=True, kw_only=True, eq=False)
class EpisodeTask:
    """Images by prototypes: five of each of five classes are shown, others are asked."""

    train: tuple[Images, Labels]
    test: tuple[Images, Labels]
    shape: EpisodeShape = _SHAPE
    temperature: float = 64.0  # as in the preset `desk`
    measure: Measure = "accuracy"

    def batch(self, size: int, rng: np.random.Generator) -> Batch:
        """One episode, whatever the size."""
        chosen = EpisodeSampler(self.train[1], self.shape).draw(rng).samples
        return batch(self.train[0], chosen), torch.from_numpy(self.train[1][chosen])

    def loss(self, module: nn.Module, given: Batch) -> Tensor:
        """Of the episode."""
        return episode_outcome(module(given[0]), self.shape, self.temperature).loss

    def measured(self, module: nn.Module, *, part: int = 1) -> float:
        """Accuracy on the same test episodes for all."""
        images, labels = self.test
        if not isinstance(module, ResNet):
            raise InputError("episodes are for a ResNet of this package")
        found = embed(module, images[::part])
        return episode_accuracy(found, labels[::part], self.shape, np.random.default_rng(0)).mean


def pictures(folder: Path) -> SampleTask:
    """CIFAR-10."""
    train, test = _cifar10(folder)
    return SampleTask(train=train, test=test, moved=True)


def episodes(folder: Path) -> EpisodeTask:
    """CIFAR-10 by prototypes."""
    train, test = _cifar10(folder)
    return EpisodeTask(train=train, test=test)


def _cifar10(folder: Path) -> tuple[tuple[Images, Labels], tuple[Images, Labels]]:
    data = load_cifar10(folder)
    if data.split is None or not len(data.split.test):
        raise InputError(f"{folder}: holds no test batch, and accuracy is measured on it")
    return data.take(data.split.train), data.take(data.split.test)


def library_text() -> TextTask:
    """The sources of this Python's standard library; every eighth module is held out."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    texts = [path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.py"))[:_MODULES]]
    train = "".join(text for place, text in enumerate(texts) if place % _HELD_OUT)
    return TextTask(train=encoded(train), test=encoded("".join(texts[::_HELD_OUT])))


def encoded(text: str) -> NDArray[np.int64]:
    """Characters as symbols: 0 for a new line, 1..95 for printable ASCII, 96 for anything else."""
    codes = np.frombuffer(text.encode("ascii", "replace"), np.uint8).astype(np.int64)
    return np.where(codes == ord("\n"), 0, np.where((codes >= 32) & (codes < 127), codes - 31, SYMBOLS - 1))
