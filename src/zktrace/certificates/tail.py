"""Upper bounds on the tail of an innocent's score: Chernoff's, and the convolved tail itself.

`chernoff` encloses the exponent of `thm:tardos` with Arb. `convolved` is sharper: it tilts the law, convolves
the tilted jumps on a lattice in float64, and undoes the tilt. Why the result is a bound for every tilt,
lattice and rounding is in docs/tail-certificates.md; in short:

- rounding jumps up to the lattice only increases the sum;
- tilted probabilities are any pairs of positive floats: the ratio to the true ones is enclosed with Arb;
- convolving modulo the window only adds foreign mass to a place of the window; what belongs above the window
  is added in full;
- sums and products of non-negative floats have a relative error of less than u each.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from zktrace.certificates.intervals import ball, dyadic, upper_float
from zktrace.certificates.law import InnocentLaw
from zktrace.codes.biases import BIAS_BITS, ONE
from zktrace.primitives.precision import precision

_UNIT = 2.0**-53
_FADE = 20.0  # the tilt falls by e^-20 across the window at least,
_MARGIN = 12.0  # and by e^-12 more than the tail it is made for
_LARGEST_WINDOW = 1 << 17
_LEAST_WEIGHT = 2.0**-60
_UNDERFLOW = 2.0**-900  # above everything that gradual underflow can lose in one convolution


def chernoff(law: InnocentLaw, score: Fraction, tilt: float) -> arb:
    """A ball around E = a z - psi(a), so that P[S > score] <= e^-E (`eq:mgf-chernoff`)."""
    with precision():
        return dyadic(tilt) * (ball(law.sum_at(score)) - law.floor) - _log_mgf(law, dyadic(tilt))


def chernoff_threshold(law: InnocentLaw, tilt: float, exponent: arb) -> arb:
    """A ball around the score at which `chernoff` reaches `exponent` with this tilt."""
    with precision():
        total = (exponent + _log_mgf(law, dyadic(tilt))) / dyadic(tilt) + law.floor
        return (total - ball(law.sum_at(Fraction(0)))) / (1 << law.coefficients.scale_bits)


def _log_mgf(law: InnocentLaw, a: arb) -> arb:
    """psi(a) = sum_b ln(1 - q_b + q_b e^(a jump_b))."""
    scale = arb((1, -BIAS_BITS))
    product = arb(1)
    for jump, odds in zip(law.jumps.tolist(), law.odds.tolist(), strict=True):
        product *= 1 + odds * scale * (a * jump).expm1()
    return product.log()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolvedTail:
    """Bounds on P[sum of jumps >= step * k] for the k of a window, all from one convolution."""

    law: InnocentLaw
    tilt: float  # a, a lattice step
    step: int  # h, what one lattice step is worth in units of L
    begin: int  # the least k of the window
    sums: NDArray[np.float64]  # sum of w(j) e^(-a (j - k)) over the j >= k of the window and beyond
    log_scale: arb  # the bound at k is exp(log_scale - a k) sums[k - begin]

    @property
    def greatest(self) -> int:
        """The greatest value of the rounded sum, in lattice steps."""
        return int((-(-self.law.jumps // self.step)).sum())

    def first_step(self, total: int) -> int:
        """The least k that L > total implies."""
        return (total - self.law.floor) // self.step + 1

    def log_bound(self, k: int) -> arb:
        """ln of a bound on P[rounded sum >= k]; minus infinity where nothing can be."""
        if k > self.greatest:
            return arb("-inf")
        if k < self.begin:
            return arb(0)
        with precision():
            end = self.begin + len(self.sums) - 1
            place = min(k, end)  # beyond the window the bound is Chernoff's
            value = (
                self.log_scale - dyadic(self.tilt) * k + dyadic(float(self.sums[place - self.begin])).log()
            )
            return arb(0) if value.upper() > 0 else value

    def least_step(self, log_most: arb) -> int:
        """The least k of the window whose bound is at most e^log_most; one above all values at the most."""
        low, high = self.begin, self.greatest + 1
        while low < high:
            middle = (low + high) // 2
            if self.log_bound(middle).upper() <= log_most.lower():
                high = middle
            else:
                low = middle + 1
        return low


def convolved(law: InnocentLaw, tilt: float) -> ConvolvedTail:
    """The tail of a law that has jumps, around the value that `tilt` (in units of L) makes typical."""
    with precision():
        fade = _fade(law, tilt)
        step = max(1, math.ceil(fade / (tilt * _LARGEST_WINDOW)))
        jumps = -(-law.jumps // step)
        a = tilt * step
        values = int(jumps.sum()) + 1
        window = min(math.ceil(fade / a), values)
        leap = _chances(law, jumps, dyadic(a))
        stay = np.maximum(1.0 - leap, _LEAST_WEIGHT)
        weights = _convolve(jumps, stay, leap, window)
        rate = upper_float((-dyadic(a)).exp())
        begin, above = 0, 0.0  # a window of all values has nothing above it
        if window < values:
            begin = max(0, round(math.fsum((jumps * leap).tolist())) - window // 4)
            above = upper_float(_product(stay, leap))
        slack = 1 + (4 * len(jumps) + 4 * window) * _UNIT * 2
        return ConvolvedTail(
            law=law,
            tilt=a,
            step=step,
            begin=begin,
            sums=_untilted(weights, begin, rate, above) * slack,
            log_scale=_log_ratio(law, jumps, stay, leap, dyadic(a)),
        )


def _fade(law: InnocentLaw, tilt: float) -> float:
    """By how much the tilt falls across the window: foreign mass counts e^-12 of the tail, or less."""
    typical = math.fsum((law.jumps * _chances(law, law.jumps, dyadic(tilt))).tolist())
    exponent = float((dyadic(tilt) * dyadic(typical) - _log_mgf(law, dyadic(tilt))).mid())
    return max(_FADE, exponent + _MARGIN)


def _convolve(
    jumps: NDArray[np.int64], stay: NDArray[np.float64], leap: NDArray[np.float64], window: int
) -> NDArray[np.float64]:
    """Weights of the sum of jumps modulo `window`; a position stays or leaps with a weight of its own."""
    order = np.argsort(jumps, kind="stable")  # equal jumps too: sums come out alike everywhere
    now, then = np.zeros(window), np.zeros(window)
    now[0] = 1.0
    reach = 1  # only now[:reach] is not zero
    for jump, keep, move in zip(
        jumps[order].tolist(), stay[order].tolist(), leap[order].tolist(), strict=True
    ):
        shift = jump % window
        reach = min(window, reach + jump)
        np.multiply(now[:reach], keep, out=then[:reach])
        moved = now[:reach] * move
        inside = reach - shift
        then[shift:reach] += moved[:inside]
        then[:shift] += moved[inside:] if reach == window else 0.0
        now, then = then, now
    return now


def _untilted(weights: NDArray[np.float64], begin: int, rate: float, above: float) -> NDArray[np.float64]:
    """s_k = w(k) + rate s_(k+1) down the window, starting from all that may lie above it."""
    window = len(weights)
    ordered = weights[(begin + np.arange(window)) % window].tolist()
    sums = [0.0] * (window + 1)
    carried = sums[window] = above
    for k in range(window - 1, -1, -1):
        carried = ordered[k] + rate * carried + _UNDERFLOW
        sums[k] = carried
    return np.array(sums)


def _chances(law: InnocentLaw, jumps: NDArray[np.int64], a: arb) -> NDArray[np.float64]:
    """P[J_b = 1] under the tilt, rounded to floats: the same on every machine, and never 0."""
    rows = zip(jumps.tolist(), law.odds.tolist(), strict=True)
    raised = ((odds, odds * (a * jump).exp()) for jump, odds in rows)
    chances = [float((up / (ONE - odds + up)).mid()) for odds, up in raised]
    return np.maximum(chances, _LEAST_WEIGHT)


def _product(stay: NDArray[np.float64], leap: NDArray[np.float64]) -> arb:
    product = arb(1)
    for keep, move in zip(stay.tolist(), leap.tolist(), strict=True):
        product *= dyadic(keep) + dyadic(move)
    return product


def _log_ratio(
    law: InnocentLaw, jumps: NDArray[np.int64], stay: NDArray[np.float64], leap: NDArray[np.float64], a: arb
) -> arb:
    """ln of the product over positions of max((1 - q)/stay, q e^(a jump)/leap)."""
    product = arb(1)
    for jump, odds, keep, move in zip(
        jumps.tolist(), law.odds.tolist(), stay.tolist(), leap.tolist(), strict=True
    ):
        stays = (ONE - odds) / dyadic(keep)
        leaps = odds * (a * jump).exp() / dyadic(move)
        product *= stays.max(leaps) * arb((1, -BIAS_BITS))
    return product.log()
