"""Are two ways of doing something as good as each other? Paired differences against a margin."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import mean, stdev
from typing import Final

from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

from zktrace.errors import InputError

LEVEL: Final = 0.05  # of a test


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Two one-sided t tests of paired differences: is their mean within the margin of 0?"""

    mean: float
    low: float  # of the interval that covers the mean difference in 95 of 100 cases,
    high: float
    margin: float
    chance: float  # of differences as small as these, were the true mean at the margin or beyond

    @property
    def shown(self) -> bool:
        """Whether the two are as good as each other, at LEVEL."""
        return self.chance <= LEVEL


def equivalence(differences: Sequence[float], margin: float) -> Equivalence:
    """Of two differences or more, or InputError."""
    count = len(differences)
    if count < 2 or margin <= 0:
        raise InputError("equivalence is tested on two differences or more, with a positive margin")
    centre, error = mean(differences), stdev(differences) / sqrt(count)
    reach = float(stdtrit(count - 1, 1 - LEVEL / 2)) * error
    chance = max(_beyond(margin - centre, error, count), _beyond(margin + centre, error, count))
    return Equivalence(mean=centre, low=centre - reach, high=centre + reach, margin=margin, chance=chance)


def _beyond(distance: float, error: float, count: int) -> float:
    """The chance that Student's t exceeds a distance in standard errors."""
    found = distance / error if error else (inf if distance > 0 else -inf)
    return float(stdtr(count - 1, -found))
