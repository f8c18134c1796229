"""What a network says of images: its features, and class scores by a support. Of marks nothing is known here.

These are the networks that the carriers' table names: a model's arrays under plain names and what it is asked
in, a row of numbers for each image out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet
from zktrace.readouts.assignment import assign
from zktrace.readouts.directions import Floats
from zktrace.readouts.reader import check_answers, check_images
from zktrace.readouts.scales import Arrays
from zktrace.readouts.views import in_views, mean_view


@dataclass(frozen=True, kw_only=True, eq=False)
class Support:
    """Labelled images from which class prototypes are made; labels are 0, 1, ..., each at least once."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        check_images(self.images, "a support")
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


def features(arrays: Arrays, asked: Arrays) -> Floats:
    """What the network makes of the images called `probes`."""
    images = check_images(asked["probes"], "probes")
    return embed(_network(arrays, images), images).astype(np.float64)


def probe_scores(arrays: Arrays, asked: Arrays) -> Floats:
    """Class scores of the images called `probes`, the mean over their views, by support and labels."""
    support = Support(images=asked["support"], labels=asked["labels"])
    return mean_view(class_scores(arrays, in_views(asked["probes"]), support))


def class_scores(arrays: Arrays, images: NDArray[np.float32], support: Support) -> Floats:
    """Minus the squared distances of images to the prototypes, both in the model's own features.

    A classifier with an output a class is taken at its word: its logits, in the order that gives the support
    the largest scores of its own classes.
    """
    model = _network(arrays, images)
    check_answers(len(support.images), model.features)
    prototypes = support.means @ embed(model, support.images).astype(np.float64)
    found = embed(model, images).astype(np.float64)
    if model.fc is not None and model.features == support.classes:
        scores: Floats = found[:, assign(prototypes)]
    else:
        squares = (found**2).sum(axis=1)[:, None] + (prototypes**2).sum(axis=1)
        scores = 2.0 * found @ prototypes.T - squares
    if not np.isfinite(scores).all():
        raise InputError("the model's numbers are too large to be read")
    return scores


def _network(arrays: Arrays, images: NDArray[np.float32]) -> ResNet:
    """The network of a state, if it takes such images and does not say too much of them."""
    model = backbone_of(arrays)
    if model.channels != images.shape[1]:
        raise InputError(
            f"the model takes images of {model.channels} channels, the probes have {images.shape[1]}"
        )
    check_answers(len(images), model.features)
    return model
