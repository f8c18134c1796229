"""A copy as a service: a head of the leaker's own behind the copy's features, which answers with classes.

Whoever asks is told a class and nothing else. The head is the leaker's: multinomial logistic regression on
the features of its own labelled images. Nothing of the copy changes.
"""

from typing import Final

import numpy as np
import torch
from torch.nn import functional
from torch.optim import Adam

from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, Images, Indices, Labels, State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed

_STEPS: Final = 150  # over all images
_RATE: Final = 0.01


def with_head(copy: Arrays, images: Images, labels: Labels) -> State:
    """The copy with a last layer `fc`: an output for each label, in their order."""
    known, classes = np.unique(labels, return_inverse=True)
    if len(labels) != len(images) or len(known) < 2:
        raise InputError("a head needs labelled images of two classes or more")
    features = torch.from_numpy(embed(backbone_of(copy), images))
    origin, size = features.mean(dim=0), features.std(dim=0).clamp(min=1e-6)
    given, wanted = (features - origin) / size, torch.from_numpy(classes)
    weight = torch.zeros(len(known), features.shape[1], requires_grad=True)
    bias = torch.zeros(len(known), requires_grad=True)
    optimizer = Adam([weight, bias], lr=_RATE)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(given @ weight.T + bias, wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    scaled = weight.detach() / size
    made = {name: np.asarray(array) for name, array in copy.items()}
    made["fc.weight"], made["fc.bias"] = scaled.numpy(), (bias.detach() - scaled @ origin).numpy()
    return made


def answers_of(model: Arrays, images: Images) -> Indices:
    """The class that a model with a head answers with, of each image."""
    found: Indices = embed(backbone_of(model), images).argmax(axis=1).astype(np.int64)
    return found
