"""A ResNet in two parts: the trunk, which all copies share, and the last stage, whose convolutions are moved.

Whatever comes before the last stage is the same in all copies, so an image's way there is computed once.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from zktrace.learning.resnet import ResNet
from zktrace.learning.training import Images, batch

_CHUNK = 256  # images at a time where nothing is trained


def trunk(model: ResNet, x: Tensor) -> Tensor:
    """From images to the input of the last stage."""
    x = x.contiguous(memory_format=model.layout)
    x = functional.relu(model.bn1(model.conv1(x)))
    x = functional.max_pool2d(x, 3, stride=2, padding=1)
    x = model.layer3(model.layer2(model.layer1(x)))
    return x


def head(model: ResNet, x: Tensor) -> Tensor:
    """From the input of the last stage to features."""
    pooled: Tensor = model.layer4(x).mean(dim=(2, 3))
    return pooled if model.fc is None else model.fc(pooled)


def trunks(model: ResNet, images: Images) -> Tensor:
    """What the last stage is given for each image."""
    with torch.no_grad():
        places: list[NDArray[np.int64]] = [
            np.arange(first, min(first + _CHUNK, len(images))) for first in range(0, len(images), _CHUNK)
        ]
        return torch.cat([trunk(model, batch(images, chosen)) for chosen in places])


def heads(model: ResNet, inputs: Tensor) -> Tensor:
    """Features of trunks, without gradients."""
    with torch.no_grad():
        return torch.cat([head(model, part) for part in torch.split(inputs, _CHUNK)])


@contextmanager
def only_convolutions(stage: nn.Module) -> Iterator[list[nn.Parameter]]:
    """The convolutions of a stage, which alone have gradients inside the block."""
    norms = {
        id(each)
        for module in stage.modules()
        if isinstance(module, nn.BatchNorm2d)
        for each in module.parameters()
    }
    trained = [each for each in stage.parameters() if id(each) not in norms]
    for each in stage.parameters():
        each.requires_grad_(id(each) not in norms)
    try:
        yield trained
    finally:
        for each in stage.parameters():
            each.requires_grad_(True)
