"""Are two ways of doing something as good as each other, or do they differ? Paired differences decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev
from typing import Final

from flint import arb

from zktrace.errors import InputError

LEVEL: Final = 0.05  # of a test


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Two one-sided t tests of paired differences: is their mean within the margin of 0?"""

    mean: float
    low: float  # of the interval around the mean difference
    high: float
    margin: float
    chance: float  # of differences as small as these, were the true mean at the margin or beyond

    @property
    def shown(self) -> bool:
        """Whether the two are as good as each other, at LEVEL."""
        return self.chance <= LEVEL


def equivalence(differences: Sequence[float], margin: float, *, cover: float = 0.95) -> Equivalence:
    """Of two differences or more, or InputError. The interval covers the true mean in such a part of cases.

    With 0.9 it lies within the margin exactly where the two are shown to be as good as each other.
    """
    count = len(differences)
    if count < 2 or margin <= 0:
        raise InputError("equivalence is tested on two differences or more, with a positive margin")
    centre, error = mean(differences), stdev(differences) / sqrt(count)
    reach = _quantile((1 - cover) / 2, count - 1) * error
    chance = max(_beyond(margin - centre, error, count), _beyond(margin + centre, error, count))
    return Equivalence(mean=centre, low=centre - reach, high=centre + reach, margin=margin, chance=chance)


def difference(differences: Sequence[float]) -> float:
    """p of the two-sided t test that their mean is 0: small where the two ways differ. Of two or more."""
    count = len(differences)
    if count < 2:
        raise InputError("a difference is tested on two differences or more")
    return min(1.0, 2 * _beyond(abs(mean(differences)), stdev(differences) / sqrt(count), count))


def _beyond(distance: float, error: float, count: int) -> float:
    """The chance that Student's t exceeds a distance in standard errors."""
    if not error:
        return 0.0 if distance > 0 else 1.0
    return _above(distance / error, count - 1)


def _above(value: float, freedom: int) -> float:
    """P[t > value], by the regularised incomplete beta function."""
    share = arb(freedom) / (arb(freedom) + arb(value) ** 2)
    half = float(share.beta_lower(arb(freedom) / 2, arb(1) / 2, 1).mid()) / 2
    return half if value > 0 else 1 - half


def _quantile(chance: float, freedom: int) -> float:
    """What t exceeds with this chance, below one half; by bisection."""
    low, high = 0.0, 1.0
    while _above(high, freedom) > chance:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _above(middle, freedom) > chance else (low, middle)
    return high
