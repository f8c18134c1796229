"""Informed feature and output words: both are written by one run of training of the last stage.

The words of carriers in closed form are in the state already. Training leaves the scales alone and repairs
what they did to the features of images that are no probes.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import CARRIERS, carrier
from zktrace.errors import InputError
from zktrace.learning.answers import Support
from zktrace.learning.network import names_in
from zktrace.learning.threads import single_threaded
from zktrace.marking.copies import copy_rng, merged
from zktrace.marking.feature import FeatureConfig, FeatureWriter
from zktrace.marking.output import OutputConfig, OutputWriter
from zktrace.marking.settings import CopySettings
from zktrace.marking.writer import Job, Step, Writer
from zktrace.models import ModelState
from zktrace.readouts.identity import Words
from zktrace.readouts.samples import Pool

Config = FeatureConfig | OutputConfig


class LastStageWriter(Writer):
    """Writes feature words, output words, or both at once."""

    def __init__(self, job: Job, carriers: tuple[str, ...]) -> None:
        super().__init__(job, carriers)
        if job.pool is None:
            raise InputError("this release was made without proxy data, copies cannot be trained")
        self._feature: tuple[str, FeatureWriter] | None = None
        self._output: tuple[str, OutputWriter] | None = None
        wanted = (*carriers, *job.settings.marks)  # a wrong setting is told whether it is heeded or not
        known = {name: mark_config(name, job.settings) for name in wanted}
        configs = {name: known[name] for name in carriers}
        least = max(mark_config(name, job.settings).beside for name in _alike(carriers[0]))
        beside = _beside(job, carriers, job.pool, least=least)
        self._names = names_in(job.shared, job.network)
        with single_threaded():
            for name, config in configs.items():
                if (self._feature if isinstance(config, FeatureConfig) else self._output) is not None:
                    raise InputError(f"{name}: one run writes one carrier of this kind, and has one already")
                if isinstance(config, OutputConfig):
                    self._output = name, _output_writer(job, name, beside, config)
                else:
                    self._feature = name, _feature_writer(job, name, beside, config)

    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        """The state, trained on."""
        rng = copy_rng(self.job.model, row)
        start = None if state is self.job.shared else state
        feature = None if self._feature is None else (self._feature[1], words[self._feature[0]])
        with single_threaded():
            if self._output is not None:
                name, writer = self._output
                found = writer.write(words[name], rng=rng, start=start, feature=feature, progress=step)
            elif feature is not None:
                found = feature[0].write(feature[1], rng=rng, start=start, progress=step)
            else:
                raise InputError(f"nothing to train for {', '.join(self.carriers)}")
        return merged(self.job.shared, found, self._names)


def mark_config(name: str, settings: CopySettings) -> Config:
    """How the mark of a carrier is written, or InputError."""
    kind = OutputConfig if carrier(name).answers else FeatureConfig
    given, known = settings.mark(name), {each.name: each.type for each in fields(kind)}
    for setting, value in given.items():
        if setting not in known:
            raise InputError(f"a mark has no such setting {setting!r}; it has {', '.join(known)}")
        if known[setting] is int and type(value) is not int:
            raise InputError(f"{setting} of a mark is a whole number, not {value}")
    return kind(**given)  # type: ignore[arg-type]


def _alike(name: str) -> list[str]:
    """All carriers that are written by this writer: a copy depends on none that it does not carry."""
    place = carrier(name).writers["informed"]
    return [each.name for each in CARRIERS.values() if each.writers.get("informed") == place]


def _beside(job: Job, carriers: tuple[str, ...], pool: Pool, *, least: int) -> NDArray[np.float32]:
    """Images whose features are to stay: those that are no probes, or all if there are too few."""
    probes = np.concatenate([_probes(job, each)["probes"] for each in carriers])
    rest = pool.others(probes)
    images = np.array(pool.images)
    return images[rest] if rest.sum() >= least else images


def _probes(job: Job, name: str) -> dict[str, NDArray[Any]]:
    given = job.terms[name].probes
    if given is None:
        raise InputError(f"{name}: the release's probes are not there")
    return {each: np.array(value) for each, value in given.items()}


def _feature_writer(job: Job, name: str, beside: NDArray[np.float32], config: FeatureConfig) -> FeatureWriter:
    probes = _probes(job, name)["probes"]
    return FeatureWriter(
        job.shared,
        seed=job.terms[name].seed,
        probes=probes,
        beside=beside,
        config=config,
        network=job.network,
    )


def _output_writer(job: Job, name: str, beside: NDArray[np.float32], config: OutputConfig) -> OutputWriter:
    asked, reference = _probes(job, name), job.references[name]
    if reference is None:
        raise InputError(f"the {name} carrier has no reference")
    return OutputWriter(
        job.shared,
        seed=job.terms[name].seed,
        reference=reference,
        probes=asked["probes"],
        support=Support(images=asked["support"], labels=asked["labels"]),
        beside=beside,
        config=config,
        network=job.network,
    )
