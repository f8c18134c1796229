"""Trigger images: how they are kept, drawn, learnt and asked about.

A prototype network has no head that could name a class. So its classes are those of a fixed support set of
the server's own samples, the same for every system and in every verification: an image has the class whose
mean feature is the nearest. Means are computed anew in every epoch of learning, and held fast within it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.optim import SGD, Optimizer

from zktrace.baselines.protocol import Answers, Venue
from zktrace.certificates.presence import acceptance
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, Images, Labels
from zktrace.learning.backbone import backbone_of
from zktrace.learning.batches import batch, passes, steps_of
from zktrace.learning.episodes import prototype_logits
from zktrace.learning.evaluation import class_means, embed
from zktrace.learning.loop import Course, Trained, train
from zktrace.learning.modes import in_mode
from zktrace.learning.resnet import ResNet
from zktrace.learning.training import Penalty

Head = Callable[[Tensor], Tensor]  # features -> scores of classes
_SUPPORT = 101  # purpose of randomness


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """Images as they are handed to a verifier: a byte a number, between the ends of each channel."""

    pixels: NDArray[np.uint8]  # (n, channels, height, width)
    low: NDArray[np.float32]  # (channels,)
    high: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.pixels.ndim != 4 or self.low.shape != (self.pixels.shape[1],) != self.high.shape:
            raise InputError(f"images of shape {self.pixels.shape} with ends of {self.low.size} channels")

    @classmethod
    def of(cls, images: Images, ends: "Ends") -> "Kept":
        """Images rounded to bytes."""
        low, high = (each[:, None, None] for each in (ends.low, ends.high))
        scaled = np.clip((images - low) / (high - low), 0.0, 1.0)
        return cls(pixels=np.rint(255 * scaled).astype(np.uint8), low=ends.low, high=ends.high)

    @property
    def images(self) -> Images:
        """As a network takes them."""
        low, high = (each[:, None, None] for each in (self.low, self.high))
        return (low + (high - low) * (self.pixels / np.float32(255))).astype(np.float32)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.pixels.nbytes + self.low.nbytes + self.high.nbytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Ends:
    """Between which numbers the channels of some images lie."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]

    @classmethod
    def of(cls, images: Images) -> "Ends":
        """Of the server's samples; a channel that is the same everywhere is given room."""
        low, high = images.min(axis=(0, 2, 3)), images.max(axis=(0, 2, 3))
        return cls(low=low, high=np.where(high > low, high, low + 1).astype(np.float32))


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportSet:
    """The fixed samples that classes are named by."""

    kept: Kept
    labels: Labels

    @property
    def images(self) -> Images:
        """As a network takes them."""
        return self.kept.images

    @property
    def size(self) -> int:
        """Bytes, a label being one."""
        return self.kept.size + len(self.labels)


def support_of(venue: Venue, per_class: int) -> SupportSet:
    """So many of the server's samples of each class, or all it has."""
    images, labels = venue.samples()
    rng = np.random.default_rng(_SUPPORT)
    chosen = np.concatenate(
        [rng.permutation(np.flatnonzero(labels == each))[:per_class] for each in np.unique(labels)]
    )
    return SupportSet(kept=Kept.of(images[chosen], Ends.of(images)), labels=labels[chosen])


def by_prototypes(model: ResNet, support: SupportSet, temperature: float) -> Head:
    """Scores of classes by the distances to their present means."""
    means = class_means(embed(model, support.images), support.labels)
    centres = torch.from_numpy(np.stack(list(means.values()))).to(torch.float32)
    return lambda features: prototype_logits(features, centres, temperature)


def answers_of(suspect: Arrays) -> Answers:
    """What a model says to queries: the class of each image, by the support that is shown with it."""
    model = backbone_of(suspect, head=False)

    def answers(support: Images, labels: Labels, images: Images) -> Labels:
        means = class_means(embed(model, support), labels)
        centres = torch.from_numpy(np.stack(list(means.values()))).to(torch.float32)
        scores = prototype_logits(torch.from_numpy(embed(model, images)), centres)
        found: Labels = np.array(list(means), np.int64)[scores.argmax(dim=1).numpy()]
        return found

    return answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """How trigger images are learnt: plain SGD, batch normalisation in evaluation mode."""

    batch: int
    rate: float
    momentum: float = 0.0
    decay: float = 0.0
    epochs: int  # at most
    enough: float  # share of the images with the right answer that ends it


def learn(
    model: ResNet,
    images: Images,
    targets: Labels,
    lessons: Lessons,
    *,
    head: Callable[[ResNet], Head],
    rng: np.random.Generator,
    penalty: Penalty | None = None,
    guided: Callable[[ResNet], None] | None = None,
) -> float:
    """Train `model` in place until it knows enough of its targets; the share that it knows then.

    `head` is asked for before every epoch; `guided` changes gradients before a step.
    """
    optimizer = SGD(
        model.parameters(), lr=lessons.rate, momentum=lessons.momentum, weight_decay=lessons.decay
    )
    if guided is not None:

        def before(_: Optimizer, *__: object) -> None:
            guided(model)

        optimizer.register_step_pre_hook(before)
    wanted, size = torch.from_numpy(targets), min(lessons.batch, len(images))
    with in_mode(model, training=False):
        for epoch in range(lessons.epochs + 1):
            scores = head(model)
            share = float((_scored(model, scores, images).argmax(dim=1) == wanted).double().mean())
            if share >= lessons.enough or epoch == lessons.epochs:
                break

            def loss(chosen: NDArray[np.int64], scores: Head = scores) -> Trained:
                made = scores(model(batch(images, chosen)))
                added = None if penalty is None else penalty(model)
                return Trained(loss=functional.cross_entropy(made, wanted[chosen]), penalty=added)

            train(
                Course(
                    optimizer=optimizer,
                    epochs=1,
                    steps=steps_of(len(images), size),
                    batches=passes(len(images), size, rng),
                    loss=loss,
                    rate=lambda _: lessons.rate,
                    report=lambda each: each,
                )
            )
    return share


def _scored(model: ResNet, head: Head, images: Images) -> Tensor:
    return head(torch.from_numpy(embed(model, images)))


def hits_needed(count: int, classes: int, chance: Fraction) -> int:
    """The fewest of `count` images that a model which guesses among the classes names rightly with a
    probability of at most `chance`; one more than there are, if none is enough."""
    wrong = -1
    while wrong + 1 < count and acceptance(count, wrong + 1, Fraction(1, classes)) <= chance:
        wrong += 1
    return count - wrong
