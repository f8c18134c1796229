"""Planning for the linear channel: how many of k averaging colluders a fair code of n positions names.

The readout of k averaged copies, in units of the amplitude, is z_b = mean_j t_jb + σ ε_b with signs
t = 2 X - 1. With u of the colluders not yet named and their part still in the readout, a colluder's soft
score is, in an innocent's deviations,

    (√n/k + σ g + √(u - 1)/k h) / √(u/k² + σ²),

g its chance with the noise, which stays from stage to stage, and h its chance with the other colluders' rows,
which goes as they are named. Stages are followed with 4,096 draws of both. An estimate, not a bound;
thresholds are those that the exact tail certifies for such a readout.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from zktrace.carriers.split import stage_share, tail_share
from zktrace.certificates.certificate import smallest_threshold
from zktrace.certificates.intervals import Number
from zktrace.certificates.level import exact_level
from zktrace.codes import Coefficients, draw, soft
from zktrace.codes.checks import Floats, whole
from zktrace.errors import InputError

LENGTHS: Final = (64, 1 << 14)
_DRAWS: Final = 4096
_STAGES: Final = 8
_LITTLE: Final = 1e-3  # of the colluders: a stage that names no more is the last


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearStage:
    """One stage as it is expected."""

    stage: int
    unnamed: float  # colluders that are still in the readout
    deviations: float  # of such a colluder's score, on average
    threshold: float  # certified, in deviations
    named: float  # share of all colluders that are named by then


def linear_stages(
    *, length: int, colluders: int, recipients: int, noise: float, level: Number
) -> tuple[LinearStage, ...]:
    """The stages of a look with this level, one carrier by itself."""
    n = whole(length, "the length of a code", *LENGTHS)
    k = whole(colluders, "the number of colluders", 1, 1 << 16)
    whole(recipients, "the number of recipients", k, 1 << 40)
    if not (math.isfinite(noise) and noise >= 0.0):
        raise InputError(f"the noise must be finite and not negative, not {noise}")
    eps, typical = exact_level(level), _typical(n)
    rng = np.random.default_rng(0)
    g, shared = rng.standard_normal(_DRAWS), math.sqrt(max(k - 1, 0)) * rng.standard_normal(_DRAWS)
    unnamed, inside, result = np.ones(_DRAWS, dtype=bool), float(k), list[LinearStage]()
    for stage in range(1, _STAGES + 1):
        if not unnamed.any():
            break
        deviation = math.sqrt(max(inside, 1.0) / k**2 + noise**2)
        scores = (math.sqrt(max(n - (k - inside), 0.0)) / k + noise * g + shared / k) / deviation
        share = stage_share(stage, "certified") * tail_share("positive", "certified")
        threshold = _threshold(typical, recipients, eps * share)
        average = float(scores[unnamed].mean())
        fresh = unnamed & (scores > threshold)
        unnamed = unnamed & ~fresh
        result.append(
            LinearStage(
                stage=stage,
                unnamed=inside,
                deviations=average,
                threshold=threshold,
                named=1.0 - float(unnamed.mean()),
            )
        )
        if fresh.mean() <= _LITTLE:
            break
        now = k * float(unnamed.mean())
        shared = _thinned(shared, max(inside - 1.0, 0.0), max(now - 1.0, 0.0), rng)
        inside = now
    return tuple(result)


def _thinned(shared: Floats, before: float, after: float, rng: np.random.Generator) -> Floats:
    """A sum of `before` chances once only `after` of them are left."""
    if before <= 0.0:
        return np.zeros_like(shared)
    rest = math.sqrt(after * (before - after) / before)
    return shared * (after / before) + rest * rng.standard_normal(len(shared))


def _typical(length: int) -> Coefficients:
    """Soft coefficients of a readout that is normal: quantiles, each once."""
    normal = NormalDist()
    values = [normal.inv_cdf((at + 0.5) / length) for at in range(length)]
    return soft(values, draw(bytes(32), length, 2, "fair"))


def _threshold(coefficients: Coefficients, recipients: int, level: Fraction) -> float:
    found = smallest_threshold(coefficients, recipients=recipients, level=level)
    return float(found.threshold) / math.sqrt(coefficients.variance())
