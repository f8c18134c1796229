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

With `triggers` the word is also written where answers without scores can tell it: at inputs made of the
probes at which two classes are level (`learning.triggers`, `readouts.labels`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.answers import Support, order_of
from zktrace.learning.arrays import Images, Indices, State
from zktrace.learning.batches import batch, moved_about, passes, steps_of
from zktrace.learning.embedding import Embedding, Said
from zktrace.learning.evaluation import hear
from zktrace.learning.network import embedding_of
from zktrace.learning.triggers import Scores, leads, triggers_of
from zktrace.marking.feature import FeatureWriter
from zktrace.marking.last_stage import trunks, write_by_training
from zktrace.readouts.directions import Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.labels import trigger_classes
from zktrace.readouts.network import Network
from zktrace.readouts.reader import check_inputs
from zktrace.readouts.scales import Arrays
from zktrace.readouts.scores import output_frames, scattered


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
    triggers: float = 0.0  # of the loss of the same word in answers alone; 0: there are no triggers
    lead: float = 1.7  # by which the class of a trigger is to win or lose; a deviation as of the margin
    learning_rate: float = 3e-4  # Adam, annealed to 0; for 512 features, more in proportion for fewer

    def __post_init__(self) -> None:
        numbers = (self.margin, self.weight, self.learning_rate, self.sharpness, self.lead)
        weights = (self.keep, self.companion, self.answers, self.triggers)
        if min(numbers) <= 0 or not np.isfinite([*numbers, *weights]).all() or min(weights) < 0:
            raise InputError(
                "margin, weight, sharpness, lead and learning rate of an output mark must be positive numbers"
            )
        if min(self.passes, self.batch_size, self.beside) < 1:
            raise InputError("passes, batch size and other images of an output mark must be at least 1")


class _Companion:
    """The word of a feature carrier that is written in the same run."""

    def __init__(
        self, model: Embedding, writer: FeatureWriter, word: Words, rng: np.random.Generator
    ) -> None:
        self._mark = writer.mark(word)
        self.paths = trunks(model, writer.probes)
        self.batches = passes(len(self.paths), self._mark.batch_size, rng)

    def loss(self, chosen: Indices, features: Tensor, *, share: float) -> Tensor:
        """Of chosen probes, a share of what it is in a run of its own."""
        return share * self._mark.weight * self._mark.missed(torch.from_numpy(chosen), features)


class _Triggers:
    """The same word in what is answered to inputs at which two classes of the shared model are level."""

    def __init__(self, inner: Tensor, classes: Indices, signs: Tensor, lead: float) -> None:
        self._classes, self._signs, self._lead = torch.from_numpy(classes), signs, lead
        self.paths = inner

    def loss(self, chosen: Indices, scores: Tensor) -> Tensor:
        """Of chosen triggers: how far their class is from winning, or from losing."""
        places = torch.from_numpy(chosen)
        gain = self._signs[places] * leads(scores, self._classes[places]) / self._lead
        return functional.smooth_l1_loss(gain.clamp(max=1.0), torch.ones_like(gain))


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
        network: Network | None = None,
    ) -> None:
        """`reference`: the shared model's scores, row after row; `beside`: other images of its source."""
        check_inputs(probes, "probes")
        check_inputs(beside, "probes")
        self.config = config or OutputConfig()
        self._shared, self._network = shared, network
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
        self._before = embedding_of(shared, probes, network).requires_grad_(requires_grad=False)
        held, kept, asked = (hear(self._before, each) for each in (support.images, beside, probes))
        self._order = order_of(held.outputs, support)
        self._held, self._kept = held.features, kept.features
        self._prototypes = self._means @ self._held
        self._answers = self._scores(kept, self._prototypes)
        self._asked = self._scores(asked, self._prototypes)
        self._chances = _alike(self._answers.argmax(dim=1).numpy())
        self._classes = trigger_classes(table)
        self._made = None
        if self.config.triggers:
            said = Scores(self._before, self._prototypes, self._order)
            self._made = triggers_of(self._before, said, probes, self._classes)

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
        model = embedding_of(self._shared if start is None else start, self._images[1], self._network)
        signs = torch.from_numpy(scattered(2.0 * word - 1.0, self._frames.shape[1])).float()
        config, probes = self.config, len(self._frames)
        write_by_training(
            model,
            passes(probes, config.batch_size, rng),
            self._course(model, self._frames * signs[:, :, None], feature, self._triggers(model, word), rng),
            steps=config.passes * steps_of(probes, config.batch_size),
            learning_rate=config.learning_rate,
            progress=progress,
        )
        return model.state()

    def _course(
        self,
        model: Embedding,
        signed: Tensor,
        feature: tuple[FeatureWriter, Words] | None,
        triggers: _Triggers | None,
        rng: np.random.Generator,
    ) -> Callable[[Indices, int], Tensor]:
        """The loss of chosen probes at a step, with other images, the companion's probes and triggers."""
        config = self.config
        companion = None if feature is None else _Companion(model, *feature, rng)
        model.requires_grad_(requires_grad=False)  # first: torch's kernels differ by it, in last bits
        support, probes, beside = (trunks(model, each) for each in self._images)
        others = min(config.beside, len(beside))

        def loss(chosen: Indices, step: int) -> Tensor:
            near = rng.choice(len(beside), others, replace=False, p=self._chances)
            shown, before = probes[chosen], self._asked[chosen]
            if step % 3:
                images = moved_about(batch(self._images[1], chosen), rng)
                shown, before = model.trunk(images), self._scores(self._before.said(images), self._prototypes)
            parts = [support, shown, beside[near]]
            if companion is not None:
                also = next(companion.batches)
                parts.append(companion.paths[also])
            if triggers is not None:
                parts.append(triggers.paths[chosen])
            held, asked, kept, *more = _split(model.say(torch.cat(parts)), [len(each) for each in parts])
            total = self._loss(held, asked, kept, signed[chosen], before, near)
            if companion is not None:
                total = total + companion.loss(also, more[0].features, share=config.companion)
            if triggers is not None:
                scores = self._scores(more[-1], self._means @ held.features)
                total = total + config.triggers * triggers.loss(chosen, scores)
            return total

        return loss

    def _triggers(self, model: Embedding, word: Words) -> _Triggers | None:
        """What the word is written into besides, if that was asked for."""
        if self._made is None:
            return None
        signs = torch.from_numpy(2.0 * word - 1.0).float()
        return _Triggers(trunks(model, self._made), self._classes, signs, self.config.lead * self._unit)

    def _loss(  # noqa: PLR0917
        self, held: Said, asked: Said, kept: Said, signed: Tensor, before: Tensor, near: Indices
    ) -> Tensor:
        """Bits that miss their margin, other features that moved, answers that changed."""
        config, prototypes = self.config, self._means @ held.features
        scores = self._scores(asked, prototypes)
        gain = _along(signed, scores - before)
        missed = functional.smooth_l1_loss(gain / (config.margin * self._unit), torch.ones_like(gain))
        targets = torch.cat([self._held, self._kept[near]])
        moved = (
            torch.cat([held.features, kept.features]) - targets
        ).square().mean() / targets.square().mean()
        sharp = config.sharpness / self._unit
        strayed = functional.kl_div(
            functional.log_softmax(sharp * torch.cat([scores, self._scores(kept, prototypes)]), dim=1),
            functional.log_softmax(sharp * torch.cat([before, self._answers[near]]), dim=1),
            reduction="batchmean",
            log_target=True,
        )
        return config.weight * missed + config.keep * moved + config.answers * strayed

    def _scores(self, said: Said, prototypes: Tensor) -> Tensor:
        """A classifier's own, or minus squared distances, up to a constant a row that no direction sees."""
        if self._order is not None and said.outputs is not None:
            return said.outputs[:, self._order]
        return 2.0 * said.features @ prototypes.T - prototypes.square().sum(dim=1)


def _split(said: Said, sizes: list[int]) -> list[Said]:
    """What was said of each part of a batch."""
    features = torch.split(said.features, sizes)
    outputs = [None] * len(sizes) if said.outputs is None else torch.split(said.outputs, sizes)
    return [Said(features=one, outputs=other) for one, other in zip(features, outputs, strict=True)]


def _alike(labels: Indices) -> Floats:
    """Chances of images such that all labels have the same."""
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    chances: Floats = 1.0 / (len(counts) * counts[places])
    return chances


def _along(frames: Tensor, scores: Tensor) -> Tensor:
    """(probes, r): scores along the directions of their probes."""
    return torch.einsum("jik,jk->ji", frames, scores)
