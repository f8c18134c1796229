"""A word in what a model says: class scores of probes, less the shared model's (`readouts.scores`).

A fixed set of labelled images that only the server holds, the support, turns an embedding into scores: minus
the squared distance to the prototype of each class, the prototypes made from the *suspect's own* embedding of
the support. Rotating, rescaling or renaming features changes no distance, and a student that copies the
function copies the scores. A probe is shown in several views, shifted and mirrored, and its scores are their
mean: a bit stands in all of them, a student's errors differ.

The writer trains the last stage's convolutions; the prototypes are made anew from the support at every step.
Two steps of three show the probes shifted by a few pixels and mirrored: a bit that stands in the surroundings
of its probe is learnt by a student that never saw the probe. Beside the mark stand a loss that keeps the
features of other images near where they are, of all classes alike, and one that keeps what the model decides,
there and at the probes. A word of the feature carrier is trained in the same run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.answers import Support
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import cosine
from zktrace.learning.evaluation import embed
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import State, state_of
from zktrace.learning.training import Images, batch, moved_about
from zktrace.marking.feature import FeatureMark, FeatureWriter
from zktrace.marking.last_stage import head, only_convolutions, trunk, trunks
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.reader import check_images
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import output_frames, scattered
from zktrace.readouts.suspects import plain

_FEATURES: Final = 512  # of a ResNet-18 of full width

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConfig:
    """How a word is written; the margin is in standard deviations of the shared model's own projections."""

    margin: float = 1.0
    passes: int = 48  # over all probes
    batch_size: int = 128  # probes a step
    beside: int = 100  # other images a step
    weight: float = 12.0  # of the mark's loss
    keep: float = 0.02  # of the loss that keeps features of other images
    companion: float = 0.1  # of the loss of a feature mark that is written in the same run
    answers: float = 3.0  # of the loss that keeps the answers to probes and other images
    sharpness: float = 4.0  # of those answers: the larger, the more they are about the highest classes alone
    learning_rate: float = 3e-4  # Adam, annealed to 0; for 512 features, more in proportion for fewer

    def __post_init__(self) -> None:
        numbers = (self.margin, self.weight, self.learning_rate, self.sharpness)
        weights = (self.keep, self.companion, self.answers)
        if min(numbers) <= 0 or not np.isfinite([*numbers, *weights]).all() or min(weights) < 0:
            raise InputError(
                "margin, weight, sharpness and learning rate of an output mark must be positive numbers"
            )
        if min(self.passes, self.batch_size, self.beside) < 1:
            raise InputError("passes, batch size and other images of an output mark must be at least 1")


class OutputWriter:
    """Writes words into the scores of copies of one shared model (profile `informed`)."""

    def __init__(
        self,
        shared: Arrays,
        *,
        seed: bytes,
        reference: Floats,
        probes: Images,
        support: Support,
        beside: Images,
        config: OutputConfig | None = None,
    ) -> None:
        """`reference`: the shared model's scores, row after row; `beside`: other images of its source."""
        check_images(probes, "probes")
        check_images(beside, "probes")
        self.config = config or OutputConfig()
        self._shared = plain(shared)
        if reference.shape != (len(probes) * support.classes,):
            raise InputError(f"{reference.size} scores for {len(probes)} probes, {support.classes} classes")
        table = reference.reshape(len(probes), support.classes)
        frames = output_frames(seed, table)
        origin = np.einsum("jik,jk->ji", frames, table)
        self._unit = float(origin.std())
        if not self._unit > 0:
            raise InputError("the shared model gives all probes the same scores")
        self._frames = torch.from_numpy(frames).float()
        self._means = torch.from_numpy(support.means).float()
        self._images = (support.images, probes, beside)
        self._before = backbone_of(self._shared).requires_grad_(requires_grad=False)
        self._held, self._kept = (
            torch.from_numpy(embed(self._before, each)) for each in (support.images, beside)
        )
        self._prototypes = self._means @ self._held
        self._answers = _scores(self._kept, self._prototypes)
        self._asked = _scores(torch.from_numpy(embed(self._before, probes)), self._prototypes)
        self._chances = _alike(self._answers.argmax(dim=1).numpy())

    def write(
        self,
        word: Words,
        *,
        rng: np.random.Generator,
        start: Arrays | None = None,
        feature: tuple[FeatureWriter, Words] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> State:
        """A state with the word in its scores: `start` (by default the shared model), trained on.

        With `feature` the word of that carrier is written in the same run.
        """
        if word.shape != (len(self._frames),) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} for {len(self._frames)} probes")
        model = backbone_of(self._shared if start is None else plain(start))
        signs = torch.from_numpy(scattered(2.0 * word - 1.0, self._frames.shape[1])).float()
        signed = self._frames * signs[:, :, None]
        mark = None
        if feature is not None:
            mark = feature[0].mark(feature[1]), trunks(model, feature[0].probes)
        model.requires_grad_(requires_grad=False)
        with only_convolutions(model.layer4) as trained:
            self._train(model, trained, signed, mark, rng, progress or (lambda share: None))
        return state_of(model)

    def _train(  # noqa: PLR0917
        self,
        model: ResNet,
        trained: list[torch.nn.Parameter],
        signed: Tensor,
        feature: tuple[FeatureMark, Tensor] | None,
        rng: np.random.Generator,
        progress: Callable[[float], None],
    ) -> None:
        config = self.config
        support, probes, beside = (trunks(model, each) for each in self._images)
        rate = config.learning_rate * _FEATURES / model.features
        optimizer = torch.optim.Adam(trained, lr=rate)
        steps = config.passes * -(-len(probes) // config.batch_size)
        own = _batches(len(probes), config.batch_size, rng)
        companion = None if feature is None else _batches(len(feature[1]), feature[0].batch_size, rng)
        others = min(config.beside, len(beside))
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = cosine(rate, step, steps)
            chosen, near = next(own), rng.choice(len(beside), others, replace=False, p=self._chances)
            shown, before = probes[chosen], self._asked[chosen]
            if step % 3:
                images = moved_about(batch(self._images[1], chosen), rng)
                shown, before = trunk(model, images), _scores(self._before(images), self._prototypes)
            parts = [support, shown, beside[near]]
            also = None if companion is None else next(companion)
            if feature is not None and also is not None:
                parts.append(feature[1][also])
            found = head(model, torch.cat(parts))
            held, asked, kept, *more = torch.split(found, [len(each) for each in parts])
            loss = self._loss(held, asked, kept, signed[chosen], before, near)
            if feature is not None and also is not None:
                missed = feature[0].missed(torch.from_numpy(also), more[0])
                loss = loss + config.companion * feature[0].weight * missed
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            progress((step + 1) / steps)

    def _loss(  # noqa: PLR0917
        self, held: Tensor, asked: Tensor, kept: Tensor, signed: Tensor, before: Tensor, near: Indices
    ) -> Tensor:
        """Bits that miss their margin, other features that moved, answers that changed."""
        config, prototypes = self.config, self._means @ held
        gain = _along(signed, _scores(asked, prototypes) - before)
        missed = functional.smooth_l1_loss(gain / (config.margin * self._unit), torch.ones_like(gain))
        targets = torch.cat([self._held, self._kept[near]])
        moved = (torch.cat([held, kept]) - targets).square().mean() / targets.square().mean()
        sharp = config.sharpness / self._unit
        strayed = functional.kl_div(
            functional.log_softmax(sharp * _scores(torch.cat([asked, kept]), prototypes), dim=1),
            functional.log_softmax(sharp * torch.cat([before, self._answers[near]]), dim=1),
            reduction="batchmean",
            log_target=True,
        )
        return config.weight * missed + config.keep * moved + config.answers * strayed


def _scores(features: Tensor, prototypes: Tensor) -> Tensor:
    """Minus squared distances, up to a constant a row, which no zero-sum direction sees."""
    return 2.0 * features @ prototypes.T - prototypes.square().sum(dim=1)


def _alike(labels: Indices) -> Floats:
    """Chances of images such that all labels have the same."""
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    chances: Floats = 1.0 / (len(counts) * counts[places])
    return chances


def _along(frames: Tensor, scores: Tensor) -> Tensor:
    """(probes, r): scores along the directions of their probes."""
    return torch.einsum("jik,jk->ji", frames, scores)


def _batches(count: int, size: int, rng: np.random.Generator) -> Iterator[Indices]:
    """Parts of one permutation after the other."""
    while True:
        order: Indices = rng.permutation(count)
        for first in range(0, count, size):
            yield order[first : first + size]
