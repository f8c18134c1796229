"""Triggers stand where their class just overtakes, near the inputs that they were made of."""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

import torch

from learning.synthetic import task, taught
from zktrace.errors import InputError
from zktrace.learning.answers import Support, class_scores
from zktrace.learning.triggers import leads, release_triggers
from zktrace.readouts.labels import trigger_classes
from zktrace.readouts.network import Network

CLASSES = 6
HELD, LABELS = task(5 * CLASSES, seed=2)
IMAGES = task(96, seed=1)[0]
ASKED = {"probes": IMAGES, "support": HELD, "labels": LABELS - 10}


def says(images: NDArray[np.float32]) -> NDArray[np.float64]:
    return class_scores(taught(width=8), images, Support(images=HELD, labels=LABELS - 10))


@cache
def made() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    classes = trigger_classes(says(IMAGES))
    return release_triggers(taught(width=8), ASKED, classes), classes


def test_a_lead_is_over_the_best_other_class() -> None:
    rng = np.random.default_rng(0)
    scores, classes = rng.standard_normal((20, 4)), rng.integers(0, 4, 20)
    slow = [
        row[k] - max(v for j, v in enumerate(row) if j != k) for row, k in zip(scores, classes, strict=True)
    ]
    assert leads(torch.from_numpy(scores), torch.from_numpy(classes)).numpy() == pytest.approx(slow)


def test_two_classes_are_level_at_a_trigger_and_it_looks_like_its_probe() -> None:
    found, classes = made()
    assert found.dtype == np.float32
    assert found.shape == IMAGES.shape
    scores, before = says(found), says(IMAGES)
    row = np.arange(len(found))
    assert (before.argmax(axis=1) != classes).all()
    assert (scores.argmax(axis=1) == classes).mean() > 0.9
    highest = np.sort(scores, axis=1)
    assert np.median(highest[:, -1] - highest[:, -2]) < 0.02 * scores.std()
    assert np.median(before.max(axis=1) - before[row, classes]) > 0.2 * scores.std()
    assert np.abs(found - IMAGES).mean() < 0.3 * IMAGES.std()


def test_the_same_are_made_again() -> None:
    found, classes = made()
    again = release_triggers(taught(width=8), ASKED, classes)
    assert np.allclose(again, found, atol=1e-4)


class Deaf(torch.nn.Module):
    """Says the same whatever it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 8)
        self.last = torch.nn.Linear(8, CLASSES)

    def forward(self, shown: torch.Tensor) -> torch.Tensor:
        return self.last(self.inner(shown.detach()[:, 0, 0, :3].round()))


def test_answers_without_a_gradient_have_no_triggers() -> None:
    torch.manual_seed(0)
    state = {name: each.numpy() for name, each in Deaf().state_dict().items()}
    with pytest.raises(InputError, match="no gradient"):
        release_triggers(state, ASKED, np.zeros(len(IMAGES), np.int64), Network(make=Deaf, features="inner"))
