"""Counts of rare events against the chance that was promised for them."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

CONFIDENCE: Final = Fraction(99, 100)  # of an interval around a rate
SURPRISE: Final = Fraction(1, 100_000)  # a count that a true chance gives more rarely refutes it


def greatest(trials: int, chance: Fraction) -> int:
    """The least count that a binomial exceeds with a probability of at most SURPRISE: exact, in integers."""
    yes, no = chance.numerator, chance.denominator - chance.numerator
    term, above = no**trials, chance.denominator**trials  # times denominator^trials, all of them
    allowed = SURPRISE * above
    for count in range(trials + 1):
        above -= term  # P[more than count]
        if above <= allowed:
            return count
        term = term * (trials - count) * yes // ((count + 1) * no)
    return trials


def interval(count: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's interval around a rate: each end is missed with half of what is left."""
    half = float(1 - CONFIDENCE) / 2
    low = _rate(lambda p: _at_least(count, trials, p) >= half) if count else 0.0
    high = _rate(lambda p: _at_least(count + 1, trials, p) >= 1 - half) if count < trials else 1.0
    return low, high


def _rate(reached: Callable[[float], bool]) -> float:
    """Where a rising condition becomes true between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(53):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _at_least(count: int, trials: int, p: float) -> float:
    """P[binomial >= count] for 0 < p < 1."""
    if not 0.0 < p < 1.0:
        return float(p >= 1.0)
    whole = math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * math.log(p)
            + (trials - k) * math.log1p(-p)
        )
        for k in range(count, trials + 1)
    )
