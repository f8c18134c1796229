"""A small task that a narrow network learns in seconds: one fixed pattern a class, under noise."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.learning.configs import PretrainConfig
from zktrace.learning.resnet import ResNet, resnet18
from zktrace.learning.states import state_of
from zktrace.learning.training import pretrain


def task(
    samples: int, *, classes: int = 6, channels: int = 4, noise: float = 1.0, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Images (samples, channels, 32, 32) and labels 10, 11, ...: the patterns do not depend on the seed."""
    patterns = np.random.default_rng(99).standard_normal((classes, channels, 32, 32))
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % classes
    images = patterns[labels] + noise * rng.standard_normal((samples, channels, 32, 32))
    return images.astype(np.float32), labels.astype(np.int64) + 10


def narrow(seed: int = 0, *, width: int = 4, channels: int = 4) -> ResNet:
    """A ResNet-18 with few channels."""
    return resnet18(channels=channels, width=width, rng=np.random.default_rng(seed))


@cache
def taught(*, width: int = 4) -> dict[str, NDArray[Any]]:
    """A narrow network after two epochs of the task. One object for all: look, do not touch."""
    model, (images, labels) = narrow(width=width), task(240)
    config = PretrainConfig(epochs=2, batch_size=60)
    pretrain(model, images, labels, config, np.random.default_rng(0))
    return state_of(model)


def same(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> bool:
    """Bit for bit."""
    return first.keys() == second.keys() and all(
        first[name].dtype == second[name].dtype and first[name].tobytes() == second[name].tobytes()
        for name in first
    )
