"""Readers as tests make them, from a few values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.readouts.features import FeatureReader
from zktrace.readouts.outputs import OutputReader
from zktrace.readouts.reader import Terms
from zktrace.readouts.weight import WeightReader

Floats = NDArray[np.float64]


def weight_reader(
    *,
    seed: bytes,
    length: int,
    layers: tuple[int, ...],
    profile: Any = "informed",
    reference: Floats | None = None,
    names: tuple[str, ...] | None = None,
) -> WeightReader:
    terms = Terms(
        carrier="weight",
        seed=seed,
        length=length,
        profile=profile,
        dimension=sum(layers),
        layers=layers,
        names=names,
    )
    return WeightReader(terms, reference)


def feature_reader(
    *, seed: bytes, probes: NDArray[Any], dimension: int, profile: Any = "informed", reference: Any = None
) -> FeatureReader:
    terms = Terms(
        carrier="feature",
        seed=seed,
        length=max(len(probes), 1),
        profile=profile,
        dimension=dimension,
        probes={"probes": probes},
    )
    return FeatureReader(terms, reference)


def output_reader(
    *, seed: bytes, length: int, classes: int, reference: Floats | None = None, probes: Any = None
) -> OutputReader:
    terms = Terms(
        carrier="output", seed=seed, length=length, profile="informed", dimension=classes, probes=probes
    )
    return OutputReader(terms, reference)
