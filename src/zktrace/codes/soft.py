"""Coefficients from a real-valued readout instead of its signs.

A copy made by averaging k recipients' copies reads, up to noise, z_b = a mean_j (2 X_jb - 1) + ε_b: the
*linear channel*. Given the biases, z_b has mean a (2 p_b - 1) and variance

    v_b = σ² + (a²/k) 4 p_b (1 - p_b),

and a colluder's bit moves it by 2a/k. The linear score with the largest ratio of a colluder's mean to an
innocent's deviation is then c_b proportional to (z_b - a (2 p_b - 1))/v_b. The channel (a, an offset, σ²,
a²/k) is estimated from the readout and the biases alone; no row is looked at, so an innocent's row stays
independent of the coefficients, and whatever a wrong estimate costs is power, never soundness.

Three choices were made by simulation. Residuals beyond 3.5 deviations are clipped and those beyond 8 are
dropped, so that a few wild positions cannot own the score. v_b is at least 0.3 of its mean, which gives up a
little of the ratio for lighter tails at extreme biases. An offset is fitted, for a carrier may have one.

Only +, -, *, /, √, sorting and correctly rounded sums are used: every IEEE 754 machine gets the same bits.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from zktrace.codes.biases import Biases
from zktrace.codes.checks import Floats, real_vector
from zktrace.codes.coefficients import Coefficients, quantise

MINIMUM_LENGTH: Final = 16  # positions below which a channel of four numbers is not estimated
CLIP: Final = 3.5
DROP: Final = 8.0
FLOOR: Final = 0.3
_ROUNDS: Final = 8
_START: Final = 6.0  # deviations, by the upper quartile, at which the first round clips
_BEYOND: Final = 2.0**20  # of the upper quartile: further out makes no difference
_NOTHING: Final = 2.0**-40  # beside 1, rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel:
    """The linear channel as fitted to one readout, in a unit of the readout's own."""

    unit: int  # the readout is 2^unit times these numbers
    slope: float  # a
    noise: float  # σ²
    spread: float  # a²/k
    mean: Floats  # of z_b, as fitted
    residuals: Floats  # z_b less its fitted mean, clipped; dropped ones are 0
    weights: Floats  # 1/v_b with the floor of v_b; dropped ones are 0

    @property
    def tamed(self) -> Floats:
        """The readout with its residuals clipped."""
        return self.mean + self.residuals


def soft(values: ArrayLike, biases: Biases, *, scale_bits: int | None = None) -> Coefficients:
    """c_b = residual/v_b in the units of the symmetric score: Σ c_b² p_b (1 - p_b) = n before rounding.

    A readout that says nothing (constant, or fewer than 16 positions) gives zero coefficients.
    """
    channel = fit_channel(values, biases)
    if channel is None:
        return quantise(np.zeros(biases.length), biases, scale_bits=scale_bits)
    p = biases.probabilities()
    raw = channel.residuals * channel.weights
    variance = _total(raw * raw * (p * (1.0 - p)))
    return quantise(raw * math.sqrt(biases.length / variance), biases, scale_bits=scale_bits)


def fit_channel(values: ArrayLike, biases: Biases) -> Channel | None:
    """The linear channel of a readout, by least squares on clipped residuals; None if it says nothing."""
    given = real_vector(values, biases.length, "the readout")
    standard = _standard(given) if biases.length >= MINIMUM_LENGTH else None
    if standard is None:
        return None
    z, unit, scale = standard
    p = biases.probabilities()
    tilt, width = 2.0 * p - 1.0, 4.0 * p * (1.0 - p)
    start = _START * scale / CLIP
    mean, variances = np.zeros_like(z), np.full_like(z, start * start)
    slope = noise = spread = 0.0
    for _ in range(_ROUNDS):
        residuals, weights = _tamed(z - mean, variances)
        offset, slope = _line(tilt, mean + residuals, weights)
        mean = offset + slope * tilt
        residuals, weights = _tamed(z - mean, variances)
        noise, spread = _nonnegative_line(width, residuals * residuals, weights * weights)
        average = noise + spread * (_total(width) / len(z))
        if average <= _NOTHING * _NOTHING:
            return None
        variances = np.maximum(noise + spread * width, FLOOR * average)
    residuals, weights = _tamed(z - mean, variances)
    if not (residuals * weights).any():
        return None
    return Channel(
        unit=unit,
        slope=slope,
        noise=noise,
        spread=spread,
        mean=mean,
        residuals=residuals,
        weights=weights,
    )


def _total(numbers: Floats) -> float:
    return math.fsum(numbers.tolist())


def _standard(values: Floats) -> tuple[Floats, int, float] | None:
    """The readout about its median, its unit (a power of two), and its upper quartile in that unit."""
    large = math.frexp(float(np.abs(values).max()))[1]
    small = np.ldexp(values, -large - 1)  # within (-1/2, 1/2): no difference overflows
    middle = float(np.sort(small)[len(small) // 2])
    centred = small - middle
    distances = np.sort(np.abs(centred))
    quartile = float(distances[3 * len(distances) // 4])
    if quartile == 0.0:  # more than three quarters are equal
        quartile = _total(distances) / len(distances)
    if quartile <= _NOTHING * abs(middle):  # constant but for rounding
        return None
    scale, power = math.frexp(quartile)
    with np.errstate(over="ignore"):
        z = np.clip(np.ldexp(centred, -power), -_BEYOND, _BEYOND)
    return z, large + 1 + power, scale


def _tamed(residuals: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Clipped residuals and their weights, both 0 where a residual is dropped."""
    deviations = np.sqrt(variances)
    kept = np.abs(residuals) <= DROP * deviations
    clipped = np.clip(residuals, -CLIP * deviations, CLIP * deviations)
    return np.where(kept, clipped, 0.0), np.where(kept, 1.0 / variances, 0.0)


def _line(x: Floats, y: Floats, weights: Floats) -> tuple[float, float]:
    """Weighted least squares y ~ intercept + slope x; slope 0 where x does not vary."""
    total = _total(weights)
    if total == 0.0:
        return 0.0, 0.0
    x_mean, y_mean = _total(weights * x) / total, _total(weights * y) / total
    away = x - x_mean
    spread = _total(weights * away * away)
    if spread <= _NOTHING * total:
        return y_mean, 0.0
    slope = _total(weights * away * (y - y_mean)) / spread
    return y_mean - slope * x_mean, slope


def _nonnegative_line(x: Floats, y: Floats, weights: Floats) -> tuple[float, float]:
    """Weighted least squares y ~ intercept + slope x with neither negative, for nonnegative x and y."""
    intercept, slope = _line(x, y, weights)
    if slope < 0.0:
        return _total(weights * y) / _total(weights), 0.0  # a slope was found: the weights are not all 0
    if intercept < 0.0:
        return 0.0, _total(weights * x * y) / _total(weights * x * x)
    return intercept, slope
