"""What a network says of inputs: its features, and class scores by a support. Of marks nothing is known here.

These are the functions that the carriers' table names: a model's arrays and what it is asked in, a row of
numbers for each input out. A network of somebody's own (`learning.network`) is handed in behind them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from zktrace.errors import InputError
from zktrace.learning.evaluation import embed, hear
from zktrace.learning.network import embedding_of
from zktrace.readouts.assignment import Indices, assign
from zktrace.readouts.directions import Floats
from zktrace.readouts.network import Network
from zktrace.readouts.reader import check_answers, check_inputs
from zktrace.readouts.scales import Arrays
from zktrace.readouts.views import in_views, mean_view


@dataclass(frozen=True, kw_only=True, eq=False)
class Support:
    """Labelled images from which class prototypes are made; labels are 0, 1, ..., each at least once."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_inputs(self.images, "a support")
        if self.labels.shape != (len(self.images),) or self.labels.dtype.kind not in "iu":
            raise InputError(
                f"labels of shape {self.labels.shape} for {len(self.images)} images of the support"
            )
        found = np.unique(self.labels)
        if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
            raise InputError("a support has at least two classes 0, 1, ..., and an image of each")

    @property
    def classes(self) -> int:
        """How many scores an image has."""
        return int(self.labels.max()) + 1

    @property
    def means(self) -> Floats:
        """(classes, images): what makes prototypes of features."""
        one_hot = (np.arange(self.classes)[:, None] == self.labels[None, :]).astype(np.float64)
        found: Floats = one_hot / one_hot.sum(axis=1, keepdims=True)
        return found


def features(arrays: Arrays, asked: Arrays, network: Network | None = None) -> Floats:
    """What the network makes of the inputs called `probes`."""
    inputs = check_inputs(asked["probes"], "probes")
    return embed(embedding_of(arrays, inputs, network), inputs).astype(np.float64)


def probe_scores(arrays: Arrays, asked: Arrays, network: Network | None = None) -> Floats:
    """Class scores of the inputs called `probes`, the mean over their views, by support and labels."""
    support = Support(images=asked["support"], labels=asked["labels"])
    return mean_view(class_scores(arrays, in_views(asked["probes"]), support, network))


def probe_features(arrays: Arrays, asked: Arrays, network: Network | None = None) -> Floats:
    """Features of the inputs called `probes`, the mean over their views."""
    inputs = in_views(check_inputs(asked["probes"], "probes"))
    model = embedding_of(arrays, inputs, network)
    check_answers(len(inputs), model.features)
    return mean_view(hear(model, inputs).features.numpy().astype(np.float64))


def embeds(arrays: Arrays, asked: Arrays, network: Network | None = None) -> bool:
    """Whether a model says features of the inputs called `probes`, and no score for each class."""
    support = Support(images=asked["support"], labels=asked["labels"])
    one = check_inputs(asked["probes"], "probes")[:1]
    outputs = hear(embedding_of(arrays, one, network), one).outputs
    return outputs is None or outputs.shape[1] != support.classes


def class_scores(
    arrays: Arrays, inputs: NDArray[np.float32], support: Support, network: Network | None = None
) -> Floats:
    """Minus the squared distances of inputs to the prototypes, both in the model's own features.

    A classifier with an output a class is taken at its word: its logits, in the order that gives the support
    the largest scores of its own classes.
    """
    model = embedding_of(arrays, inputs, network)
    check_answers(len(support.images), model.features)
    held, found = hear(model, support.images), hear(model, inputs)
    order = order_of(held.outputs, support)
    if order is not None and found.outputs is not None:
        scores: Floats = found.outputs.numpy().astype(np.float64)[:, order]
    else:
        here = found.features.numpy().astype(np.float64)
        prototypes = support.means @ held.features.numpy().astype(np.float64)
        squares = (here**2).sum(axis=1)[:, None] + (prototypes**2).sum(axis=1)
        scores = 2.0 * here @ prototypes.T - squares
    if not np.isfinite(scores).all():
        raise InputError("the model's numbers are too large to be read")
    return scores


def order_of(outputs: Tensor | None, support: Support) -> Indices | None:
    """Which output is about which class, from outputs of the support; None of what is no such classifier."""
    if outputs is None or outputs.shape[1] != support.classes:
        return None
    return assign(support.means @ outputs.numpy().astype(np.float64))
