"""The networks of the zoo, by name: how each is built, trained, measured and trained further."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from torch import nn

from zktrace.errors import InputError, Refused
from zktrace.learning.arrays import Arrays, State
from zktrace.learning.resnet import ResNet
from zktrace.models import save_model
from zktrace.studies.zoo.convolutions import GroupNormResNet, NextNet, PlainNet
from zktrace.studies.zoo.digits import Perceptron, arrays_of, digits, fitted
from zktrace.studies.zoo.tasks import SampleTask, ZooTask, episodes, library_text, pictures
from zktrace.studies.zoo.training import Curriculum, Further, Told, adapted, finetuned, measured, trained
from zktrace.studies.zoo.transformers import LanguageModel, VisionTransformer

SEED: Final = 42  # of trained networks, unless another is asked for
STEPS: Final = 100  # of further training


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooNetwork:
    """One network of the zoo."""

    name: str
    build: Callable[[], nn.Module]
    lesson: Curriculum
    further: float  # rate of further training
    data: str  # what it learns: images, episodes, text or digits

    def task(self, cifar10: Path | None) -> ZooTask:
        """What it learns."""
        if self.data in _TASKS:
            return _TASKS[self.data]()
        if cifar10 is None:
            raise InputError(f"{self.name} learns CIFAR-10: name the folder of its batches (--cifar10)")
        return _PICTURES[self.data](cifar10)

    def train(
        self, task: ZooTask, *, seed: int = SEED, checkpoint: Path | None = None, progress: Told | None = None
    ) -> State:
        """A new one; of another seed than the zoo's after a third of the lesson: it is nobody's."""
        if not self.lesson.epochs:
            raise Refused(
                f"{self.name} is trained by a federation: put its model into {self.name}.safetensors"
            )
        share = 1 if seed == SEED else 3
        lesson = replace(self.lesson, epochs=-(-self.lesson.epochs // share))
        if isinstance(task, SampleTask) and self.data == "digits":
            return arrays_of(fitted(task, seed=seed, epochs=lesson.epochs))
        return trained(self.build, task, lesson, seed=seed, checkpoint=checkpoint, progress=progress)

    def path(self, folder: Path, *, seed: int = SEED) -> Path:
        """Where its file is."""
        return folder / f"{self.name}{'' if seed == SEED else f'-{seed}'}.safetensors"

    def kept(self, folder: Path, task: ZooTask, *, seed: int = SEED, progress: Told | None = None) -> Path:
        """Its file, which is made if it is missing."""
        path = self.path(folder, seed=seed)
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            checkpoint = path.with_suffix(".checkpoint")
            save_model(path, self.train(task, seed=seed, checkpoint=checkpoint, progress=progress))
            checkpoint.unlink(missing_ok=True)
        return path

    def measured(self, state: Arrays, task: ZooTask, *, part: int = 1) -> float:
        """On held-out data, or one in `part` of it."""
        return measured(self.build(), state, task, part=part)

    def finetuned(self, state: Arrays, task: ZooTask, *, seed: int, steps: int = STEPS) -> State:
        """All weights trained further."""
        how = Further(steps=steps, rate=self.further, batch=self.lesson.batch, seed=seed)
        return finetuned(self.build(), state, task, how)

    def adapted(self, state: Arrays, task: ZooTask, *, seed: int, steps: int = STEPS) -> State:
        """By LoRA, merged."""
        how = Further(steps=steps, rate=10 * self.further, batch=self.lesson.batch, seed=seed)
        return adapted(self.build(), state, task, how)


def _desk() -> nn.Module:
    """The ResNet-18 of the preset `desk`."""
    return ResNet(depth=18, channels=3, width=64, rng=np.random.default_rng(0))


_ENTRIES: Final = (
    ZooNetwork(name="resnet", build=_desk, lesson=Curriculum(epochs=0), further=1e-4, data="episodes"),
    ZooNetwork(
        name="cnn",
        build=PlainNet,
        lesson=Curriculum(epochs=9),
        further=1e-4,
        data="images",
    ),
    ZooNetwork(
        name="groupnorm",
        build=GroupNormResNet,
        lesson=Curriculum(epochs=6, rate=2e-3),
        further=1e-4,
        data="images",
    ),
    ZooNetwork(
        name="vit",
        build=VisionTransformer,
        lesson=Curriculum(epochs=9),
        further=1e-4,
        data="images",
    ),
    ZooNetwork(
        name="convnext",
        build=NextNet,
        lesson=Curriculum(epochs=6, rate=2e-3),
        further=1e-4,
        data="images",
    ),
    ZooNetwork(
        name="language",
        build=LanguageModel,
        lesson=Curriculum(epochs=12, steps=100, batch=16, rate=3e-3),
        further=1e-4,
        data="text",
    ),
    ZooNetwork(
        name="mlp",
        build=Perceptron,
        lesson=Curriculum(epochs=100),
        further=1e-3,
        data="digits",
    ),
)
ZOO: Final = {each.name: each for each in _ENTRIES}

_PICTURES: Final[dict[str, Callable[[Path], ZooTask]]] = {
    "images": cache(pictures),
    "episodes": cache(episodes),
}
_TASKS: Final[dict[str, Callable[[], ZooTask]]] = {"text": cache(library_text), "digits": cache(digits)}


def network_of(name: str) -> ZooNetwork:
    """The network of a name, or InputError."""
    try:
        return ZOO[name]
    except KeyError:
        raise InputError(f"no network {name!r}; known: {', '.join(ZOO)}") from None


def trainable() -> list[str]:
    """The names of those that are trained here."""
    return [name for name, each in ZOO.items() if each.lesson.epochs]
