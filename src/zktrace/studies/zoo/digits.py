"""A multi-layer perceptron of scikit-learn on its handwritten digits: arrays that torch never saw."""

from itertools import pairwise
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.neural_network import MLPClassifier  # type: ignore[import-untyped]
from torch import Tensor, nn

from zktrace.learning.arrays import State
from zktrace.studies.zoo.tasks import SampleTask

HIDDEN = (256, 256)


class Perceptron(nn.Module):
    """What `MLPClassifier` computes before its softmax, with arrays named as it names them."""

    def __init__(self, sizes: tuple[int, ...] = (64, *HIDDEN, 10)) -> None:
        super().__init__()
        pairs = list(pairwise(sizes))
        self.coefs_ = nn.ParameterList(nn.Parameter(torch.zeros(pair)) for pair in pairs)
        self.intercepts_ = nn.ParameterList(nn.Parameter(torch.zeros(after)) for _, after in pairs)

    def forward(self, samples: Tensor) -> Tensor:
        """Samples to class scores."""
        layers = list(zip(self.coefs_, self.intercepts_, strict=True))
        for weights, biases in layers[:-1]:
            samples = torch.relu(samples @ weights + biases)
        weights, biases = layers[-1]
        found: Tensor = samples @ weights + biases
        return found


def digits() -> SampleTask:
    """1,797 handwritten digits; every fifth is held out."""
    found = load_digits()
    samples = (found.data / 16).astype(np.float32)
    labels = found.target.astype(np.int64)
    held = np.arange(len(labels)) % 5 == 0
    return SampleTask(train=(samples[~held], labels[~held]), test=(samples[held], labels[held]))


def fitted(task: SampleTask, *, seed: int, epochs: int) -> MLPClassifier:
    """As scikit-learn fits it, in single precision."""
    model = MLPClassifier(HIDDEN, max_iter=epochs, n_iter_no_change=epochs, random_state=seed)
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # it is told how long
        return model.fit(*task.train)


def arrays_of(model: MLPClassifier) -> State:
    """The weights that scikit-learn found."""
    found = {f"coefs_.{place}": each for place, each in enumerate(model.coefs_)}
    found |= {f"intercepts_.{place}": each for place, each in enumerate(model.intercepts_)}
    return {name: np.ascontiguousarray(each, np.float32) for name, each in found.items()}
