"""What a student is taught of a leaker's images (`sub:attack-protocol`), and the loss of a batch.

    features    squared error and, at temperature 4, divergence on the coordinates of the embedding
    logits      soft labels alone: negative squared distances to class means of the leaker's own samples
    distances   the same soft labels, for a student that stays an embedding
    top1        the class with the largest of these scores, and nothing of the others
    labels      no teacher: the control, trained from scratch on true labels

Under `logits`, `top1` and `labels` a student answers through a linear head; under `distances` by how near its
features are to centres that it learns. A teacher's scores count in units of their own spread, so its features
may have any size. Several teachers, the copies of a coalition, teach their mean output.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Indices, Labels
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet, generator_of, linear


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """All that the leaker has, and how many features its student gives."""

    teachers: list[ResNet]
    images: Images
    labels: Labels | None
    features: int
    temperature: float  # of embedding coordinates
    softness: float  # temperature of scores, in units of their own spread
    rng: np.random.Generator


class Lesson(ABC):
    """What is to be learnt of images, and the loss of a batch. `aside` is thrown away afterwards."""

    targets: Tensor  # of the leaker's images as they are
    aside: nn.Module | None = None

    @abstractmethod
    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        """Targets of images `chosen` that are shown in another way."""

    @abstractmethod
    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        """Of a batch with its targets."""


class Features(Lesson):
    """The teacher's embedding; a student of another width learns it through a linear map (FitNets)."""

    def __init__(self, task: Task) -> None:
        self._teachers = task.teachers
        self.targets = _mean([torch.from_numpy(embed(each, task.images)) for each in task.teachers])
        self._temperature = task.temperature
        self._unit = float(self.targets.var(dim=0).mean())
        if not self._unit > 0:
            raise InputError("the teacher gives all images the same features")
        if task.features != self.targets.shape[1]:
            self.aside = linear(task.features, self.targets.shape[1], generator_of(task.rng))

    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        return _mean([each(shown) for each in self._teachers])

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        made = features if self.aside is None else self.aside(features)
        error = (made - wanted).square().mean() / self._unit  # in variances, whatever the features' size
        return error + _divergence(made, wanted, self._temperature)


class Logits(Lesson):
    """The teacher's class scores, from distances to class means of the leaker's own samples."""

    def __init__(self, task: Task) -> None:
        classes = _classes(task.labels)
        features = [torch.from_numpy(embed(each, task.images)) for each in task.teachers]
        self._teachers = task.teachers
        self._means = [_class_means(each, classes) for each in features]
        scores = _mean([_scores(*each) for each in zip(features, self._means, strict=True)])
        self._spread = float(scores.std(dim=1).mean())
        if not self._spread > 0:
            raise InputError("the teacher gives all classes the same scores")
        self.targets = scores / self._spread
        self._temperature = task.softness
        self.aside = self.head = self._answering(task, scores.shape[1])

    @staticmethod
    def _answering(task: Task, classes: int) -> nn.Module:
        return linear(task.features, classes, generator_of(task.rng))

    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        given = zip(self._teachers, self._means, strict=True)
        return _mean([_scores(each(shown), means) for each, means in given]) / self._spread

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        return _divergence(self.head(features), wanted, self._temperature)


class Distances(Logits):
    """The same, answered by distances in the student's own features."""

    @staticmethod
    def _answering(task: Task, classes: int) -> nn.Module:
        return Centres(task.features, classes, generator_of(task.rng))


class TopClass(Logits):
    """The class that the teacher answers with, as of somebody who is told no scores."""

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        return functional.cross_entropy(self.head(features), wanted.argmax(dim=1))


class Centres(nn.Module):
    """Minus the squared distances to a centre a class, times a factor that is learnt as well."""

    def __init__(self, features: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes, features, generator=generator))
        self.log_factor = nn.Parameter(torch.tensor(-math.log(2.0 * features)))

    def forward(self, features: Tensor) -> Tensor:
        made: Tensor = self.log_factor.exp() * _scores(features, self.centres)
        return made


class TrueLabels(Lesson):
    """The classes themselves, through a linear head."""

    def __init__(self, task: Task) -> None:
        self.targets = torch.from_numpy(_classes(task.labels))
        self.aside = self.head = linear(task.features, int(self.targets.max()) + 1, generator_of(task.rng))

    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        return self.targets[chosen]

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        return functional.cross_entropy(self.head(features), wanted)


LESSONS: Final[dict[str, Callable[[Task], Lesson]]] = {
    "features": Features,
    "logits": Logits,
    "distances": Distances,
    "top1": TopClass,
    "labels": TrueLabels,
}


def _class_means(features: Tensor, classes: Indices) -> Tensor:
    table = features.double()
    return torch.stack([table[classes == k].mean(dim=0) for k in range(classes.max() + 1)]).float()


def _scores(features: Tensor, means: Tensor) -> Tensor:
    """Minus the squared distances to the means."""
    return -torch.cdist(features, means, compute_mode="donot_use_mm_for_euclid_dist").square()


def _divergence(made: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """T^2 KL(softmax(wanted / T) || softmax(made / T)), the mean over the batch (Hinton et al.)."""
    soft = functional.log_softmax(made / temperature, dim=1)
    truth = functional.log_softmax(wanted / temperature, dim=1)
    return temperature**2 * functional.kl_div(soft, truth, reduction="batchmean", log_target=True)


def _mean(outputs: list[Tensor]) -> Tensor:
    if len({each.shape for each in outputs}) != 1:
        raise InputError("the teachers' outputs have several widths")
    return torch.stack(outputs).mean(dim=0)


def _classes(labels: Labels | None) -> Indices:
    """0, 1, ... in the order of the labels."""
    if labels is None:
        raise InputError("labels are needed for every objective but features")
    known, places = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise InputError(f"two classes are needed, the labels have {len(known)}")
    return places.astype(np.int64)
