"""The tracing study at its smallest: rows for every coalition, made once."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from support import seeded
from zktrace.errors import InputError
from zktrace.learning.presets import load_preset
from zktrace.marking.settings import CopySettings
from zktrace.studies.carrier_tables import copy_cost_table
from zktrace.studies.rows import Rows
from zktrace.studies.tables import federation_table
from zktrace.studies.tracing_tables import isolation_table, tracing_table

pytest.importorskip("torch", reason="torch is not installed")


TOLD = {
    "budget",
    "carriers",
    "dataset",
    "model",
    "part",
    "profile",
    "seed",
    "settings",
    "stations",
    "study",
    "width",
}


def test_coalitions_are_everybody_all_pairs_and_different_larger_ones() -> None:
    from zktrace.studies.tracing import SAMPLED, coalitions

    found = list(coalitions(10, 42))
    assert len(found) == len(set(found)) == 10 + 45 + 3 * SAMPLED
    assert found == list(coalitions(10, 42))
    assert found != list(coalitions(10, 43))
    assert {len(each) for each in found} == {1, 2, 3, 5, 8}
    assert len(list(coalitions(4, 1, sizes=(3,)))) == 4 + 6 + 4  # there are no more than four


@pytest.mark.parametrize(("stations", "size"), [(10, 3), (10, 5), (10, 8), (12, 2), (5, 8)])
def test_few_coalitions_are_drawn_from_the_list_of_all(stations: int, size: int) -> None:
    from zktrace.studies.tracing import SAMPLED, drawn

    every = list(combinations(range(stations), size))
    order = np.random.default_rng([7, size]).permutation(len(every))  # as ids of saved rows have it
    assert list(drawn(stations, size, SAMPLED, 7)) == [every[place] for place in order[:SAMPLED]]


def test_many_coalitions_are_drawn_without_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    from zktrace.studies import tracing

    found = list(tracing.drawn(40, 8, 20, 42))  # of 77 million
    assert len(set(found)) == 20
    assert all(len(set(each)) == 8 and each == tuple(sorted(each)) and each[-1] < 40 for each in found)
    assert found == list(tracing.drawn(40, 8, 20, 42))
    monkeypatch.setattr(tracing, "_FEW", 0)
    every = set(combinations(range(6), 3))
    assert set(tracing.drawn(6, 3, 100, 1)) == every  # all that there are
    seen = Counter(first for seed in range(600) for first in tracing.drawn(6, 3, 1, seed))
    assert seen.keys() == every
    assert max(seen.values()) < 3 * 600 / len(every)


def test_pairs_may_be_drawn_too() -> None:
    from zktrace.studies.tracing import coalitions

    found = list(coalitions(40, 1, sizes=(3,), pairs=15))
    assert [len(each) for each in found] == [1] * 40 + [2] * 15 + [3] * 20
    assert len(set(found)) == len(found)


def test_the_study_names_colluders_and_is_resumed(tmp_path: Path) -> None:
    from zktrace.federation.spec import RunSpec, build_model
    from zktrace.learning.states import state_of
    from zktrace.models import save_model
    from zktrace.studies.runner import run_study
    from zktrace.studies.tracing import TracingBatch, TracingTrial

    smoke = load_preset("smoke")
    preset = replace(
        smoke,
        data=replace(smoke.data, samples=600),
        federation=replace(smoke.federation, clients=4),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    draw = seeded("words")
    spec = RunSpec(preset=preset, seed=3, words=tuple(draw(2) for _ in range(4)))
    model = tmp_path / "shared.safetensors"
    save_model(model, state_of(build_model(spec, 4)))
    trial = TracingTrial(
        spec=spec,
        model=model,
        carriers=("weight",),
        profile="informed",
        settings=CopySettings(),
        sizes=(3,),
        copies=3,
    )
    rows = Rows(tmp_path / "rows.jsonl")
    batch = TracingBatch(trial=trial, work=tmp_path / "work")
    assert batch.size == 8
    made = run_study([batch], rows).made
    assert len(made) == 1 + 3 + 3 + 1
    assert all(row.trial.keys() - {"members"} == TOLD for row in made)
    coalitions = [row for row in made if row.trial["part"] == "coalition"]
    assert all(row.outcome["framed"] == 0 for row in coalitions)
    assert all(row.outcome["caught"] == len(row.trial["members"]) for row in coalitions)
    assert all(row.outcome["sigma"]["weight"]["least_member"] > 4 for row in coalitions)
    assert made[0].outcome["mean_cost_pp"] == pytest.approx(
        100 * (made[0].outcome["shared"] - sum(made[0].outcome["copies"]) / 3)
    )
    decodes = [row.outcome["decodes"]["weight"] for row in coalitions]
    assert all(each["certificate"] and each["length"] == 512 and "beyond" not in each for each in decodes)
    assert all(each["disagreement"] < each["least_innocent"] for each in decodes[:3])
    again = run_study([batch], rows)
    assert (again.made, again.there) == ([], 8)
    assert Fraction(made[0].trial["budget"]) == Fraction(1, 1000)
    table = tracing_table(rows.read())
    assert (
        "| weight | informed | GNSS, simulated, 4 stations | 3/3 | 3/3, all 3 | 1/1, all 1 | - | - | 0 |"
        in table
    )


def test_a_finished_models_rows_are_told_by_the_same_facts_as_ever() -> None:
    """Or a study that was begun with an earlier version would begin anew."""
    rows = Rows(Path(__file__).parents[2] / "results" / "tracing-desk.jsonl").read()
    saved = {frozenset(row.trial) - {"members"} for row in rows}
    assert saved == {frozenset(TOLD)}


@pytest.fixture(name="short_codes")
def _short_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    from zktrace.readouts.reader import Reader

    lengths = {"weight": 256, "feature": 64}
    monkeypatch.setattr(Reader, "default_length", classmethod(lambda _cls, name, _shared: lengths[name]))


@pytest.mark.slow  # a federation and two kinds of copies
def test_federations_are_trained_and_their_copies_traced(short_codes: None, tmp_path: Path) -> None:
    from zktrace.studies.federated_tracing import tracings
    from zktrace.studies.federation import FederationTrial
    from zktrace.studies.ground import grounds
    from zktrace.studies.runner import estimate, run_study

    smoke = load_preset("smoke")
    tiny = replace(
        smoke,
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, clients=4, rounds=1),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    run = FederationTrial(preset=tiny, seed=5)
    places = grounds(
        [run], ["paper", "informed"], CopySettings(episodes=2), work=tmp_path, cifar10=None, cache=None
    )
    wanted = tracings(places, [("weight",), ("weight", "feature")], sizes=(3,), pairs=2)
    wanted = [each for each in wanted if (len(each.carriers), each.ground.profile) != (2, "informed")]
    assert [each.size for each in wanted] == [4, 4, 4]
    rows = Rows(tmp_path / "rows.jsonl")
    assert estimate(wanted, rows).trials == 12
    ran = run_study(wanted, rows, workers=1)
    assert (len(ran.made), ran.failures) == (12, [])
    assert run_study(wanted, rows, workers=1).there == 12
    by = {
        ("+".join(r.trial["carriers"]), r.trial["profile"], r.trial.get("size", 0)): r.outcome
        for r in ran.made
    }
    assert [len(by["weight", "paper", size]["leaks"]) for size in (1, 2, 3)] == [4, 2, 4]
    paper = by["weight", "paper", 1]["leaks"][0]["decodes"]["weight"]
    assert (paper["length"], set(paper["beyond"])) == (256, {"normal", "candidate"})
    both = by["weight+feature", "paper", 2]["leaks"][0]
    assert both["decodes"].keys() == {"weight", "feature"}
    cost = by["weight", "informed", 0]
    assert len(cost["recall"]["classes"]) == len(cost["recall"]["shared"]) == len(cost["recall"]["copies"])
    assert all(isinstance(each, str) for each in cost["recall"]["classes"])
    assert (cost["load"] > 0, 0 <= cost["attribution"] <= 1) == (True, True)
    ours = by["weight", "informed", 3]["leaks"]
    assert all(each["caught"] and not each["framed"] for each in ours)
    assert all(len(table(rows.read()).splitlines()) > 2 for table in (isolation_table, copy_cost_table))
    more = tracings(places, [("weight",)], sizes=(3,), pairs=2, strategies=("minimum", "random"))
    again = run_study(more, rows, workers=1)  # informed copies alone, of three of the four
    assert (again.there, len(again.made), again.failures) == (8, 2, [])
    assert [(row.trial["strategy"], row.trial["size"]) for row in again.made] == [
        ("minimum", 3),
        ("random", 3),
    ]
    assert all(len(row.outcome["leaks"]) == 4 for row in again.made)
    assert all(each["caught"] and not each["framed"] for row in again.made for each in row.outcome["leaks"])
    assert {row.outcome["model"] for row in rows.read()} == {places[0].digest}


def test_strategies_are_those_that_attackers_have() -> None:
    from zktrace.attacks.collusion import STRATEGIES
    from zktrace.studies.federated_tracing import OTHERS, tracings
    from zktrace.studies.federation import FederationTrial
    from zktrace.studies.ground import grounds

    assert {"mean", *OTHERS} == set(STRATEGIES)
    run = FederationTrial(preset=load_preset("study"), seed=5, variant="shift")
    places = grounds([run], ["informed"], CopySettings(), work=Path("nowhere"), cifar10=None, cache=None)
    with pytest.raises(InputError, match="no strategy 'prayer' beside the mean"):
        tracings(places, strategies=("prayer",))
    batch = tracings(places, [("spread",)], strategies=OTHERS)[0]
    rows = [each.facts for each in batch.trials(lambda *_: None)]
    assert len(rows) == batch.size == 1 + 5 + 2 * len(OTHERS)
    assert {each["variant"] for each in rows} == {"shift"}
    assert batch.guess > replace(batch, strategies=()).guess


def test_the_federation_study_trains_both_and_shares_the_pretraining(tmp_path: Path) -> None:
    from zktrace.studies.federation import batches
    from zktrace.studies.runner import run_study

    smoke = load_preset("smoke")
    preset = replace(
        smoke,
        data=replace(smoke.data, samples=600),
        model=replace(smoke.model, width=4),
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, rounds=1),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    (batch,), rows = batches(preset, ["gnss"], [5], work=tmp_path / "work"), Rows(tmp_path / "rows.jsonl")
    assert [bool(each.preset.marks.lambda_wm) for each in batch.runs] == [True, False]
    told = []
    found = run_study([batch], rows, progress=lambda what, done, of: told.append((what, done, of)))
    assert (len(found.made), found.failures) == (batch.size, []) == (2, [])
    assert told == [("epochs", 1, 1), ("rounds", 1, 1), ("trials", 1, 2), ("rounds", 1, 1), ("trials", 2, 2)]
    assert run_study([batch], rows).made == []
    files = [tmp_path / "work" / trial.folder / "pretraining.safetensors" for trial in batch.runs]
    assert files[0].read_bytes() == files[1].read_bytes()
    table = federation_table(rows.read())
    assert table.count("\n") == 2
    assert "GNSS, simulated | 5 |" in table
