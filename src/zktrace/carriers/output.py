"""A word in what a model says: class scores of probes, less the shared model's (`readouts.scores`).

A fixed set of labelled images that only the server holds, the support, turns an embedding into scores: minus
the squared distance to the prototype of each class, the prototypes made from the *suspect's own* embedding of
the support. Rotating, rescaling or renaming features changes no distance, and a student that copies the
function copies the scores.

The writer trains the convolutions of the last stage with fixed BatchNorm statistics, as the feature carrier's
does. The prototypes are made anew from the support at every step. A word of the feature carrier is trained in
the same run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from zktrace.carriers.feature import Build, FeatureMark, FeatureWriter, check_probes
from zktrace.carriers.last_stage import head, heads, only_convolutions, trunks
from zktrace.errors import InputError
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import cosine
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import State, state_of
from zktrace.learning.training import Images, Labels
from zktrace.readouts.assignment import assign
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import OutputReader, output_directions
from zktrace.readouts.suspects import plain

_FEATURES: Final = 512  # of a ResNet-18 of full width

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Support:
    """Labelled images from which class prototypes are made; labels are 0, 1, ..., each at least once."""

    images: Images
    labels: Labels

    def __post_init__(self) -> None:
        check_probes(self.images)
        if self.labels.shape != (len(self.images),) or self.labels.dtype.kind not in "iu":
            raise InputError(
                f"labels of shape {self.labels.shape} for {len(self.images)} images of the support"
            )
        found = np.unique(self.labels)
        if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
            raise InputError("a support has at least two classes 0, 1, ..., and an image of each")

    @property
    def classes(self) -> int:
        """How many scores a probe has."""
        return int(self.labels.max()) + 1

    @property
    def means(self) -> Floats:
        """(classes, images): what makes prototypes of features."""
        one_hot = (np.arange(self.classes)[:, None] == self.labels[None, :]).astype(np.float64)
        found: Floats = one_hot / one_hot.sum(axis=1, keepdims=True)
        return found


def class_scores(arrays: Arrays, probes: Images, support: Support, *, build: Build = backbone_of) -> Floats:
    """Minus the squared distances of probes to the prototypes, both in the model's own features.

    A classifier with an output a class is taken at its word: its logits, in the order that gives the support
    the largest scores of its own classes.
    """
    model = build(plain(arrays))
    if model.channels != probes.shape[1]:
        raise InputError(
            f"the model takes images of {model.channels} channels, the probes have {probes.shape[1]}"
        )
    prototypes = support.means @ embed(model, support.images).astype(np.float64)
    features = embed(model, probes).astype(np.float64)
    if model.fc is not None and model.features == support.classes:
        scores: Floats = features[:, assign(prototypes)]
    else:
        squares = (features**2).sum(axis=1)[:, None] + (prototypes**2).sum(axis=1)
        scores = 2.0 * features @ prototypes.T - squares
    if not np.isfinite(scores).all():
        raise InputError("the model's numbers are too large to be read")
    return scores


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputModelReader:
    """Reads the output carrier of a model at hand. Made without anything that depends on a row."""

    seed: bytes
    probes: Images
    support: Support
    reference: Floats | None = None  # the shared model's scores, row after row
    build: Build = backbone_of

    def __post_init__(self) -> None:
        check_probes(self.probes)

    def scores(self, arrays: Arrays) -> Floats:
        """One row a probe. Of the shared model, they are the reference."""
        return class_scores(arrays, self.probes, self.support, build=self.build)

    def read(self, arrays: Arrays) -> Floats:
        """The readout of a suspect."""
        if self.reference is None:
            raise InputError("the output carrier is read against the shared model's own scores")
        reader = OutputReader(
            seed=self.seed,
            length=len(self.probes),
            classes=self.support.classes,
            reference=self.reference,
        )
        return reader.read_scores(self.scores(arrays))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConfig:
    """How a word is written; the margin is in standard deviations of the shared model's own projections."""

    margin: float = 0.5
    passes: int = 8  # over all probes
    batch_size: int = 128  # probes a step
    beside: int = 100  # other images a step
    weight: float = 1.0  # of the mark's loss
    keep: float = 1.0  # of the loss that keeps features of other images
    learning_rate: float = 2e-4  # Adam, annealed to 0; for 512 features, more in proportion for fewer

    def __post_init__(self) -> None:
        numbers = (self.margin, self.weight, self.learning_rate)
        if min(numbers) <= 0 or not np.isfinite([*numbers, self.keep]).all() or self.keep < 0:
            raise InputError("margin, weight and learning rate of an output mark must be positive numbers")
        if min(self.passes, self.batch_size, self.beside) < 1:
            raise InputError("passes, batch size and other images of an output mark must be at least 1")


class OutputWriter:
    """Writes words into the scores of copies of one shared model (profile `informed`)."""

    def __init__(
        self,
        shared: Arrays,
        *,
        seed: bytes,
        probes: Images,
        support: Support,
        beside: Images,
        config: OutputConfig | None = None,
    ) -> None:
        """`beside`: images whose features are to stay where they are, from the same source as the probes."""
        check_probes(probes)
        check_probes(beside)
        self.config = config or OutputConfig()
        self._shared = plain(shared)
        self._images = (probes, support.images, beside)
        self._means = torch.from_numpy(support.means).float()
        model = backbone_of(self._shared)
        directions = output_directions(seed, length=len(probes), classes=support.classes)
        self._directions = torch.from_numpy(directions).float()
        features, held, others = (heads(model, each) for each in self._paths)
        self._targets = torch.cat([held, others])
        self._origin = (self._directions * _scores(features, self._means @ held)).sum(dim=1)
        self._margin = self.config.margin * float(self._origin.std())
        self._unit = float(self._targets.square().mean().sqrt())
        if not self._margin > 0 or not self._unit > 0:
            raise InputError("the shared model gives all probes the same scores")

    @cached_property
    def _paths(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the last stage of the shared model is given, for probes, support and other images."""
        return self._trunks(backbone_of(self._shared))

    def _trunks(self, model: ResNet) -> tuple[Tensor, Tensor, Tensor]:
        probes, support, beside = (trunks(model, each) for each in self._images)
        return probes, support, beside

    def write(
        self,
        word: Words,
        *,
        rng: np.random.Generator,
        start: Arrays | None = None,
        feature: tuple[FeatureWriter, Words] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> State:
        """A state with the word in its scores: `start` (by default the shared model), trained on.

        With `feature` the word of that carrier is written in the same run.
        """
        if word.shape != (len(self._directions),) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} for {len(self._directions)} probes")
        model = backbone_of(self._shared if start is None else plain(start))
        paths = self._paths if start is None else self._trunks(model)
        signs = torch.from_numpy(2.0 * word - 1.0).float()
        mark = None
        if feature is not None:
            mark = feature[0].mark(feature[1], None if start is None else model)
        run = _Run(
            config=self.config,
            probes=paths[0],
            support=paths[1],
            beside=paths[2],
            signed=self._directions * signs[:, None],
            origin=self._origin * signs,
            means=self._means,
            targets=self._targets,
            margin=self._margin,
            unit=self._unit,
            feature=mark,
        )
        with only_convolutions(model.layer4) as trained:
            run.train(model, trained, rng, progress or (lambda share: None))
        return state_of(model)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    """The training of one copy."""

    config: OutputConfig
    probes: Tensor
    support: Tensor
    beside: Tensor
    signed: Tensor
    origin: Tensor
    means: Tensor
    targets: Tensor  # the shared model's features of support and other images
    margin: float
    unit: float
    feature: FeatureMark | None

    def train(
        self,
        model: ResNet,
        trained: list[torch.nn.Parameter],
        rng: np.random.Generator,
        progress: Callable[[float], None],
    ) -> None:
        config = self.config
        rate = config.learning_rate * _FEATURES / model.features
        optimizer = torch.optim.Adam(trained, lr=rate)
        steps = config.passes * -(-len(self.probes) // config.batch_size)
        own = _batches(len(self.probes), config.batch_size, rng)
        companion = None
        if self.feature is not None:
            companion = _batches(len(self.feature.probes), self.feature.batch_size, rng)
        others = min(config.beside, len(self.beside))
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = cosine(rate, step, steps)
            near = torch.from_numpy(rng.choice(len(self.beside), others, replace=False))
            also = None if companion is None else next(companion)
            loss = self._loss(model, next(own), near, also)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            progress((step + 1) / steps)

    def _loss(self, model: ResNet, chosen: Tensor, near: Tensor, also: Tensor | None) -> Tensor:
        """Marks that miss their margin, and other features that moved."""
        config = self.config
        parts = [self.support, self.probes[chosen], self.beside[near]]
        if self.feature is not None and also is not None:
            parts.append(self.feature.probes[also])
        held, asked, kept, *more = torch.split(head(model, torch.cat(parts)), [len(each) for each in parts])
        scores = _scores(asked, self.means @ held)
        gain = (self.signed[chosen] * scores).sum(dim=1) - self.origin[chosen]
        missed = functional.smooth_l1_loss(gain / self.margin, torch.ones(len(chosen)))
        targets = torch.cat([self.targets[: len(held)], self.targets[len(held) + near]])
        moved = (torch.cat([held, kept]) - targets).square().mean() / self.unit**2
        loss = config.weight * missed + config.keep * moved
        if self.feature is not None and also is not None:
            loss = loss + self.feature.weight * self.feature.missed(also, more[0])
        return loss


def _scores(features: Tensor, prototypes: Tensor) -> Tensor:
    """Minus squared distances, up to a constant a row, which no zero-sum direction sees."""
    return 2.0 * features @ prototypes.T - prototypes.square().sum(dim=1)


def _batches(count: int, size: int, rng: np.random.Generator) -> Iterator[Tensor]:
    """Parts of one permutation after the other."""
    while True:
        order: Indices = rng.permutation(count)
        for first in range(0, count, size):
            yield torch.from_numpy(order[first : first + size])
