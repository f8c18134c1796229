"""Good parameters of a finite guarantee, in float64 by quadrature: any positive ones give a valid bound."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zktrace.certificates.moments import TracingCode

Floats: TypeAlias = npt.NDArray[np.float64]

_NODES = 256
_LARGEST_EXPONENT = 600.0  # of an exponential in the float64 search


def search_threshold(*, code: TracingCode, recipients: int, level: Fraction) -> tuple[float, float]:
    """(a, z): the least quadrature value z of (ln(N/eps1) + n ln I(a))/a, which is quasi-convex in a."""
    tangent, weight = _nodes(code.cutoff, upper_half=False)
    required = math.log(recipients / level)

    def threshold(a: float) -> float:
        sin2 = tangent**2 / (1 + tangent**2)
        moment = (1 - sin2) * np.exp(-a * tangent) + sin2 * np.exp(a / tangent)
        return (required + code.length * math.log(weight @ moment)) / a

    a = _least(threshold, _LARGEST_EXPONENT * _smallest_tangent(code.cutoff))
    return a, threshold(a)


def search_tilt(*, size: int, threshold: float, flip: Fraction, code: TracingCode) -> float:
    """The t with the least quadrature value of t s z + n ln J_s(t, q), which is convex in t."""
    tangent, weight = _nodes(code.cutoff, upper_half=True)
    q = float(flip)
    columns = [_column(tangent, size, ones) for ones in range(size + 1)]

    def log_bound(t: float) -> float:
        total = 0.0
        for ones, (chance, score) in enumerate(columns):
            up, down = np.exp(t * score), np.exp(-t * score)
            said_one = float(weight @ (chance * ((1 - q) * down + q * up)))
            said_zero = float(weight @ (chance * ((1 - q) * up + q * down)))
            worst = said_one if ones == size else said_zero if ones == 0 else max(said_one, said_zero)
            total += math.comb(size, ones) * worst
        return t * size * threshold + code.length * math.log(total)

    return _least(log_bound, _LARGEST_EXPONENT * _smallest_tangent(code.cutoff) / size)


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    return x, weight


def _nodes(cut: Fraction, *, upper_half: bool) -> tuple[Floats, Floats]:
    """Gauss-Legendre tangents of the angle and weights that sum to one."""
    x, weight = _legendre()
    first = math.asin(math.sqrt(cut))
    last = math.pi / 2 - first if upper_half else math.pi / 4
    return np.tan(first + (last - first) * (x + 1) / 2), weight / 2


def _column(tangent: Floats, size: int, ones: int) -> tuple[Floats, Floats]:
    """The probability of one column with `ones` ones, and its score a_k(p)."""
    p = tangent**2 / (1 + tangent**2)
    return p**ones * (1 - p) ** (size - ones), ones / tangent - (size - ones) * tangent


def _smallest_tangent(cut: Fraction) -> float:
    return math.sqrt(cut / (1 - cut))


def _least(f: Callable[[float], float], high: float) -> float:
    """Golden-section search for the least f on (0, high], in the logarithm."""
    golden = (math.sqrt(5) - 1) / 2
    low, top = math.log(high) - 40.0, math.log(high)
    left, right = top - golden * (top - low), low + golden * (top - low)
    at_left, at_right = f(math.exp(left)), f(math.exp(right))
    for _ in range(70):
        if at_left <= at_right:
            top, right, at_right = right, left, at_left
            left = top - golden * (top - low)
            at_left = f(math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (top - low)
            at_right = f(math.exp(right))
    return math.exp((low + top) / 2)
