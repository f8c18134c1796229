"""Distillers (`sub:attack-protocol`): a fresh student learns a copy's outputs on the leaker's own images.

    features    squared error and, at temperature 4, divergence on the coordinates of the embedding
    logits      soft labels alone: negative squared distances to class means of the leaker's own samples
    distances   the same soft labels, for a student that stays an embedding
    labels      no teacher: the control, trained from scratch on true labels

Under `logits` and `labels` a student answers through a linear head, which is thrown away afterwards or kept
as its last layer; under `distances` by how near its features are to centres that it learns. A teacher's
scores count in units of their own spread, so its features may have any size.
Images are shown shifted and mirrored at random, in another way in every epoch.
Several teachers, the copies of a coalition, teach their mean output.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from zktrace.errors import InputError, MalformedModel
from zktrace.learning.backbone import backbone_of
from zktrace.learning.checkpoints import (
    Checkpoint,
    begun,
    check_same,
    prefixed,
    restore_rng,
    rng_state,
    save_checkpoint,
)
from zktrace.learning.configs import cosine, require
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet, linear
from zktrace.learning.states import load_state, state_of
from zktrace.learning.training import Images, Labels, batch, fingerprint, moved_about

State = Mapping[str, NDArray[Any]]

OBJECTIVES: Final = ("features", "logits", "distances", "labels")
_HEADED: Final = ("logits", "labels")
KIND: Final = "distillation"
_MOMENTS: Final = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillConfig:
    """What the student is, and how it learns: Adam, the rate annealed to 0 over all steps."""

    objective: str = "features"
    depth: int = 18
    width: int = 0  # channels of the first stage; 0: as many as the teacher
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    temperature: float = 4.0  # features: of embedding coordinates (the paper)
    softness: float = 1.0  # logits, distances: temperature in units of the teacher's own spread of scores
    augment: bool = True  # every epoch shows images shifted and mirrored anew, and asks the teacher anew
    head: bool = False  # logits, labels: the head is kept as `fc`, the student is a classifier

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError(f"objective {self.objective!r} must be one of {', '.join(OBJECTIVES)}")
        require("depth", self.depth, self.depth in {18, 34}, "18 or 34")
        require("width", self.width, self.width >= 0, "at least 1, or 0 for the teacher's")
        require("epochs", self.epochs, self.epochs >= 1, "at least 1")
        require("batch_size", self.batch_size, self.batch_size >= 2, "at least 2 (batch normalisation)")
        for key in ("learning_rate", "temperature", "softness"):
            value = getattr(self, key)
            require(key, value, 0 < value < math.inf, "a positive number")
        if self.head and self.objective not in _HEADED:
            raise InputError(f"a student of {self.objective} has no head that could be kept")
        require("weight_decay", self.weight_decay, 0 <= self.weight_decay < math.inf, "at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillReport:
    """One epoch of `epochs`."""

    epoch: int  # from 1
    epochs: int
    images: int
    loss: float


def distill(
    teachers: Sequence[State],
    images: Images,
    labels: Labels | None,
    config: DistillConfig,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Callable[[DistillReport], None] | None = None,
) -> dict[str, NDArray[Any]]:
    """The state of a student. Labels are needed for every objective but `features`.

    For `labels`, teachers give the student's shape and nothing else. With `checkpoint` the run is saved after
    every epoch; with `resume` as well, a saved run of the same data, teachers and config goes on and ends in
    the very weights of an uninterrupted one.
    """
    _check(teachers, images, labels, config)
    models = [backbone_of(each) for each in teachers]
    width = config.width or models[0].width
    student = ResNet(depth=config.depth, channels=models[0].channels, width=width, rng=rng)
    task = _Task(teachers=models, student=student, images=images, labels=labels, config=config, rng=rng)
    run = _Run(task, _LESSONS[config.objective](task))
    if checkpoint is not None:
        run.begin(checkpoint, resume=resume)
    student.train()
    while len(run.reports) < config.epochs:
        run.epoch()
        if checkpoint is not None:
            save_checkpoint(checkpoint, run.saved())
        if progress is not None:
            progress(run.reports[-1])
    made = state_of(student)
    if config.head and isinstance(run.lesson, _Logits | _TrueLabels):
        made |= prefixed("fc", state_of(run.lesson.head))
    return made


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Task:
    """All that the leaker has."""

    teachers: list[ResNet]
    student: ResNet
    images: Images
    labels: Labels | None
    config: DistillConfig
    rng: np.random.Generator


class _Lesson(ABC):
    """What is to be learnt of images, and the loss of a batch. `aside` is thrown away afterwards."""

    targets: Tensor  # of the leaker's images as they are
    aside: nn.Module | None = None

    @abstractmethod
    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        """Targets of images `chosen` that are shown in another way."""

    @abstractmethod
    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        """Of a batch with its targets."""


class _Features(_Lesson):
    """The teacher's embedding; a student of another width learns it through a linear map (FitNets)."""

    def __init__(self, task: _Task) -> None:
        student = task.student
        self._teachers = task.teachers
        self.targets = _mean([torch.from_numpy(embed(each, task.images)) for each in task.teachers])
        self._temperature = task.config.temperature
        self._unit = float(self.targets.var(dim=0).mean())
        if not self._unit > 0:
            raise InputError("the teacher gives all images the same features")
        if student.features != self.targets.shape[1]:
            self.aside = linear(student.features, self.targets.shape[1], _generator(task.rng))

    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        return _mean([each(shown) for each in self._teachers])

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        made = features if self.aside is None else self.aside(features)
        error = (made - wanted).square().mean() / self._unit  # in variances, whatever the features' size
        return error + _divergence(made, wanted, self._temperature)


class _Logits(_Lesson):
    """The teacher's class scores, from distances to class means of the leaker's own samples."""

    def __init__(self, task: _Task) -> None:
        classes = _classes(task.labels)
        features = [torch.from_numpy(embed(each, task.images)) for each in task.teachers]
        self._teachers = task.teachers
        self._means = [_class_means(each, classes) for each in features]
        scores = _mean([_scores(*each) for each in zip(features, self._means, strict=True)])
        self._spread = float(scores.std(dim=1).mean())
        if not self._spread > 0:
            raise InputError("the teacher gives all classes the same scores")
        self.targets = scores / self._spread
        self._temperature = task.config.softness
        self.aside = self.head = self._answering(task, scores.shape[1])

    @staticmethod
    def _answering(task: _Task, classes: int) -> nn.Module:
        return linear(task.student.features, classes, _generator(task.rng))

    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        given = zip(self._teachers, self._means, strict=True)
        return _mean([_scores(each(shown), means) for each, means in given]) / self._spread

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        return _divergence(self.head(features), wanted, self._temperature)


class _Distances(_Logits):
    """The same, answered by distances in the student's own features."""

    @staticmethod
    def _answering(task: _Task, classes: int) -> nn.Module:
        return _Centres(task.student.features, classes, _generator(task.rng))


class _Centres(nn.Module):
    """Minus the squared distances to a centre a class, times a factor that is learnt as well."""

    def __init__(self, features: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes, features, generator=generator))
        self.log_factor = nn.Parameter(torch.tensor(-math.log(2.0 * features)))

    def forward(self, features: Tensor) -> Tensor:
        made: Tensor = self.log_factor.exp() * _scores(features, self.centres)
        return made


class _TrueLabels(_Lesson):
    """The classes themselves, through a linear head."""

    def __init__(self, task: _Task) -> None:
        self.targets = torch.from_numpy(_classes(task.labels))
        self.aside = self.head = linear(
            task.student.features, int(self.targets.max()) + 1, _generator(task.rng)
        )

    def taught(self, shown: Tensor, chosen: Tensor) -> Tensor:
        return self.targets[chosen]

    def loss(self, features: Tensor, wanted: Tensor) -> Tensor:
        return functional.cross_entropy(self.head(features), wanted)


_LESSONS: Final[dict[str, Callable[[_Task], _Lesson]]] = {
    "features": _Features,
    "logits": _Logits,
    "distances": _Distances,
    "labels": _TrueLabels,
}


def _class_means(features: Tensor, classes: NDArray[np.int64]) -> Tensor:
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


def _classes(labels: Labels | None) -> NDArray[np.int64]:
    """0, 1, ... in the order of the labels."""
    if labels is None:
        raise InputError("labels are needed for every objective but features")
    known, places = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise InputError(f"two classes are needed, the labels have {len(known)}")
    return places.astype(np.int64)


def _generator(rng: np.random.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(rng.integers(1 << 63)))


class _Run:
    """Everything that changes from epoch to epoch."""

    def __init__(self, task: _Task, lesson: _Lesson) -> None:
        config, student = task.config, task.student
        self._student, self.lesson, self._config, self._rng = student, lesson, config, task.rng
        self._images = task.images
        self._labels = np.zeros(len(task.images), np.int64) if task.labels is None else task.labels
        modules = {"model": student} | ({"aside": lesson.aside} if lesson.aside is not None else {})
        self._parameters = dict(nn.ModuleDict(modules).named_parameters())
        self._optimizer = torch.optim.Adam(
            self._parameters.values(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        self.reports: list[DistillReport] = []

    def epoch(self) -> None:
        """Every image once."""
        config, number = self._config, len(self.reports)
        order = self._rng.permutation(len(self._images))
        batches = [order[at : at + config.batch_size] for at in range(0, len(order), config.batch_size)]
        batches = [each for each in batches if len(each) >= 2]
        losses = 0.0
        for place, chosen in enumerate(batches):
            step = number * len(batches) + place
            for group in self._optimizer.param_groups:
                group["lr"] = cosine(config.learning_rate, step, config.epochs * len(batches))
            loss = self._loss(chosen)
            if not math.isfinite(loss.item()):
                raise InputError(f"epoch {number + 1}: the loss is {loss.item()}; lower the learning rate")
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._optimizer.step()
            losses += loss.item() * len(chosen)
        seen = sum(map(len, batches))
        self.reports.append(
            DistillReport(epoch=number + 1, epochs=config.epochs, images=seen, loss=losses / seen)
        )

    def _loss(self, chosen: NDArray[np.int64]) -> Tensor:
        shown, places = batch(self._images, chosen), torch.from_numpy(chosen)
        if not self._config.augment:
            return self.lesson.loss(self._student(shown), self.lesson.targets[places])
        shown = moved_about(shown, self._rng)
        with torch.no_grad():
            wanted = self.lesson.taught(shown, places)
        return self.lesson.loss(self._student(shown), wanted)

    def _facts(self) -> dict[str, Any]:
        """What a saved run must share with this one."""
        targets = self.lesson.targets.numpy()
        return {
            "config": asdict(self._config),
            "data": fingerprint(self._images, self._labels),
            "lesson": hashlib.sha256(np.ascontiguousarray(targets).tobytes()).hexdigest(),
        }

    def saved(self) -> Checkpoint:
        """All that the next epoch depends on, except data and teachers."""
        arrays = prefixed("model", state_of(self._student))
        if self.lesson.aside is not None:
            arrays |= prefixed("aside", state_of(self.lesson.aside))
        steps = 0
        for name, each in self._parameters.items():
            moments = self._optimizer.state[each]
            arrays |= {f"{key}.{name}": moments[key].numpy().copy() for key in _MOMENTS}
            steps = int(moments["step"])
        facts = self._facts() | {
            "rng": rng_state(self._rng),
            "steps": steps,
            "reports": [asdict(report) for report in self.reports],
        }
        return Checkpoint(kind=KIND, arrays=arrays, facts=facts)

    def begin(self, path: Path, *, resume: bool) -> None:
        """Take up the run saved at `path`, or see to it that a new one overwrites nothing."""
        rng_state(self._rng)
        saved = begun(path, kind=KIND, resume=resume)
        if saved is not None:
            self._restore(path, saved)

    def _restore(self, path: Path, saved: Checkpoint) -> None:
        check_same(path, saved, self._facts())
        load_state(self._student, saved.group("model"))
        if self.lesson.aside is not None:
            load_state(self.lesson.aside, saved.group("aside"))
        moments = {key: saved.group(key) for key in _MOMENTS}
        try:
            step = torch.tensor(float(saved.facts["steps"]))
            for name, each in self._parameters.items():
                kept = {key: torch.from_numpy(moments[key][name]).clone() for key in _MOMENTS}
                self._optimizer.state[each] = {"step": step.clone()} | kept
            restore_rng(self._rng, saved.facts["rng"])
            self.reports = [DistillReport(**report) for report in saved.facts["reports"]]
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedModel(f"{path}: the checkpoint lacks what a run needs to go on") from error


def _check(teachers: Sequence[State], images: Images, labels: Labels | None, config: DistillConfig) -> None:
    if not teachers:
        raise InputError("a student needs a teacher's shape at least")
    if images.ndim != 4 or len(images) < 2:
        raise InputError(
            f"images of shape {images.shape}: at least two of (channels, height, width) are needed"
        )
    if labels is not None and labels.shape != (len(images),):
        raise InputError(f"{len(images)} images, labels of shape {labels.shape}")
    if labels is None and config.objective != "features":
        raise InputError(f"objective {config.objective} needs labels")
