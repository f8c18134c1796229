"""A network in two parts: the trunk, which all copies share, and the last stage, whose weights are moved.

Whatever comes before the last stage is the same in all copies, so an input's way there is computed once.
Writers that train are courses of the one loop (`learning.loop`) over the stage: `write_by_training`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from zktrace.learning.arrays import Images, Indices
from zktrace.learning.batches import batch
from zktrace.learning.configs import cosine
from zktrace.learning.embedding import Embedding
from zktrace.learning.loop import Course, Trained, train

_CHUNK: Final = 256  # images at a time where nothing is trained
_FEATURES: Final = 512  # of a ResNet-18 of full width


def trunks(model: Embedding, inputs: Images) -> Tensor:
    """What the last stage is given for each input."""
    with torch.no_grad():
        places: list[Indices] = [
            np.arange(first, min(first + _CHUNK, len(inputs))) for first in range(0, len(inputs), _CHUNK)
        ]
        return torch.cat([model.trunk(batch(inputs, chosen)) for chosen in places])


def heads(model: Embedding, inner: Tensor) -> Tensor:
    """Features of trunks, without gradients."""
    with torch.no_grad():
        return torch.cat([model.say(part).features for part in torch.split(inner, _CHUNK)])


@contextmanager
def only_the_stage(model: Embedding) -> Iterator[list[nn.Parameter]]:
    """What a writer may move, which alone has gradients inside the block."""
    trained = model.stage()
    moved = {id(each) for each in trained}
    for each in model.parameters():
        each.requires_grad_(id(each) in moved)
    try:
        yield trained
    finally:
        model.requires_grad_(True)


def write_by_training(
    model: Embedding,
    batches: Iterator[Indices],
    loss: Callable[[Indices, int], Tensor],
    *,
    steps: int,
    learning_rate: float,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Move the weights of the last stage, and nothing else, by the loss of a batch at a step.

    Adam, annealed to 0; the rate is for 512 features, more in proportion for fewer. BatchNorm statistics are
    as the model's mode has them: fixed in evaluation mode.
    """
    rate = learning_rate * _FEATURES / model.features
    with only_the_stage(model) as trained:
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
