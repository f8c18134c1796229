"""Identity survival: when a client's codeword can still be read from the averaged scales.

`thm:perbit`, `thm:attr` and `cor:envelope` are bounds under their assumptions. The quadrature signal-to-noise
ratio of `eq:snr-scaling` is a diagnostic: it assumes away cross terms and promises nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb

from zktrace.certificates.intervals import Number, ball, exact, lower_float, probability, refined, upper_float
from zktrace.errors import InputError
from zktrace.primitives.precision import precision

Bits: TypeAlias = npt.NDArray[np.bool_] | npt.NDArray[np.integer]


# ── one bit ────────────────────────────────────────────────────────────────────────────────────────────────


def sphere_cdf(x: Number, omega: int) -> arb:
    """F_ω(x): the chance that √ω times the first coordinate of a uniform unit vector is at most x.

    The squared coordinate is Beta(1/2, (ω-1)/2), so 2 F_ω(x) = 1 + sgn(x) I_{x²/ω}(1/2, (ω-1)/2), and beyond
    one standard deviation the complement I_{1-x²/ω}((ω-1)/2, 1/2) keeps small tails accurate.
    """
    point = exact(x, "x")
    with precision():
        return _sphere_cdf(point**2 / _dimension(omega), point < 0, omega)


def _sphere_cdf(square: Fraction, negative: bool, omega: int) -> arb:
    """The same, from the squared coordinate itself, which is rational wherever it is needed."""
    if square >= 1:
        return arb(0 if negative else 1)
    half, rest = Fraction(1, 2), Fraction(omega - 1, 2)
    if square * omega <= 1:
        inner = refined(lambda: 1 + ball(square).beta_lower(ball(half), ball(rest), regularized=1)) - 1
        return (1 - inner if negative else 1 + inner) / 2
    tail = refined(lambda: ball(1 - square).beta_lower(ball(rest), ball(half), regularized=1) / 2)
    return tail if negative else 1 - tail


def normal_cdf(x: arb) -> arb:
    """Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


def normal_gap(omega: int) -> Fraction:
    """b_ω = 8/(ω - 4) >= sup |F_ω - Φ| (`lem:sphere`)."""
    if omega <= 4:
        raise InputError(f"the normal approximation needs a dimension above 4, not {omega}")
    return Fraction(8, omega - 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class BitRecovery:
    """A bit is read correctly with at least this probability, under A1-A3 (`thm:perbit`)."""

    sphere: float  # F_ω(s), rounded down
    normal: float  # Φ(s) - b_ω, rounded down, not below 0
    s: float  # λ μ √ω / |u|, rounded down; infinite for u = 0


def bit_recovery(*, weight: Number, margin: Number, cross_norm: Number, omega: int) -> BitRecovery:
    """`eq:perbit-gauss` for a client of averaging weight λ, local margin μ and cross-vector norm |u|."""
    share, mu = _positive(weight, "the weight"), _positive(margin, "the margin")
    norm = exact(cross_norm, "the cross-vector norm")
    gap = normal_gap(omega)
    if norm < 0:
        raise InputError(f"the cross-vector norm must not be negative, not {cross_norm}")
    if norm == 0:
        return BitRecovery(sphere=1.0, normal=1.0, s=math.inf)
    coordinate = share * mu / norm
    with precision():
        s = ball(coordinate) * arb(omega).sqrt()
        return BitRecovery(
            sphere=lower_float(_sphere_cdf(coordinate**2, False, omega)),
            normal=max(0.0, lower_float(normal_cdf(s) - ball(gap))),
            s=lower_float(s),
        )


def cross_norm_bound(*, baseline: Number, weights: Sequence[Number], radii: Sequence[Number]) -> float:
    """|u_i| <= Σ_{k≠i} λ_k (G + D_k), rounded up (`eq:unorm`), from the others' weights and update radii."""
    if len(weights) != len(radii):
        raise InputError(f"{len(weights)} weights for {len(radii)} update radii")
    scale = _not_negative(baseline, "the baseline norm")
    shares = [_not_negative(weight, "a weight") for weight in weights]
    return upper_float(
        sum(
            (
                share * (scale + _not_negative(radius, "an update radius"))
                for share, radius in zip(shares, radii, strict=True)
            ),
            Fraction(0),
        )
    )


# ── the quadrature diagnostic ──────────────────────────────────────────────────────────────────────────────


def quadrature_snr(*, clients: int, baseline: float, length: int, omega: int, margin: float = 1.0) -> float:
    """SNR_quad of `eq:snr-scaling`: μ√ω / √((N-1)[(N-1)G² + nμ²])."""
    _at_least(clients, 2, "clients")
    _at_least(length, 1, "bits")
    if not (margin > 0 and math.isfinite(margin) and math.isfinite(baseline)):
        raise InputError("the margin must be positive, and the baseline norm finite")
    others = clients - 1
    noise = others * (others * baseline**2 + length * margin**2)
    return margin * math.sqrt(_dimension(omega)) / math.sqrt(noise)


def quadrature_accuracy(
    *, clients: int, baseline: float, length: int, omega: int, margin: float = 1.0
) -> float:
    """p-hat = Φ(SNR_quad), as in `tab:survival`."""
    snr = quadrature_snr(clients=clients, baseline=baseline, length=length, omega=omega, margin=margin)
    return math.erfc(-snr / math.sqrt(2)) / 2


def load(*, clients: int, length: int, omega: int) -> Fraction:
    """ρ = N n/ω, identity constraints per carrier dimension."""
    return Fraction(_at_least(clients, 1, "clients") * _at_least(length, 1, "bits"), _dimension(omega))


def rank_reference(*, length: int, omega: int) -> Fraction:
    """N* = ω/n, the number of clients with load one: a reference, not a limit (`lem:capacity`)."""
    return Fraction(_dimension(omega), _at_least(length, 1, "bits"))


def gram_deviation_floor(*, clients: int, length: int, omega: int) -> int:
    """A lower bound on |E^T E - I|: 1 beyond load one, where E^T E is singular, else 0 (`lem:capacity`)."""
    return 1 if load(clients=clients, length=length, omega=omega) > 1 else 0


# ── attribution ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RadiusCheck:
    """The deterministic part of `thm:attr`, client by client."""

    distances: tuple[int, ...]  # d_i = HD(extracted word i, codeword i)
    min_distance: int  # d_min over pairs of codewords
    within: tuple[bool, ...]  # 2 d_i < d_min: the decision on client i is proved unique and right
    attributed: tuple[int | None, ...]  # the client of maximum agreement; None if several share it

    @property
    def holds(self) -> bool:
        """Every decision is uniquely correct."""
        return all(self.within)

    @property
    def correct(self) -> int:
        """Clients that maximum agreement names uniquely and rightly."""
        return sum(named == client for client, named in enumerate(self.attributed))


def agreement(extracted: Bits, codewords: Bits) -> npt.NDArray[np.float64]:
    """M(i, j) = 1 - HD(extracted word i, codeword j)/n (`eq:match`)."""
    read, known = _words(extracted, "extracted words"), _words(codewords, "codewords")
    if read.shape[1] != known.shape[1]:
        raise InputError(f"extracted words of shape {read.shape}, codewords of shape {known.shape}")
    matched: npt.NDArray[np.float64] = 1.0 - _hamming(read, known) / read.shape[1]
    return matched


def cross_talk(matrix: npt.NDArray[np.float64]) -> float:
    """Mean agreement with other clients' codewords; near 1/2 where marks do not interfere."""
    others = ~np.eye(len(matrix), dtype=bool)
    if not others.any():
        raise InputError("cross-talk needs at least two clients")
    return float(matrix[others].mean())


def radius_check(extracted: Bits, codewords: Bits) -> RadiusCheck:
    """Distances, separation and maximum-agreement decisions; row i of both arrays belongs to client i."""
    read, known = _words(extracted, "extracted words"), _words(codewords, "codewords")
    if read.shape != known.shape:
        raise InputError(f"extracted words of shape {read.shape}, codewords of shape {known.shape}")
    if len(known) < 2:
        raise InputError("attribution needs at least two clients")
    distance = _hamming(read, known)
    between = _hamming(known, known)
    d_min = int(between[np.triu_indices(len(known), 1)].min())
    own = distance.diagonal()
    nearest = distance.argmin(axis=1)
    unique = (distance == distance.min(axis=1, keepdims=True)).sum(axis=1) == 1
    return RadiusCheck(
        distances=tuple(own.tolist()),
        min_distance=d_min,
        within=tuple((2 * own < d_min).tolist()),
        attributed=tuple(int(named) if alone else None for named, alone in zip(nearest, unique, strict=True)),
    )


def near_collision_bound(*, clients: int, length: int, zeta: Number) -> float:
    """Some pair of codewords within (1/2 - ζ)n, at most (N choose 2) e^(-2ζ²n), rounded up."""
    gap = exact(zeta, "zeta")
    if not 0 < gap < Fraction(1, 2):
        raise InputError(f"zeta must lie in (0, 1/2), not {zeta}")
    with precision():
        return min(1.0, upper_float(_pair_term(clients, length, gap)))


def attribution_error_bound(*, clients: int, length: int, radius: Number, eta: Number) -> float:
    """`eq:attr-thresh`, rounded up: η bounds P[max d_i > rn], `radius` is r in [0, 1/4)."""
    r, tail = exact(radius, "the radius"), probability(eta, "eta")
    if not 0 <= r < Fraction(1, 4):
        raise InputError(f"the radius must lie in [0, 1/4), not {radius}")
    with precision():
        return min(1.0, upper_float(ball(tail) + _pair_term(clients, length, Fraction(1, 2) - 2 * r)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """`cor:envelope`: every client is attributed correctly except with probability `error`."""

    error: float  # left side of `eq:master`, rounded up
    slack: float  # ξ
    radius: float  # r = 1 - p + ξ


def envelope(*, clients: int, length: int, accuracy: Number, slack: Number) -> Envelope:
    """The left side of `eq:master` at one given ξ; it is at most δ exactly when the condition holds for δ."""
    p, xi = probability(accuracy, "the accuracy"), _positive(slack, "the slack")
    r = 1 - p + xi
    if r >= Fraction(1, 4):
        raise InputError(f"the radius 1 - p + slack = {float(r):.4g} must stay below 1/4")
    with precision():
        own = _at_least(clients, 2, "clients") * (-2 * _at_least(length, 1, "bits") * ball(xi**2)).exp()
        error = own + _pair_term(clients, length, Fraction(1, 2) - 2 * r)
        return Envelope(error=min(1.0, upper_float(error)), slack=float(xi), radius=float(r))


def best_envelope(*, clients: int, length: int, accuracy: Number) -> Envelope:
    """`eq:master` at the best ξ of a grid of 4095: valid at any, so the search needs no proof."""
    room = probability(accuracy, "the accuracy") - Fraction(3, 4)
    if room <= 0:
        raise InputError(f"no slack leaves a radius below 1/4 at accuracy {accuracy}")

    pairs = math.comb(_at_least(clients, 2, "clients"), 2)

    def exponent(step: int) -> float:
        slack = float(room) * step / 4096
        gap = 2 * (float(room) - slack)  # 1/2 - 2r
        return max(math.log(clients) - 2 * length * slack**2, math.log(pairs) - 2 * length * gap**2)

    slack = room * Fraction(min(range(1, 4096), key=exponent), 4096)
    return envelope(clients=clients, length=length, accuracy=accuracy, slack=slack)


def _pair_term(clients: int, length: int, gap: Fraction) -> arb:
    """(N choose 2) e^(-2n gap²)."""
    pairs = math.comb(_at_least(clients, 2, "clients"), 2)
    return pairs * (-2 * _at_least(length, 1, "bits") * ball(gap**2)).exp()


def _hamming(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """All distances: |x| + |y| - 2<x, y>."""
    distances: npt.NDArray[np.int64] = one.sum(axis=1)[:, None] + other.sum(axis=1) - 2 * one @ other.T
    return distances


def _words(words: Bits, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(words)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} must be a table of bits, not an array of shape {array.shape}")
    if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise InputError(f"{name} must hold only 0 and 1")
    return array.astype(np.int64)


def _dimension(omega: int) -> int:
    if omega < 2:
        raise InputError(f"a carrier of dimension {omega}")
    return omega


def _at_least(value: int, least: int, what: str) -> int:
    if value < least:
        raise InputError(f"{value} {what}, at least {least} needed")
    return value


def _positive(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise InputError(f"{name} must be positive, not {value}")
    return number


def _not_negative(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise InputError(f"{name} must not be negative, not {value}")
    return number
