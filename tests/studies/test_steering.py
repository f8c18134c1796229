"""Steered words: what a coalition may look at, what comes of it, and the table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.codes import Code, CodeKey, unpack
from zktrace.errors import InputError
from zktrace.studies.paper_words import steering_words
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import run_study
from zktrace.studies.steering import SteeringTrial, batches, steered, steering_trials
from zktrace.studies.tables import TABLES

PAIR = SteeringTrial(steering="majority", law="tardos", size=2, trials=12, flips=0.2)


def held(law: str = "tardos") -> tuple[np.ndarray, np.ndarray]:
    code = Code(key=CodeKey(secret=b"s" * 32), label="weight", length=512, colluders=2, law=law)  # type: ignore[arg-type]
    return unpack(code.rows([1, 4]), 512), code.biases.probabilities()


def test_only_the_oracle_looks_at_the_biases() -> None:
    """The same word comes out whatever the biases are, unless it is told them."""
    rows, biases = held()
    for steering, same in (("majority", True), ("lowering", True), ("oracle", False)):
        trial = replace(PAIR, steering=steering)
        found = [steered(trial, rows, p, np.random.default_rng(7)) for p in (biases, 1.0 - biases)]
        assert bool((found[0] == found[1]).all()) == same


def test_choices_are_made_where_members_differ() -> None:
    rows, biases = held()
    alike = rows[0] == rows[1]
    for steering in ("lowering", "oracle"):
        trial = replace(PAIR, steering=steering, flips=0.0)
        word = steered(trial, rows, biases, np.random.default_rng(8))
        assert (word[alike] == rows[0][alike]).all()


def test_majority_lowers_flips_and_traces_and_lowering_hides(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    wanted = list(steering_trials(laws=["tardos"], sizes=[2], strengths=[0.0, 1.0], count=12))
    assert [(each.steering, each.strength) for each in wanted] == [
        ("majority", 0.0),
        ("majority", 1.0),
        ("lowering", 1.0),
        ("oracle", 1.0),
    ]
    made = [row.outcome for row in run_study(batches(wanted), rows).made]
    plain, steered_up, hidden, known = made
    assert plain["own_flips"] == pytest.approx(0.28, abs=0.03)  # as the paper's pairs
    assert steered_up["own_flips"] == pytest.approx(0.12, abs=0.03)
    assert steered_up["traced"] == 12
    assert known["greatest"] < hidden["greatest"] < steered_up["greatest"]
    assert all(each["framed"] == 0 for each in made)
    assert run_study(batches(wanted), rows).there == len(wanted)
    table = TABLES["steering"](rows.read()).splitlines()
    assert table[2].startswith("| tardos | 2 | nobody | 0 | 1 |")
    (line,) = (each for each in table if each.startswith("| tardos | 2 | majority | 1 |"))
    assert "| 12/12 |" in line


def test_a_fair_law_has_no_oracle_and_nonsense_is_refused() -> None:
    fair = list(steering_trials(laws=["fair"]))
    assert {each.steering for each in fair} == {"majority", "lowering"}
    assert sum(each.guess for each in batches(fair)) > batches(fair[:2])[0].guess > 0
    for given, said in (
        ({"steering": "wish"}, "no steering 'wish'"),
        ({"law": "nuida"}, "under the laws tardos and fair"),
        ({"size": 10}, r"has 2\.\.9 members"),
        ({"strength": 1.5}, "must lie in"),
    ):
        with pytest.raises(InputError, match=said):
            replace(PAIR, **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no law 'nuida'"):
        list(steering_trials(laws=["nuida"]))


def test_seeds_of_one_kind_are_one_line_and_laws_are_told_apart() -> None:
    def made(seed: int, law: str, **counts: float) -> Row:
        trial = {"study": "steering", "seed": seed, "law": law, "size": 2, "steering": "majority"}
        facts = {"strength": 1.0, "trials": int(counts.pop("trials", 400)), "budget": "1/1000"}
        zero = {"traced": 0, "caught": 0, "framed": 0, "leads": 0, "own_flips": 0.2, "greatest": 9.0}
        return Row(trial=trial | facts, outcome=zero | counts, origin={})

    rows = [
        made(1, "tardos", traced=400, caught=400, greatest=8.0),
        made(2, "tardos", traced=100, caught=100, greatest=4.0, trials=1200, leads=1),
        made(1, "fair", traced=399, caught=800, framed=1),
    ]
    head, _, *lines = TABLES["steering"](rows).splitlines()
    assert lines[0] == "| tardos | 2 | majority | 1 | 2 | 0.20 | 5.0 | 500/1600 | 0.31 | 0 | 1 |"
    assert lines[1] == "| fair | 2 | majority | 1 | 1 | 0.20 | 9.0 | 399/400 | 2.00 | 1 | 0 |"
    assert "| seeds |" in head
    said = steering_words(rows)
    assert "traced in 500 of 1600 (paper: every one)" in said
    assert (
        "under the law tardos in 0 of 1600 (up to 1.6 expected) and under the law fair in 1 of 400 (up to "
        "0.4 expected); each investigation has a budget of 1/1000" in said
    )
