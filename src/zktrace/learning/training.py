"""Cross-entropy pre-training and episodic training: SGD with momentum, weight decay, cosine annealing.

Deterministic in (model, data, config, rng) on one machine with a fixed number of torch threads. The caller
sets the threads; nothing here touches torch's global generator.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD

from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Indices, Labels
from zktrace.learning.batches import NORMALISED, batch, passes, steps_of
from zktrace.learning.configs import EpisodicConfig, PretrainConfig, cosine
from zktrace.learning.episodes import EpisodeSampler, episode_outcome
from zktrace.learning.keeping import Keeping, fingerprint
from zktrace.learning.loop import Course, Epoch, Trained, train
from zktrace.learning.modes import in_mode
from zktrace.learning.resnet import ResNet, generator_of, linear

Penalty = Callable[[ResNet], Tensor]  # a scalar, already weighted, added to the task loss of every step

KIND: Final = "pre-training"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochReport:
    """Means over the batches of one epoch."""

    epoch: int  # from 1
    epochs: int
    images: int
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeReport:
    """One episode of `episodes`."""

    episode: int  # from 1
    episodes: int
    loss: float  # of the task
    penalty: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodicReport:
    """Means over the episodes of one call."""

    episodes: int
    images: int
    loss: float
    penalty: float
    accuracy: float


def train_episodes(
    model: ResNet,
    images: Images,
    labels: Labels,
    config: EpisodicConfig,
    rng: np.random.Generator,
    *,
    penalty: Penalty | None = None,
    progress: Callable[[EpisodeReport], None] | None = None,
) -> EpisodicReport:
    """Train `model` in place on episodes of these samples. Batch statistics are those of the whole episode.

    Raises `InputError` before the model is touched if no such episode can be formed (`episodes.can_form`).
    """
    _check_data(images, labels)
    sampler = EpisodeSampler(labels, config.shape)

    def loss(chosen: Indices) -> Trained:
        found = episode_outcome(model(batch(images, chosen)), config.shape, config.temperature)
        return Trained(
            loss=found.loss, right=found.accuracy, penalty=None if penalty is None else penalty(model)
        )

    def report(episode: Epoch) -> EpisodeReport:
        return EpisodeReport(
            episode=episode.number,
            episodes=config.episodes,
            loss=episode.loss,
            penalty=episode.penalty,
            accuracy=episode.accuracy,
        )

    course = Course(
        optimizer=_optimizer(config, list(model.parameters())),
        epochs=config.episodes,
        batches=sampler.samples(rng),
        loss=loss,
        rate=lambda _: config.learning_rate,
        report=report,
        unit="episode",
    )
    with in_mode(model, training=True):
        reports = train(course, progress=progress)
    return EpisodicReport(
        episodes=config.episodes,
        images=config.episodes * config.shape.images,
        loss=float(np.mean([each.loss for each in reports])),
        penalty=float(np.mean([each.penalty for each in reports])),
        accuracy=float(np.mean([each.accuracy for each in reports])),
    )


def pretrain(
    model: ResNet,
    images: Images,
    labels: Labels,
    config: PretrainConfig,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
    resume: bool = False,
    penalty: Penalty | None = None,
    progress: Callable[[EpochReport], None] | None = None,
) -> tuple[EpochReport, ...]:
    """Train `model` in place to name the classes, through a linear head that is thrown away.

    With `checkpoint`, the state is saved there after every epoch. With `resume` as well, a saved run of the
    same data and config is taken up and ends in the very weights of an uninterrupted one (given a penalty
    without a state of its own); where nothing was saved yet, it starts. `model` and `rng` are overwritten.
    """
    _check_data(images, labels)
    classes, targets = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"pre-training needs at least two classes, the labels have {len(classes)}")
    modules = {"model": model, "head": linear(model.features, len(classes), generator_of(rng))}
    keeping = None
    if checkpoint is not None:
        keeping = Keeping(
            path=checkpoint,
            resume=resume,
            kind=KIND,
            facts={"data": fingerprint(images, labels), "config": asdict(config)},
            modules=modules,
            rng=rng,
            report=EpochReport,
        )

    def loss(chosen: Indices) -> Trained:
        truth = torch.from_numpy(targets[chosen])
        logits = modules["head"](model(batch(images, chosen)))
        right = int((logits.detach().argmax(dim=1) == truth).sum())
        found = functional.cross_entropy(logits, truth)
        return Trained(
            loss=found, count=len(chosen), right=right, penalty=None if penalty is None else penalty(model)
        )

    course = _pretraining(config, nn.ModuleDict(modules), len(targets), loss, rng)
    with in_mode(model, training=True):
        return train(course, keeping=keeping, progress=progress)


def _pretraining(
    config: PretrainConfig,
    modules: nn.Module,
    count: int,
    loss: Callable[[Indices], Trained],
    rng: np.random.Generator,
) -> Course[Indices, EpochReport]:
    """Every sample once an epoch, or as many as the config says."""
    steps = steps_of(count, config.batch_size, samples=config.samples, least=NORMALISED)

    def report(epoch: Epoch) -> EpochReport:
        return EpochReport(
            epoch=epoch.number,
            epochs=config.epochs,
            images=epoch.count,
            loss=epoch.loss,
            accuracy=epoch.accuracy,
        )

    return Course(
        optimizer=_optimizer(config, list(modules.parameters())),
        epochs=config.epochs,
        steps=steps,
        batches=passes(count, config.batch_size, rng, samples=config.samples, least=NORMALISED),
        loss=loss,
        rate=lambda step: cosine(config.learning_rate, step // steps, config.epochs),
        report=report,
    )


def _optimizer(config: PretrainConfig | EpisodicConfig, parameters: list[nn.Parameter]) -> SGD:
    return SGD(
        parameters,
        lr=config.learning_rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        fused=True,  # one pass over memory a step
    )


def _check_data(images: Images, labels: Labels) -> None:
    if images.ndim != 4 or labels.ndim != 1 or len(images) != len(labels):
        raise InputError(
            f"images of shape {images.shape} and labels of shape {labels.shape}: "
            "(n, channels, height, width) and (n,) are needed"
        )
    if len(images) < 2:
        raise InputError(f"{len(images)} images are too few to train on")
