"""What copies cost, against functions that measure one thing at a time."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.learning.configs import EpisodeShape
from zktrace.learning.cost import copy_cost
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.studies.copy_costs import copy_costs, halves


def test_halves_have_every_class_and_share_no_sample() -> None:
    labels = np.array([0] * 7 + [1] * 4 + [2])
    known, asked = halves(labels, 5)
    assert not set(known) & set(asked)
    assert sorted(labels[known]) == [0, 0, 0, 1, 1]
    assert sorted(labels[asked]) == [0, 0, 0, 0, 1, 1]  # a single sample is in neither half
    assert all((one == other).all() for one, other in zip(halves(labels, 5), (known, asked), strict=True))


def test_episodes_and_recall_are_those_of_each_model() -> None:
    draw = np.random.default_rng(2)
    images = draw.normal(size=(40, 3, 16, 16)).astype(np.float32)
    labels = np.repeat(np.arange(4), 10)
    images += labels[:, None, None, None].astype(np.float32)
    models = [state_of(resnet18(channels=3, width=4, rng=np.random.default_rng(n))) for n in range(3)]
    shape = EpisodeShape(way=3, shot=2, query=3)
    copies = [("a", models[1]), ("b", models[2])]
    found = copy_costs(models[0], copies, images, labels, shape=shape, seed=9)
    slow = copy_cost(models[0], copies, images, labels, shape=shape, seed=9)
    assert found["shared"] == slow.shared.mean
    assert found["copies"] == [each.mean for each in slow.copies.values()]
    assert (found["mean_cost_pp"], found["worst_cost_pp"]) == (slow.mean, slow.worst)
    assert found["recall"]["classes"] == [0, 1, 2, 3]
    assert found["far_proxy"]["shared"] == pytest.approx(1 - np.mean(found["recall"]["shared"]), abs=1e-4)
    one, other = (
        copy_costs(models[0], [each], images, labels, shape=shape, seed=9)["recall"]["copies"]
        for each in copies
    )
    assert found["recall"]["copies"] == pytest.approx(np.mean([one, other], axis=0).tolist(), abs=1e-4)
    same = copy_costs(models[0], [("a", models[0])], images, labels, shape=shape, seed=9)
    assert same["recall"]["copies"] == same["recall"]["shared"]
    assert same["mean_cost_pp"] == 0
