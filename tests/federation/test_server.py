"""The server believes nobody: what cannot be averaged is left out and reported."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from federation import small
from zktrace.errors import InputError
from zktrace.federation.client import Absence, Update
from zktrace.federation.server import conclude, failed, participants
from zktrace.learning.arrays import State
from zktrace.learning.training import EpisodicReport

SPEC = small.spec()
EQUAL = (1, 1, 1)
BEFORE: State = {"w": np.zeros(3, np.float32), "n": np.array(5)}


def update(station: int, value: float, *, samples: int = 1, number: int = 0, **state: np.ndarray) -> Update:
    report = EpisodicReport(episodes=1, images=1, loss=value, penalty=0.0, accuracy=0.5)
    filled = {"w": np.full(3, value, np.float32), "n": np.array(5 + station)} | state
    return Update(station=station, round=number, state=filled, samples=samples, report=report)


def test_the_next_state_is_the_mean_weighted_by_the_roster() -> None:
    answers = [update(0, 1.0, samples=1), update(2, 4.0, samples=3), update(1, 2.0, samples=4)]
    state, report = conclude(SPEC, 0, BEFORE, (0, 1, 2), answers, counts=(1, 4, 3))
    assert state["w"].tolist() == [(1 * 1 + 4 * 3 + 2 * 4) / 8] * 3
    assert state["w"].dtype == np.float32
    assert (state["n"].dtype, int(state["n"])) == (np.int64, 6)
    assert report.trained == (0, 1, 2)
    assert (report.absent, report.excluded) == ({}, {})
    assert report.loss == pytest.approx(2.625)


def test_the_order_of_the_answers_does_not_matter() -> None:
    answers = [update(station, 0.1 * station, samples=station + 1) for station in range(3)]
    states = [
        conclude(SPEC, 0, BEFORE, (0, 1, 2), each, counts=(1, 2, 3))[0] for each in (answers, answers[::-1])
    ]
    assert (states[0]["w"] == states[1]["w"]).all()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (update(1, np.nan), "3 values that are NaN or infinite"),
        (update(1, 1.0, w=np.full(3, np.inf, np.float32)), "NaN or infinite"),
        (update(1, 1.0, extra=np.zeros(1)), "another architecture"),
        (update(1, 1.0, w=np.zeros(4, np.float32)), "another architecture"),
        (update(1, 1.0, w=np.zeros(3, np.float64)), "another architecture"),
        (update(1, 1.0, number=3), "an update of round 4, not of round 1"),
        (update(1, -77.0, samples=0), "claims 0 samples, the roster says 1"),
        (update(1, -77.0, samples=2), "claims 2 samples, the roster says 1"),
        (update(1, -77.0, samples=1 << 62), f"claims {1 << 62} samples, the roster says 1"),
    ],
)
def test_a_bad_update_is_left_out_and_reported(bad: Update, reason: str) -> None:
    state, report = conclude(SPEC, 0, BEFORE, (0, 1), [update(0, 2.0), bad], counts=EQUAL)
    assert state["w"].tolist() == [2.0] * 3
    assert report.trained == (0,)
    assert list(report.excluded) == [1]
    assert reason in report.excluded[1]


def test_who_was_not_asked_or_answers_twice_is_left_out() -> None:
    answers = [update(0, 1.0), update(0, 9.0), update(2, 9.0)]
    state, report = conclude(SPEC, 0, BEFORE, (0, 1), answers, counts=EQUAL)
    assert state["w"].tolist() == [1.0] * 3
    assert report.excluded == {0: "answered twice", 2: "was not asked in this round"}
    assert report.absent == {1: "no answer"}


def test_a_round_without_a_usable_update_leaves_the_state_alone() -> None:
    gone = Absence(station=0, round=0, reason="offline")
    answers = [gone, failed(1, 0, InputError("no data"))]
    state, report = conclude(SPEC, 0, BEFORE, (0, 1), answers, counts=EQUAL)
    assert state is BEFORE
    assert report.absent == {0: "offline", 1: "no data"}
    assert np.isnan(report.loss)


def test_participants_are_a_fixed_share_of_the_roster() -> None:
    base = small.preset(clients=10)
    third = small.spec(replace(base, federation=replace(base.federation, participation=0.3)))
    drawn = [participants(third, number) for number in range(200)]
    assert all(len(set(asked)) == len(asked) == 3 for asked in drawn)
    assert drawn == [participants(third, number) for number in range(200)]
    counts = np.bincount(np.concatenate(drawn), minlength=10)
    assert (np.abs(counts - 60) < 30).all()
    assert participants(small.spec(base), 0) == tuple(range(10))


def test_a_roster_and_its_words_must_fit() -> None:
    with pytest.raises(InputError, match="2 codewords for 3 stations"):
        replace(SPEC, words=SPEC.words[:2])
