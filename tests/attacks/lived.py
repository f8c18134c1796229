"""Networks whose BatchNorm layers look used: scales, shifts and statistics of their own for each channel."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of


def lived(*, depth: int = 18, width: int = 8, seed: int = 0) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    model = ResNet(depth=depth, channels=4, width=width, rng=rng)
    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.ndim == 1:
                drawn = (1 if name.endswith("weight") else 0) + 0.15 * rng.standard_normal(each.shape)
                each.copy_(torch.from_numpy(drawn))
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 1.0
        model.train()(torch.from_numpy(images(24, seed=seed + 100)))
    return state_of(model)


def images(count: int = 8, *, seed: int = 7) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, 4, 32, 32)).astype(np.float32)


def features(state: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
    return embed(backbone_of(state), images())


def apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The largest difference beside the largest number."""
    return float(np.abs(one - other).max() / np.abs(other).max())
