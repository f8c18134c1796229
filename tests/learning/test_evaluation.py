"""Evaluation against slow references."""

import math
import statistics

import numpy as np
import pytest
import torch

from learning.synthetic import narrow, task
from zktrace.errors import InputError
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.episodes import EpisodeSampler
from zktrace.learning.evaluation import class_recall, embed, episode_accuracy, geometry

SHAPE = EpisodeShape(way=3, shot=2, query=4)


def clouds(samples: int = 60, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping clouds of unequal size."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, classes, samples)) * 3
    centres = np.random.default_rng(7).standard_normal((3 * classes, 5))
    return (centres[labels] + rng.standard_normal((samples, 5))).astype(np.float32), labels


def test_embedding_is_the_model_in_evaluation_mode() -> None:
    model = narrow().train()
    images, _ = task(11)
    features = embed(model, images, batch_size=4)
    assert model.training
    model.eval()
    with torch.no_grad():
        wanted = model(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(features, wanted, rtol=1e-4, atol=1e-5)
    assert embed(model, images[:0]).shape == (0, 32)


def test_episode_accuracy_equals_plain_loops() -> None:
    features, labels = clouds()
    rng = np.random.default_rng(3)
    found = []
    sampler = EpisodeSampler(labels, SHAPE)
    for _ in range(20):
        episode = sampler.draw(rng)
        centres = [features[row].astype(np.float64).mean(axis=0) for row in episode.support]
        right = [
            min(range(3), key=lambda k: math.dist(features[at], centres[k])) == row
            for row in range(3)
            for at in episode.query[row]
        ]
        found.append(sum(right) / len(right))
    score = episode_accuracy(features, labels, SHAPE, np.random.default_rng(3), episodes=20)
    assert score.mean == pytest.approx(statistics.fmean(found))
    assert score.half_width == pytest.approx(1.959964 * statistics.stdev(found) / 20**0.5, rel=1e-6)
    assert str(score) == f"{100 * score.mean:.1f} ± {100 * score.half_width:.1f} %"


def test_geometry_equals_double_loops() -> None:
    features, labels = clouds()
    points = features.astype(np.float64).tolist()
    count = len(points)
    groups = {k: [i for i in range(count) if labels[i] == k] for k in sorted(set(labels.tolist()))}
    far = [[math.dist(a, b) for b in points] for a in points]
    silhouettes, nearest = [], []
    for i in range(count):
        own = groups[int(labels[i])]
        a = sum(far[i][j] for j in own) / (len(own) - 1)
        b = min(sum(far[i][j] for j in each) / len(each) for k, each in groups.items() if k != labels[i])
        silhouettes.append((b - a) / max(a, b))
        closest = min((j for j in range(count) if j != i), key=far[i].__getitem__)
        nearest.append(labels[closest] == labels[i])
    means = {k: [sum(points[i][d] for i in each) / len(each) for d in range(5)] for k, each in groups.items()}
    intra = [sum(math.dist(points[i], means[k]) for i in each) / len(each) for k, each in groups.items()]
    inter = [math.dist(means[j], means[k]) for j in groups for k in groups if j < k]
    found = geometry(features, labels)
    assert found.silhouette == pytest.approx(statistics.fmean(silhouettes), rel=1e-4)
    assert found.intra == pytest.approx(statistics.fmean(intra), rel=1e-5)
    assert found.inter == pytest.approx(statistics.fmean(inter), rel=1e-5)
    assert found.nearest == pytest.approx(statistics.fmean(nearest))


def test_a_sample_is_not_its_own_neighbour() -> None:
    """Two equal points of different classes: each is the other's nearest."""
    features = np.array([[0.0], [0.0], [5.0], [5.1]])
    assert geometry(features, np.array([0, 1, 0, 0])).nearest == 0.5


def test_recall_in_the_original_label_space() -> None:
    known, known_labels = clouds(80, seed=1)
    features, labels = clouds(70, seed=2)
    centres = {int(k): known[known_labels == k].astype(np.float64).mean(axis=0) for k in set(known_labels)}
    hits: dict[int, list[bool]] = {}
    for point, label in zip(features, labels.tolist(), strict=True):
        named = min(centres, key=lambda k: math.dist(point, centres[k]))
        hits.setdefault(label, []).append(named == label)
    found = class_recall(known, known_labels, features, labels)
    assert found.by_class == pytest.approx({k: statistics.fmean(each) for k, each in hits.items()})
    assert found.mean == pytest.approx(statistics.fmean(found.by_class.values()))


def test_what_cannot_be_evaluated_is_said() -> None:
    features, labels = clouds()
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="no 9-way"):
        episode_accuracy(features, labels, EpisodeShape(way=9), rng)
    with pytest.raises(InputError, match="at least 2"):
        episode_accuracy(features, labels, SHAPE, rng, episodes=1)
    with pytest.raises(InputError, match="do not fit"):
        geometry(features, labels[1:])
    with pytest.raises(InputError, match="1 classes have no geometry"):
        geometry(features, labels * 0)
    with pytest.raises(InputError, match="class 99 has no sample"):
        class_recall(features, labels, features[:1], np.array([99]))
    features[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        geometry(features, labels)
