"""A ResNet in two parts: the trunk, which all copies share, and the last stage, whose convolutions are moved.

Whatever comes before the last stage is the same in all copies, so an image's way there is computed once.
Writers that train are courses of the one loop (`learning.loop`) over these convolutions: `write_by_training`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam

from zktrace.learning.arrays import Images, Indices
from zktrace.learning.batches import batch
from zktrace.learning.configs import cosine
from zktrace.learning.loop import Course, Trained, train
from zktrace.learning.resnet import ResNet

_CHUNK: Final = 256  # images at a time where nothing is trained
_FEATURES: Final = 512  # of a ResNet-18 of full width


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
        places: list[Indices] = [
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


def write_by_training(
    model: ResNet,
    batches: Iterator[Indices],
    loss: Callable[[Indices, int], Tensor],
    *,
    steps: int,
    learning_rate: float,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Move the convolutions of the last stage, and nothing else, by the loss of a batch at a step.

    Adam, annealed to 0; the rate is for 512 features, more in proportion for fewer. BatchNorm statistics are
    as the model's mode has them: fixed in evaluation mode.
    """
    rate = learning_rate * _FEATURES / model.features
    with only_convolutions(model.layer4) as trained:
        course = Course(
            optimizer=Adam(trained, lr=rate),
            epochs=steps,
            batches=enumerate(batches),
            loss=lambda numbered: Trained(loss=loss(numbered[1], numbered[0])),
            rate=lambda step: cosine(rate, step, steps),
            report=lambda step: step,
            unit="step",
        )
        train(course, progress=progress and (lambda step: progress(step.number / steps)))
