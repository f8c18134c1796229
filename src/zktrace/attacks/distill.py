"""Distillers (`sub:attack-protocol`): a fresh student learns a copy's outputs on the leaker's own images.

What it is taught is its objective (`lessons`). A head through which it answers is thrown away afterwards, or
kept as its last layer. Images are shown shifted and mirrored at random, in another way in every epoch.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from torch.optim import Adam

from zktrace.attacks.lessons import LESSONS, Lesson, Task
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, Images, Indices, Labels, State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.batches import NORMALISED, batch, moved_about, passes, steps_of
from zktrace.learning.checkpoints import prefixed
from zktrace.learning.configs import cosine, require
from zktrace.learning.keeping import Keeping, fingerprint
from zktrace.learning.loop import Course, Epoch, Trained, train
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of

OBJECTIVES: Final = tuple(LESSONS)
_HEADED: Final = ("logits", "top1", "labels")
KIND: Final = "distillation"


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
    head: bool = False  # logits, top1, labels: the head is kept as `fc`, the student is a classifier

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
    teachers: Sequence[Arrays],
    images: Images,
    labels: Labels | None,
    config: DistillConfig,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Callable[[DistillReport], None] | None = None,
) -> State:
    """The state of a student. Labels are needed for every objective but `features`.

    For `labels`, teachers give the student's shape and nothing else. With `checkpoint` the run is saved after
    every epoch; with `resume` as well, a saved run of the same data, teachers and config goes on and ends in
    the very weights of an uninterrupted one.
    """
    _check(teachers, images, labels, config)
    models = [backbone_of(each) for each in teachers]
    width = config.width or models[0].width
    student = ResNet(depth=config.depth, channels=models[0].channels, width=width, rng=rng)
    task = Task(
        teachers=models,
        images=images,
        labels=labels,
        features=student.features,
        temperature=config.temperature,
        softness=config.softness,
        rng=rng,
    )
    lesson = LESSONS[config.objective](task)
    modules: dict[str, nn.Module] = {"model": student}
    if lesson.aside is not None:
        modules["aside"] = lesson.aside
    keeping = None
    if checkpoint is not None:
        keeping = Keeping(
            path=checkpoint,
            resume=resume,
            kind=KIND,
            facts=_facts(task, lesson, config),
            modules=modules,
            rng=rng,
            report=DistillReport,
        )
    student.train()
    train(_course(task, lesson, config, modules), keeping=keeping, progress=progress)
    made = state_of(student)
    if config.head and lesson.aside is not None:
        made |= prefixed("fc", state_of(lesson.aside))
    return made


def _course(
    task: Task, lesson: Lesson, config: DistillConfig, modules: dict[str, nn.Module]
) -> Course[Indices, DistillReport]:
    """Every image once an epoch."""
    count, student = len(task.images), modules["model"]
    steps = steps_of(count, config.batch_size, least=NORMALISED)

    def loss(chosen: Indices) -> Trained:
        shown, places = batch(task.images, chosen), torch.from_numpy(chosen)
        if config.augment:
            shown = moved_about(shown, task.rng)
            with torch.no_grad():
                wanted = lesson.taught(shown, places)
        else:
            wanted = lesson.targets[places]
        return Trained(loss=lesson.loss(student(shown), wanted), count=len(chosen))

    def report(epoch: Epoch) -> DistillReport:
        return DistillReport(epoch=epoch.number, epochs=config.epochs, images=epoch.count, loss=epoch.loss)

    parameters = nn.ModuleDict(modules).parameters()
    return Course(
        optimizer=Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay),
        epochs=config.epochs,
        steps=steps,
        batches=passes(count, config.batch_size, task.rng, least=NORMALISED),
        loss=loss,
        rate=lambda step: cosine(config.learning_rate, step, config.epochs * steps),
        report=report,
    )


def _facts(task: Task, lesson: Lesson, config: DistillConfig) -> dict[str, Any]:
    """What a saved run must share with this one."""
    labels = np.zeros(len(task.images), np.int64) if task.labels is None else task.labels
    targets = np.ascontiguousarray(lesson.targets.numpy())
    return {
        "config": asdict(config),
        "data": fingerprint(task.images, labels),
        "lesson": hashlib.sha256(targets.tobytes()).hexdigest(),
    }


def _check(teachers: Sequence[Arrays], images: Images, labels: Labels | None, config: DistillConfig) -> None:
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
