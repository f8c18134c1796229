"""Score stability: how much of a tracing score survives when decoded bits change (`thm:score-stability`).

Deterministic: nothing is assumed about which bits change or why. A score is Σ_b (2y_b - 1) w_b (X_b - p_b);
the paper's w_b = 1/√(p_b(1 - p_b)) is the default, and `weights` are the magnitudes of stored coefficients.
The arrays are taken as exact; sums are rounded to their safe side. Every float64 operation here errs by at
most 2^-53 of its result, and no term takes more than eight of them, so widening a term by 2^-49 of itself
covers its rounding.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zktrace.certificates.intervals import Number, exact, upper_float
from zktrace.errors import InputError

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_SLACK = 2.0**-49
_SMALLEST_BIAS = 2.0**-500  # below, p(1 - p) could leave the range where float64 errs by 2^-53
_LARGEST_WEIGHT = 2.0**500


# ── scores ─────────────────────────────────────────────────────────────────────────────────────────────────


def flip_weights(row: npt.ArrayLike, biases: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Floats:
    """a_b = 2|X_b - p_b| w_b, rounded up: what one changed bit moves the score by."""
    return 2 * np.abs(_increments(row, biases, weights)) * (1 + _SLACK)


def worst_loss(flips: npt.ArrayLike, changed: int) -> float:
    """A(k), the sum of the k largest weights, rounded up (`eq:score-stability`)."""
    values = _finite(flips, "flip weights")
    if (values < 0).any():
        raise InputError("flip weights are not negative")
    if not 0 <= changed <= len(values):
        raise InputError(f"{changed} changed bits of {len(values)}")
    return _above(math.fsum(np.sort(values)[len(values) - changed :]))


def set_loss(flips: npt.ArrayLike, changed: npt.ArrayLike) -> float:
    """The sum of the weights in a set of positions that may change, rounded up."""
    values = _finite(flips, "flip weights")
    mask = _mask(changed, len(values))
    return worst_loss(values[mask], int(mask.sum())) if mask.any() else 0.0


def score_interval(
    row: npt.ArrayLike,
    word: npt.ArrayLike,
    biases: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> tuple[float, float]:
    """S of `eq:U-def` for a decoded word, as an interval (lower, upper)."""
    increments = _increments(row, biases, weights)
    terms = (2 * _bits(word, "word", len(increments)) - 1) * increments
    middle, error = math.fsum(terms), math.fsum(np.abs(terms)) * 2 * _SLACK
    return math.nextafter(middle - error, -math.inf), math.nextafter(middle + error, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """Whether a score is certain to stay above a threshold after bits change (`thm:score-stability`)."""

    score: float  # teacher's score, lower end
    loss: float  # largest loss, rounded up
    threshold: float
    changed: int  # bits that may change
    survives: bool  # score - loss > threshold, without rounding error

    @property
    def margin(self) -> Fraction:
        """score - loss - threshold, exactly."""
        return Fraction(self.score) - Fraction(self.loss) - Fraction(self.threshold)


def survival(
    *,
    row: npt.ArrayLike,
    word: npt.ArrayLike,
    biases: npt.ArrayLike,
    threshold: float,
    changed: int | npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Survival:
    """S - A(k) > z for any k changed bits, or for a mask of the positions that may change."""
    if not math.isfinite(threshold):
        raise InputError(f"a threshold must be finite, not {threshold}")
    flips = flip_weights(row, biases, weights)
    score, _ = score_interval(row, word, biases, weights)
    if isinstance(changed, int | np.integer) and not isinstance(changed, bool):
        count, loss = int(changed), worst_loss(flips, int(changed))
    else:
        mask = _mask(changed, len(flips))
        count, loss = int(mask.sum()), set_loss(flips, mask)
    rest = Fraction(score) - Fraction(loss)
    return Survival(
        score=score, loss=loss, threshold=threshold, changed=count, survives=rest > Fraction(threshold)
    )


# ── which bits may change ──────────────────────────────────────────────────────────────────────────────────


def probe_residuals(teacher: npt.ArrayLike, student: npt.ArrayLike) -> Floats:
    """r_b = |f_S(p_b) - f_T(p_b)|, rounded up, from two tables of features (a row a probe)."""
    one, other = (np.asarray(table, dtype=np.float64) for table in (teacher, student))
    if one.ndim != 2 or one.shape != other.shape:
        raise InputError(f"teacher features of shape {one.shape}, student features of shape {other.shape}")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise InputError("features must be finite")
    norms: Floats = np.linalg.norm(one - other, axis=1) * (1 + (one.shape[1] + 8) * 2.0**-52)
    return norms


def small_margins(margins: npt.ArrayLike, mu: Number) -> Mask:
    """J_μ = {b: |m_b(θ_T)| < μ}, as a mask."""
    return np.abs(_finite(margins, "margins")) < upper_float(_margin(mu))


def most_flips(*, margins: npt.ArrayLike, residuals: npt.ArrayLike, mu: Number) -> int:
    """k of `eq:score-k`: min(n, |J_μ| + ⌊n e_KD²/μ²⌋), with n e_KD² = Σ r_b²."""
    weak = small_margins(margins, mu)
    squares = _residual_squares(residuals, len(weak))
    return min(len(weak), int(weak.sum()) + math.floor(Fraction(squares) / _margin(mu) ** 2))


def measured_flips(*, margins: npt.ArrayLike, residuals: npt.ArrayLike) -> Mask:
    """{b: r_b >= |m_b(θ_T)|}, the only probes whose sign can differ: sharper than `most_flips`."""
    values = np.abs(_finite(margins, "margins"))
    return _residuals(residuals, len(values)) >= values


def moved_flips(*, projections: npt.ArrayLike, moved: float) -> Mask:
    """{b: |a_b| <= |η|}: the only signs that can differ once the weights moved by η (`lem:flip`).

    Projections are on directions of length 1 at most; `moved` is the length of η or more.
    """
    values = np.abs(_finite(projections, "projections"))
    return measured_flips(margins=values, residuals=np.full(len(values), moved))


def bad_fraction(*, row: npt.ArrayLike, margins: npt.ArrayLike, mu: Number) -> Fraction:
    """q_bad of `prop:kd-robust`: the part of the probes whose correctly signed margin is below μ."""
    values = _finite(margins, "margins")
    signed = (2 * _bits(row, "row", len(values)) - 1) * values
    return Fraction(int((signed < upper_float(_margin(mu))).sum()), len(values))


def distilled_flip_bound(*, bad: Number, residuals: npt.ArrayLike, mu: Number) -> float:
    """q_KD <= min(1, q_bad + e_KD²/μ²) of `eq:qkd`, rounded up; e_KD² is the mean of r_b²."""
    share = exact(bad, "the bad fraction")
    if not 0 <= share <= 1:
        raise InputError(f"the bad fraction must lie in [0, 1], not {bad}")
    count = len(_finite(residuals, "residuals"))
    mean_square = Fraction(_residual_squares(residuals, count)) / count
    return min(1.0, upper_float(share + mean_square / _margin(mu) ** 2))


# ── arrays ─────────────────────────────────────────────────────────────────────────────────────────────────


def _increments(row: npt.ArrayLike, biases: npt.ArrayLike, weights: npt.ArrayLike | None) -> Floats:
    """(X_b - p_b) w_b, each within 2^-50 of itself."""
    p = _finite(biases, "biases")
    if ((p < _SMALLEST_BIAS) | (p >= 1)).any():
        raise InputError("biases must lie in (0, 1)")
    distance = _bits(row, "row", len(p)) - p
    if weights is None:
        return distance / np.sqrt(p * (1 - p))
    given = _finite(weights, "weights")
    if given.shape != p.shape or (given < 0).any() or (given > _LARGEST_WEIGHT).any():
        raise InputError(f"{len(given)} weights for {len(p)} positions, each in 0..2^500")
    if ((given > 0) & (given < 1 / _LARGEST_WEIGHT)).any():
        raise InputError("weights below 2^-500 are not told from zero")
    return distance * given


def _above(total: float) -> float:
    """At or above the sum that `math.fsum` rounded to nearest."""
    return math.nextafter(total, math.inf) if total else 0.0


def _residual_squares(residuals: npt.ArrayLike, length: int) -> float:
    """Σ r_b², rounded up."""
    return _above(math.fsum(_residuals(residuals, length) ** 2 * (1 + _SLACK)))


def _residuals(residuals: npt.ArrayLike, length: int) -> Floats:
    values = _finite(residuals, "residuals")
    if len(values) != length or (values < 0).any():
        raise InputError(f"{len(values)} residuals for {length} probes, none of them negative")
    return values


def _finite(values: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a vector of numbers, not an array of shape {array.shape}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite")
    return array


def _bits(values: npt.ArrayLike, name: str, length: int) -> Floats:
    array = np.asarray(values)
    if array.shape != (length,):
        raise InputError(f"{name} has shape {array.shape}, {length} positions expected")
    if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise InputError(f"{name} must hold only 0 and 1")
    return array.astype(np.float64)


def _mask(values: npt.ArrayLike, length: int) -> Mask:
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.shape != (length,):
        raise InputError(f"changed positions must be a mask of {length} booleans")
    return array


def _margin(mu: Number) -> Fraction:
    margin = exact(mu, "the margin")
    if margin <= 0:
        raise InputError(f"the margin must be positive, not {mu}")
    return margin
