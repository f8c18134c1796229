"""Cross-entropy pre-training and episodic training: SGD with momentum, weight decay, cosine annealing.

Deterministic in (model, data, config, rng) on one machine with a fixed number of torch threads. The caller
sets the threads; nothing here touches torch's global generator.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD

from zktrace.errors import InputError, MalformedModel
from zktrace.learning.checkpoints import (
    Checkpoint,
    begun,
    check_same,
    prefixed,
    restore_rng,
    rng_state,
    save_checkpoint,
)
from zktrace.learning.configs import EpisodicConfig, PretrainConfig, cosine
from zktrace.learning.episodes import EpisodeSampler, episode_outcome
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import load_state, state_of

Images = NDArray[Any]  # (n, channels, height, width)
Labels = NDArray[Any]  # (n,) integers
Penalty = Callable[[ResNet], Tensor]  # a scalar, already weighted, added to the task loss of every step

KIND = "pre-training"
SHIFT = 3  # pixels


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
    optimizer = _optimizer(config, list(model.parameters()))
    reports = []
    with _training(model):
        for number in range(config.episodes):
            features = model(batch(images, sampler.draw(rng).samples))
            outcome = episode_outcome(features, config.shape, config.temperature)
            extra = _step(optimizer, model, outcome.loss, penalty, f"episode {number + 1}")
            report = EpisodeReport(
                episode=number + 1,
                episodes=config.episodes,
                loss=outcome.loss.item(),
                penalty=extra,
                accuracy=outcome.accuracy,
            )
            reports.append(report)
            if progress is not None:
                progress(report)
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
    run = _Pretraining(model, images, labels, config, rng)
    if checkpoint is not None:
        run.begin(checkpoint, resume=resume)
    with _training(model):
        while len(run.reports) < config.epochs:
            run.epoch(penalty)
            if checkpoint is not None:
                save_checkpoint(checkpoint, run.saved())
            if progress is not None:
                progress(run.reports[-1])
    return tuple(run.reports)


class _Pretraining:
    """Everything that changes from epoch to epoch."""

    def __init__(
        self, model: ResNet, images: Images, labels: Labels, config: PretrainConfig, rng: np.random.Generator
    ) -> None:
        classes, self.targets = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"pre-training needs at least two classes, the labels have {len(classes)}")
        self.model, self.images, self.labels, self.config, self.rng = model, images, labels, config, rng
        self.head = _head(model.features, len(classes), rng)
        modules = nn.ModuleDict({"model": model, "head": self.head})
        self.parameters = dict(modules.named_parameters())
        self.optimizer = _optimizer(config, list(self.parameters.values()))
        self.reports: list[EpochReport] = []

    def epoch(self, penalty: Penalty | None) -> None:
        """Every sample once, or as many as the config says."""
        config, number = self.config, len(self.reports)
        _set_rate(self.optimizer, cosine(config.learning_rate, number, config.epochs))
        order = self.rng.permutation(len(self.targets))[: config.samples or None]
        losses, right, seen = 0.0, 0, 0
        for start in range(0, len(order), config.batch_size):
            chosen = order[start : start + config.batch_size]
            if len(chosen) < 2:  # batch normalisation has no statistics of a single image
                continue
            truth = torch.from_numpy(self.targets[chosen])
            logits = self.head(self.model(batch(self.images, chosen)))
            loss = functional.cross_entropy(logits, truth)
            _step(self.optimizer, self.model, loss, penalty, f"epoch {number + 1}")
            losses += loss.item() * len(chosen)
            right += int((logits.detach().argmax(dim=1) == truth).sum())
            seen += len(chosen)
        self.reports.append(
            EpochReport(
                epoch=number + 1,
                epochs=config.epochs,
                images=seen,
                loss=losses / seen,
                accuracy=right / seen,
            )
        )

    def saved(self) -> Checkpoint:
        """All that the next epoch depends on, except the data."""
        momentum = {
            name: self.optimizer.state[each]["momentum_buffer"].numpy()
            for name, each in self.parameters.items()
            if self.optimizer.state[each].get("momentum_buffer") is not None
        }
        arrays = prefixed("model", state_of(self.model)) | prefixed("head", state_of(self.head))
        return Checkpoint(
            kind=KIND,
            arrays=arrays | prefixed("momentum", momentum),
            facts=self._facts()
            | {"rng": rng_state(self.rng), "reports": [asdict(report) for report in self.reports]},
        )

    def _facts(self) -> dict[str, Any]:
        """What a saved run must share with this one."""
        return {"data": fingerprint(self.images, self.labels), "config": asdict(self.config)}

    def begin(self, path: Path, *, resume: bool) -> None:
        """Take up the run saved at `path`, or see to it that a new one overwrites nothing."""
        rng_state(self.rng)  # refuse a generator that cannot be saved now, not after an epoch
        saved = begun(path, kind=KIND, resume=resume)
        if saved is not None:
            self.restore(path, saved)

    def restore(self, path: Path, saved: Checkpoint) -> None:
        """Set everything to what `saved` says."""
        check_same(path, saved, self._facts())
        load_state(self.model, saved.group("model"))
        load_state(self.head, saved.group("head"))
        for name, array in saved.group("momentum").items():
            self.optimizer.state[self.parameters[name]]["momentum_buffer"] = torch.from_numpy(array).clone()
        try:
            restore_rng(self.rng, saved.facts["rng"])
            self.reports = [EpochReport(**report) for report in saved.facts["reports"]]
        except (KeyError, TypeError) as error:
            raise MalformedModel(f"{path}: the checkpoint lacks what a run needs to go on") from error


def fingerprint(images: Images, labels: Labels) -> dict[str, Any]:
    """What tells one training set from another: shape, and a hash of the labels and of 64 images."""
    chosen = np.linspace(0, len(images) - 1, num=min(64, len(images)), dtype=np.int64)
    digest = hashlib.sha256(np.asarray(labels, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(images[chosen]).tobytes())
    return {"shape": list(images.shape), "dtype": str(images.dtype), "sha256": digest.hexdigest()}


def moved_about(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Images of a batch shifted, all alike, by up to SHIFT pixels, half of them mirrored."""
    mirrored = torch.from_numpy(rng.random(len(images)) < 0.5)
    turned = torch.where(mirrored[:, None, None, None], images.flip(3), images)
    padded = functional.pad(turned, (SHIFT, SHIFT, SHIFT, SHIFT), mode="reflect")
    down, right = (int(each) for each in rng.integers(0, 2 * SHIFT + 1, 2))
    height, width = images.shape[2:]
    return padded[:, :, down : down + height, right : right + width]


def batch(images: Images, chosen: NDArray[np.int64]) -> Tensor:
    """Chosen images as float32, in memory that torch has aligned (products may depend on alignment)."""
    return torch.from_numpy(images[chosen]).to(torch.float32, copy=True)


def _head(features: int, classes: int, rng: np.random.Generator) -> nn.Linear:
    """torch's usual linear layer, drawn from `rng`."""
    head = nn.Linear(features, classes, device="meta").to_empty(device="cpu")
    generator = torch.Generator().manual_seed(int(rng.integers(1 << 63)))
    bound = 1 / math.sqrt(features)
    for each in head.parameters():
        nn.init.uniform_(each, -bound, bound, generator=generator)
    return head


def _optimizer(config: PretrainConfig | EpisodicConfig, parameters: list[nn.Parameter]) -> SGD:
    return SGD(
        parameters,
        lr=config.learning_rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        fused=True,  # one pass over memory a step
    )


def _set_rate(optimizer: SGD, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def _step(optimizer: SGD, model: ResNet, loss: Tensor, penalty: Penalty | None, place: str) -> float:
    """One update by the gradient of loss + penalty; the penalty's value."""
    extra = loss.new_zeros(()) if penalty is None else penalty(model)
    total = loss + extra
    if not math.isfinite(total.item()):
        raise InputError(f"{place}: the loss is {total.item()}; lower the learning rate, or check the data")
    optimizer.zero_grad()
    total.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return extra.item()


@contextmanager
def _training(model: nn.Module) -> Iterator[None]:
    """Training mode inside, the former mode afterwards."""
    before = model.training
    model.train()
    try:
        yield
    finally:
        model.train(before)


def _check_data(images: Images, labels: Labels) -> None:
    if images.ndim != 4 or labels.ndim != 1 or len(images) != len(labels):
        raise InputError(
            f"images of shape {images.shape} and labels of shape {labels.shape}: "
            "(n, channels, height, width) and (n,) are needed"
        )
    if len(images) < 2:
        raise InputError(f"{len(images)} images are too few to train on")
