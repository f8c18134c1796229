"""Counts of rare events against the chance that was promised for them."""

from fractions import Fraction
from typing import Final

from scipy.special import betaincinv  # type: ignore[import-untyped]

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
    low = float(betaincinv(count, trials - count + 1, half)) if count else 0.0
    high = float(betaincinv(count + 1, trials - count, 1 - half)) if count < trials else 1.0
    return low, high
