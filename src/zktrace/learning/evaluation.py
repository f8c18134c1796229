"""How good features are: few-shot accuracy, geometry of the classes, recall of each class."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import silhouette_score  # type: ignore[import-untyped]
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.batches import batch
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.embedding import Embedding, Said
from zktrace.learning.episodes import EpisodeSampler, episode_outcome
from zktrace.learning.modes import in_mode

Features = NDArray[Any]  # (n, d)


def embed(model: Embedding, images: Images, *, batch_size: int = 256) -> NDArray[np.float32]:
    """Features of images by the model as it would be deployed: running statistics, no gradient."""
    with in_mode(model, training=False), torch.inference_mode():
        parts = [
            model(batch(images, np.arange(start, min(start + batch_size, len(images))))).numpy()
            for start in range(0, len(images), batch_size)
        ]
    return np.concatenate(parts) if parts else np.zeros((0, model.features), dtype=np.float32)


def hear(model: Embedding, images: Images, *, batch_size: int = 256) -> Said:
    """The same with its outputs, for whoever goes on in torch; there must be images."""
    with in_mode(model, training=False), torch.no_grad():
        parts = [
            model.said(batch(images, np.arange(start, min(start + batch_size, len(images)))))
            for start in range(0, len(images), batch_size)
        ]
    outputs = [each.outputs for each in parts if each.outputs is not None]
    return Said(
        features=torch.cat([each.features for each in parts]), outputs=torch.cat(outputs) if outputs else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeScore:
    """Mean accuracy over episodes, and half the width of its confidence interval (normal, over episodes)."""

    mean: float
    half_width: float
    confidence: float
    episodes: int

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.half_width:.1f} %"


def episode_accuracy(
    features: Features,
    labels: Labels,
    shape: EpisodeShape,
    rng: np.random.Generator,
    *,
    episodes: int = 200,
    confidence: float = 0.95,
) -> EpisodeScore:
    """Accuracy of nearest prototypes on episodes drawn from embedded samples.

    With fixed statistics an image's features do not depend on its batch, so each is embedded only once.
    """
    _check(features, labels)
    if episodes < 2:
        raise InputError(f"{episodes} episodes: a confidence interval needs at least 2")
    sampler = EpisodeSampler(labels, shape)
    table = torch.from_numpy(np.array(features))
    found = [episode_outcome(table[sampler.draw(rng).samples], shape).accuracy for _ in range(episodes)]
    quantile = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return EpisodeScore(
        mean=statistics.fmean(found),
        half_width=quantile * statistics.stdev(found) / episodes**0.5,
        confidence=confidence,
        episodes=episodes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """How the classes lie in feature space (Euclidean)."""

    silhouette: float  # mean over samples
    intra: float  # distance of a sample to the mean of its class: mean in a class, then over classes
    inter: float  # distance between the means of two classes: mean over pairs
    nearest: float  # leave-one-out accuracy of the nearest neighbour


def geometry(features: Features, labels: Labels) -> Geometry:
    """Quadratic in the number of samples: some thousands are plenty."""
    _check(features, labels)
    classes = np.unique(labels)
    if not 2 <= len(classes) < len(labels):
        raise InputError(f"{len(labels)} samples of {len(classes)} classes have no geometry to measure")
    centres = class_means(features, labels)
    means = np.stack([centres[int(k)] for k in classes])
    spread = [np.linalg.norm(features[labels == k] - centres[int(k)], axis=1).mean() for k in classes]
    apart = np.linalg.norm(means[:, None] - means[None], axis=2)[np.triu_indices(len(classes), 1)]
    neighbours = NearestNeighbors(n_neighbors=1).fit(features).kneighbors(return_distance=False)[:, 0]
    return Geometry(
        silhouette=float(silhouette_score(features, labels)),
        intra=float(np.mean(spread)),
        inter=float(apart.mean()),
        nearest=float((labels[neighbours] == labels).mean()),
    )


def class_means(features: Features, labels: Labels) -> dict[int, NDArray[np.float64]]:
    """The prototype of each class from all its samples."""
    return {int(k): features[labels == k].mean(axis=0, dtype=np.float64) for k in np.unique(labels)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """For each class that was asked about, the fraction of its samples that were named rightly."""

    by_class: Mapping[int, float]

    @property
    def mean(self) -> float:
        """Every class counts the same."""
        return statistics.fmean(self.by_class.values())


def class_recall(known: Features, known_labels: Labels, features: Features, labels: Labels) -> Recall:
    """Recall in the original label space: the nearest among the prototypes of all classes in `known`."""
    _check(known, known_labels)
    _check(features, labels)
    centres = class_means(known, known_labels)
    unseen = sorted(set(np.unique(labels).tolist()) - set(centres))
    if unseen:
        raise InputError(f"class {unseen[0]} has no sample to form a prototype from")
    classes = np.array(list(centres))
    distances = np.stack([((features - centre) ** 2).sum(axis=1) for centre in centres.values()], axis=1)
    named = classes[distances.argmin(axis=1)]
    return Recall(by_class={int(k): float((named[labels == k] == k).mean()) for k in np.unique(labels)})


def _check(features: Features, labels: Labels) -> None:
    if features.ndim != 2 or labels.shape != (len(features),) or not len(features):
        raise InputError(f"features of shape {features.shape} and labels of shape {labels.shape} do not fit")
    if not np.isfinite(features).all():
        raise InputError("some features are NaN or infinite")
