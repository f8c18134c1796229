"""Two one-sided tests, against the definition and against coin flips."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from zktrace.errors import InputError
from zktrace.studies.equivalence import difference, equivalence


def test_it_is_the_larger_of_two_one_sided_tests() -> None:
    drawn = np.random.default_rng(1).normal(0.1, 0.3, 7)
    found = equivalence(list(drawn), 0.5)
    below = ttest_1samp(drawn, -0.5, alternative="greater")
    above = ttest_1samp(drawn, 0.5, alternative="less")
    assert math.isclose(found.chance, max(below.pvalue, above.pvalue), rel_tol=1e-9)
    low, high = ttest_1samp(drawn, 0.0).confidence_interval(0.95)
    assert math.isclose(found.low, low, rel_tol=1e-9)
    assert math.isclose(found.high, high, rel_tol=1e-9)


def test_a_mean_at_the_margin_is_called_equivalent_in_one_of_twenty() -> None:
    rng = np.random.default_rng(2)
    called = sum(equivalence(list(rng.normal(0.5, 0.4, 5)), 0.5).shown for _ in range(4000))
    assert 0.035 < called / 4000 < 0.065


def test_without_any_spread_the_margin_decides() -> None:
    assert equivalence([0.2, 0.2], 0.5).chance == 0.0
    assert equivalence([0.7, 0.7], 0.5).chance == 1.0


def test_a_difference_is_the_two_sided_test() -> None:
    drawn = np.random.default_rng(3).normal(-0.2, 0.3, 6)
    assert math.isclose(difference(list(drawn)), ttest_1samp(drawn, 0.0).pvalue, rel_tol=1e-9)
    assert difference([0.1, -0.1]) == 1.0
    with pytest.raises(InputError, match="two differences or more"):
        difference([0.1])


@pytest.mark.parametrize(("given", "margin"), [([0.1], 0.5), ([0.1, 0.2], 0.0)])
def test_one_difference_or_no_margin_test_nothing(given: list[float], margin: float) -> None:
    with pytest.raises(InputError, match="two differences or more"):
        equivalence(given, margin)
