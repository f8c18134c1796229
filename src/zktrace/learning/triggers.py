"""Inputs made for a network at which a given class just overtakes all others: what an answer alone can tell.

From an input one goes up the gradient of the class's lead over the best other class, by steps that would
reach a small lead if scores were linear, and then back along the straight line to where it first leads. Such
inputs look like those they were made of, and are none of the data: what a copy answers there costs little.
"""

from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from zktrace.errors import InputError
from zktrace.learning.answers import Support, order_of
from zktrace.learning.arrays import Arrays, Images, Indices
from zktrace.learning.batches import batch
from zktrace.learning.embedding import Embedding
from zktrace.learning.evaluation import hear
from zktrace.learning.modes import in_mode
from zktrace.learning.network import embedding_of
from zktrace.readouts.network import Network
from zktrace.readouts.reader import check_inputs

_STEPS: Final = 8  # up the gradient
_BEYOND: Final = 0.1  # of the scores' deviation: the lead that a step aims at
_HALVINGS: Final = 12  # of the line back
_CHUNK: Final = 128  # inputs at a time


class Scores:
    """Class scores with gradients: minus squared distances to prototypes, or a network's own outputs."""

    def __init__(self, model: Embedding, prototypes: Tensor, order: Indices | None) -> None:
        self._model, self._prototypes, self._order = model, prototypes, order

    def __call__(self, shown: Tensor) -> Tensor:
        said = self._model.said(shown)
        if self._order is not None and said.outputs is not None:
            return said.outputs[:, torch.from_numpy(self._order)]
        return 2.0 * said.features @ self._prototypes.T - self._prototypes.square().sum(dim=1)


def leads(scores: Tensor, classes: Tensor) -> Tensor:
    """By how much a class of each row is ahead of the best other one."""
    wanted = classes[:, None]
    others = scores.scatter(1, wanted, -torch.inf).max(dim=1).values
    return scores.gather(1, wanted)[:, 0] - others


def release_triggers(
    shared: Arrays, asked: Arrays, classes: Indices, network: Network | None = None
) -> NDArray[np.float32]:
    """Of the inputs called `probes` that a release asks about, by its support and labels."""
    inputs = check_inputs(asked["probes"], "probes")
    support = Support(images=asked["support"], labels=asked["labels"])
    model = embedding_of(shared, inputs, network).requires_grad_(requires_grad=False)
    held = hear(model, support.images)
    prototypes = torch.from_numpy(support.means).float() @ held.features
    return triggers_of(model, Scores(model, prototypes, order_of(held.outputs, support)), inputs, classes)


def triggers_of(model: Embedding, scores: Scores, inputs: Images, classes: Indices) -> NDArray[np.float32]:
    """For each input, one at which its class just leads; where that is not reached, as near as it came."""
    with in_mode(model, training=False):
        parts = [
            _overtaken(scores, batch(inputs, chosen), torch.from_numpy(classes[chosen]))
            for chosen in np.array_split(np.arange(len(inputs)), -(-len(inputs) // _CHUNK))
        ]
    found = np.concatenate(parts)
    if not np.isfinite(found).all():
        raise InputError("the shared model's scores have no gradient that leads to another class")
    return found


def _overtaken(scores: Scores, start: Tensor, classes: Tensor) -> NDArray[np.float32]:
    far, axes = start, tuple(range(1, start.dim()))
    for _ in range(_STEPS):
        given = far.detach().clone()
        given.requires_grad = True
        said = scores(given)
        ahead = leads(said, classes)
        slope = torch.autograd.grad(ahead.sum(), given, allow_unused=True)[0] if ahead.requires_grad else None
        if slope is None:
            raise InputError("the network's answers have no gradient by its inputs: no triggers can be made")
        missing = (_BEYOND * float(said.detach().std()) - ahead.detach()).clamp(min=0.0)
        size = slope.square().sum(dim=axes).clamp(min=1e-12)
        far = given.detach() + _along(missing / size, slope)
    with torch.no_grad():
        low, high = torch.zeros(len(start)), torch.ones(len(start))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            ahead = leads(scores(start + _along(middle, far - start)), classes) >= 0
            low, high = torch.where(ahead, low, middle), torch.where(ahead, middle, high)
        found: NDArray[np.float32] = (start + _along(high, far - start)).numpy()
    return found


def _along(factors: Tensor, directions: Tensor) -> Tensor:
    return factors.reshape(-1, *[1] * (directions.dim() - 1)) * directions
