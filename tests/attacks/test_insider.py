"""Own-row erasure in code space: what is written, when an adaptive insider stops, what it never sees."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from zktrace.attacks.insider import (
    Effort,
    Own,
    StoppingRule,
    Values,
    erase,
    erase_adaptively,
    fresh,
    low_rank,
    negated,
    own_score,
    words,
)
from zktrace.codes import Code, CodeKey, sums, unpack
from zktrace.codes.coefficients import symmetric
from zktrace.errors import InputError

LENGTH = 512
CODE = Code(key=CodeKey(secret=bytes(range(32))), label="insider", length=LENGTH, colluders=2)
ROW = unpack(CODE.rows([3])[0], LENGTH)


@dataclass
class LinearPen:
    """A model that is a vector of positions: words are added to it, by their size."""

    heard: list[Effort] = field(default_factory=list)
    told: list[tuple[str, ...]] = field(default_factory=list)
    unread: tuple[str, ...] = ()

    def write(
        self, state: Mapping[str, np.ndarray], own: Own, effort: Effort, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        self.heard.append(effort)
        self.told.append(tuple(own))
        moved = {name: state[name] + effort.factor * (2.0 * word - 1.0) for name, word in own.items()}
        return {**state, **moved}

    def read(self, state: Mapping[str, np.ndarray]) -> Values:
        return {name: values for name, values in state.items() if name not in self.unread}


def score(word: np.ndarray) -> float:
    """The symmetric score of the insider's row, in deviations."""
    coefficients = symmetric(word, CODE.biases)
    return float(coefficients.scores_float(sums(CODE.rows([3]), coefficients))[0]) / LENGTH**0.5


def test_negation_reverses_the_score() -> None:
    assert score(ROW) > 10
    assert score(negated(ROW)) == pytest.approx(-score(ROW), abs=1e-9)
    np.testing.assert_array_equal(negated(negated(ROW)), ROW)


def test_a_fresh_row_is_independent_of_the_old_one() -> None:
    rng = np.random.default_rng(1)
    found = [score(fresh(ROW, rng)) for _ in range(200)]
    assert abs(np.mean(found)) < 4 / 200**0.5
    assert 0.7 < np.std(found) < 1.4


def test_the_hybrid_turns_some_carriers_and_draws_the_others() -> None:
    own = {"weight": ROW, "feature": ROW}
    found = words("hybrid", own, ("weight",), np.random.default_rng(2))
    np.testing.assert_array_equal(found["weight"], negated(ROW))
    assert 0.4 < float((found["feature"] == ROW).mean()) < 0.6
    both = words("negation", own, (), np.random.default_rng(2))
    assert all((word == negated(ROW)).all() for word in both.values())
    with pytest.raises(InputError, match="no erasure 'wish'"):
        words("wish", own, (), np.random.default_rng(2))


def test_erasing_once_is_one_writing_with_the_whole_effort() -> None:
    pen, copy = LinearPen(), {"weight": 2.0 * ROW - 1.0}
    effort = Effort(episodes=300, factor=1.0)
    rng = np.random.default_rng(3)
    erased = erase(copy, {"weight": ROW}, pen, kind="negation", effort=effort, rng=rng)
    assert pen.heard == [effort]
    np.testing.assert_array_equal(erased.state["weight"], np.zeros(LENGTH))


def test_a_replacement_leaves_the_other_row_alone() -> None:
    """Where marks add up, negation leaves a clean rest that is read as the row; coins on top hide it."""
    pen, signs = LinearPen(), 2.0 * ROW - 1.0
    copy, own, rng = {"weight": 1.001 * signs}, {"weight": ROW}, np.random.default_rng(9)
    effort = Effort(episodes=300)
    rest = erase(copy, own, pen, kind="negation", effort=effort, rng=rng).state["weight"]
    assert own_score(rest, ROW) > 10
    coins = erase(copy, own, pen, kind="fresh", effort=effort, rng=rng).state["weight"]
    assert own_score(coins, ROW) > 10
    found = erase(copy, own, pen, kind="replacement", effort=effort, rng=rng)
    assert abs(own_score(found.state["weight"], ROW)) < 4
    assert [each.episodes for each in pen.heard] == [300, 300, 150, 150]


def test_an_adaptive_insider_stops_where_its_own_score_is_gone() -> None:
    """By directions that carry: about half of what would turn the row; another carrier goes on."""
    rng = np.random.default_rng(4)
    signs, noise = 2.0 * ROW - 1.0, 0.05 * rng.standard_normal(LENGTH)
    pen = LinearPen(unread=("spread",))
    copy = {"weight": signs + noise, "feature": 3.0 * signs + noise, "spread": signs}
    own = dict.fromkeys(copy, ROW)
    erased = erase_adaptively(
        copy,
        own,
        pen,
        effort=Effort(episodes=800, factor=4.0),
        turned=tuple(copy),
        stopping=StoppingRule(steps=16, limit=2.0),
        rng=rng,
    )
    assert {each.episodes for each in pen.heard} == {50}
    assert erased.steps == len(pen.told) < 16
    assert own_score(erased.state["feature"], ROW) < 2.0
    assert [("weight" in each) for each in pen.told] == [True] * 4 + [False] * (erased.steps - 4)
    assert all("spread" in each for each in pen.told)


def test_guessed_directions_tell_an_adaptive_insider_nothing() -> None:
    """What it reads there is noise: it believes to be done after one step."""
    rng = np.random.default_rng(5)
    pen, copy = LinearPen(), {"weight": 50.0 * rng.standard_normal(LENGTH)}
    assert abs(own_score(copy["weight"], ROW)) < 4
    stopping = StoppingRule(limit=4.0)
    erased = erase_adaptively(
        copy, {"weight": ROW}, pen, effort=Effort(episodes=8), stopping=stopping, rng=rng
    )
    assert erased.steps == 1


def test_low_rank_keeps_the_largest_directions_and_leaves_vectors_alone() -> None:
    rng = np.random.default_rng(6)
    main = np.outer(rng.standard_normal(8), rng.standard_normal(27)).astype(np.float32)
    state = {
        "conv": main.reshape(8, 3, 3, 3),
        "bias": np.ones(8, np.float32),
        "n": np.arange(4).reshape(2, 2),
    }
    state["conv"] = state["conv"] + 1e-3 * rng.standard_normal(state["conv"].shape).astype(np.float32)
    made = low_rank(state, kept=1 / 8)
    assert np.linalg.matrix_rank(made["conv"].reshape(8, 27), tol=1e-4) == 1
    np.testing.assert_allclose(made["conv"].reshape(8, 27), main, atol=0.02)
    np.testing.assert_allclose(low_rank(state, kept=1.0)["conv"], state["conv"], atol=1e-5)
    assert made["bias"] is state["bias"]
    assert made["n"] is state["n"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Effort(episodes=0), "both must be positive"),
        (lambda: Effort(episodes=1, factor=float("nan")), "both must be positive"),
        (lambda: StoppingRule(steps=0), "0 steps"),
        (lambda: negated(np.array([0, 2], np.uint8)), "a row is bits"),
        (lambda: own_score(np.zeros(3), ROW), "3 values for a row of 512 bits"),
        (lambda: low_rank({}, kept=0.0), "must lie above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()  # type: ignore[operator]
