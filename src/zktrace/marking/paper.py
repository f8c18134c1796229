"""Copies as in the paper: episodes of training beside a hinge for the word of every carrier."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from zktrace.carriers import carrier
from zktrace.errors import InputError
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.learning.threads import single_threaded
from zktrace.learning.training import Penalty, train_episodes
from zktrace.marking.copies import copy_rng, merged
from zktrace.marking.feature import FeatureHinge
from zktrace.marking.hinge import HingePenalty
from zktrace.marking.settings import CopySettings
from zktrace.marking.writer import Job, Step, Writer
from zktrace.models import ModelState
from zktrace.readouts.features import feature_directions
from zktrace.readouts.identity import Words
from zktrace.readouts.reader import Terms
from zktrace.readouts.suspects import plain, plain_names
from zktrace.readouts.weight import weight_directions

PROBES_A_STEP: Final = 128


class PaperWriter(Writer):
    """Trains a copy towards the words of all its carriers."""

    def __init__(self, job: Job, carriers: tuple[str, ...]) -> None:
        super().__init__(job, carriers)
        if job.pool is None:
            raise InputError("this release was made without proxy data, copies cannot be trained")
        if job.network is not None:
            raise InputError("the paper's profile trains this package's ResNets: release it as informed")
        self._episodes = _episodes(job.pool.episodes, job.settings)
        self._images, self._labels = np.array(job.pool.images), np.array(job.pool.labels)

    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        """The state, trained on."""
        rng = copy_rng(self.job.model, row)
        model = backbone_of(plain(state))
        penalty = self._penalty(model, words, seed=int(rng.integers(1 << 62)))
        with single_threaded():
            train_episodes(
                model,
                self._images,
                self._labels,
                self._episodes,
                rng,
                penalty=penalty,
                progress=lambda report: step(report.episode / report.episodes),
            )
        return merged(self.job.shared, state_of(model), plain_names(self.job.shared))

    def _penalty(self, model: ResNet, words: Mapping[str, Words], *, seed: int) -> Penalty:
        """lambda_t times the hinge of every carrier (`eq_dispatch_hinge`, `eq_feature_hinge`)."""
        settings = self.job.settings
        parts = [
            _feature_hinge(self.job.terms[each], model, words[each], settings, seed=seed)
            if carrier(each).network
            else _scale_hinge(self.job.terms[each], model, words[each], settings, seed=seed)
            for each in self.carriers
        ]

        def total(net: ResNet) -> Any:  # noqa: ANN401
            return settings.lambda_t * sum(part(net) for part in parts)

        return total


def _scale_hinge(terms: Terms, model: ResNet, word: Words, settings: CopySettings, *, seed: int) -> Penalty:
    """The scales of `model` are pushed first.

    To turn a bit of scales as large as a short pre-training leaves them, the hinge alone takes thousands of
    episodes, or a learning rate that ruins the model.
    """
    family = weight_directions(terms.seed, length=terms.length, layers=terms.layers)
    hinge = HingePenalty(family.block(0, terms.length), word, margin=settings.mu, drop=0.0, seed=seed)
    if settings.push_margin:
        hinge.push(model, margin=settings.push_margin)
    return hinge


def _feature_hinge(terms: Terms, model: ResNet, word: Words, settings: CopySettings, *, seed: int) -> Penalty:
    if terms.probes is None:
        raise InputError(f"{terms.carrier}: the release's probes are not there")
    family = feature_directions(terms.seed, length=terms.length, dimension=model.features)
    return FeatureHinge(
        family.block(0, terms.length),
        np.array(terms.probes["probes"]),
        word,
        margin=settings.mu,
        batch_size=PROBES_A_STEP,
        seed=seed,
    )


def _episodes(known: dict[str, Any], settings: CopySettings) -> EpisodicConfig:
    try:
        config = replace(EpisodicConfig(**known), episodes=settings.episodes)
    except TypeError as error:
        raise InputError(f"the release's episodes have no such setting ({error})") from error
    rate = settings.learning_rate
    return config if rate is None else replace(config, learning_rate=rate)
