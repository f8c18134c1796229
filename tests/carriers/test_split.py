"""How a budget is divided: no part is given twice, and what is faint has most."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from zktrace.carriers import IDENTITY, planned
from zktrace.carriers.split import SCORES, carrier_share, score_shares, stage_share, tail_level, tail_share
from zktrace.certificates.stages import MAX_STAGES
from zktrace.errors import InputError

EVERY = ["weight", "feature", "output"]


@pytest.mark.parametrize("vary", [True, False])
@pytest.mark.parametrize("rule", ["certified", "paper"])
@pytest.mark.parametrize("together", [EVERY, ["weight"], ["output"], ["weight", "feature"], EVERY[1:]])
def test_all_levels_of_a_look_add_up_to_no_more_than_it_has(
    together: list[str], rule: str, vary: bool
) -> None:
    stages = range(1, MAX_STAGES + 1 if rule == "certified" else 2)
    levels = [
        tail_level(
            Fraction(1),
            stage=stage,
            carrier=carrier,
            together=together,
            score=score,
            vary=vary,
            tail=tail,
            rule=rule,
        )
        for stage, carrier, score, tail in product(
            stages, together, score_shares(vary, rule), ("positive", "negative")
        )
    ]
    assert all(level > 0 for level in levels)
    assert 1 - Fraction(1, 2**15) <= sum(levels) <= 1


def test_the_table() -> None:
    assert [32 * stage_share(i, "certified") for i in (1, 2, 3)] == [24, 4, 2]
    assert [carrier_share(each, EVERY, "certified") for each in EVERY] == [
        Fraction(1, 20),
        Fraction(1, 20),
        Fraction(9, 10),
    ]
    assert [carrier_share(each, EVERY, "paper") for each in EVERY] == [Fraction(1, 3)] * 3
    assert carrier_share("output", ["output"], "certified") == 1
    assert score_shares(True, "certified") == {"soft": Fraction(1, 2), "map": Fraction(1, 2)}
    assert score_shares(False, "certified") == {"soft": 1}
    assert score_shares(True, "paper") == {"hard": 1}
    assert tail_share("positive", "certified") == Fraction(9, 10)
    assert planned(EVERY, [("channels", "weight")])[0].share == Fraction(19, 20)
    assert planned(EVERY, [("channels", "weight")])[0].alignment == IDENTITY


def test_a_students_threshold_falls_from_4_13_to_3_85_deviations() -> None:
    """Ten stations, a budget of 1/1000, the output carrier read beside two others, a fair code."""
    before = Fraction(1, 1000) * Fraction(9, 10) / 2 * Fraction(8, 10) / 2
    now = tail_level(
        Fraction(1, 1000) * planned(EVERY, [("channels", "weight")])[0].share,
        stage=1,
        carrier="output",
        together=EVERY,
        score="soft",
        vary=False,
        tail="positive",
        rule="certified",
    )
    assert stats.norm.isf(float(before) / 10) == pytest.approx(4.13, abs=0.005)
    assert stats.norm.isf(float(now) / 10) == pytest.approx(3.85, abs=0.01)


def test_a_score_pooled_over_carriers_would_not_pay() -> None:
    """A student says something in one carrier and nothing in two: their noise costs more than shares do.

    Scores of a certificate are sums, near normal: pooled ones have all of the level, and the noise of three.
    """
    level = Fraction(1, 1000) * planned(EVERY, [("channels", "weight")])[0].share
    parts = {"stage": 1, "score": "soft", "vary": False, "tail": "positive", "rule": "certified"}
    shared = tail_level(level, carrier="output", together=EVERY, **parts)
    whole = tail_level(level, carrier="output", together=["output"], **parts)
    apart, pooled = (stats.norm.isf(float(each) / 10) for each in (shared, whole))
    assert apart - pooled == pytest.approx(0.03, abs=0.005)  # the most that any pooling gains there
    rng = np.random.default_rng(5)
    scores = np.array([0.0, 0.0, 4.5]) + rng.standard_normal((200_000, 3))
    assert np.mean(scores[:, 2] > apart) == pytest.approx(0.74, abs=0.01)
    assert np.mean(scores.sum(axis=1) / np.sqrt(3.0) > pooled) == pytest.approx(0.11, abs=0.01)


def test_what_has_no_share_has_no_level() -> None:
    for score in set(SCORES) - {"soft"}:
        with pytest.raises(InputError, match="not scored by"):
            tail_level(
                Fraction(1),
                stage=1,
                carrier="weight",
                together=["weight"],
                score=score,
                vary=False,
                tail="positive",
                rule="certified",
            )
    with pytest.raises(InputError, match="not one of"):
        carrier_share("weight", ["feature"], "certified")
