"""The tracing study at its smallest: rows for every coalition, made once."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from support import seeded
from zktrace.learning.presets import load_preset
from zktrace.marking.settings import CopySettings
from zktrace.studies.rows import Rows
from zktrace.studies.tables import federation_table, tracing_table

pytest.importorskip("torch", reason="torch is not installed")


def test_coalitions_are_everybody_all_pairs_and_different_larger_ones() -> None:
    from zktrace.studies.tracing import SAMPLED, coalitions

    found = list(coalitions(10, 42))
    assert len(found) == len(set(found)) == 10 + 45 + 3 * SAMPLED
    assert found == list(coalitions(10, 42))
    assert found != list(coalitions(10, 43))
    assert {len(each) for each in found} == {1, 2, 3, 5, 8}
    assert len(list(coalitions(4, 1, sizes=(3,)))) == 4 + 6 + 4  # there are no more than four


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
    coalitions = [row for row in made if row.trial["part"] == "coalition"]
    assert all(row.outcome["framed"] == 0 for row in coalitions)
    assert all(row.outcome["caught"] == len(row.trial["members"]) for row in coalitions)
    assert all(row.outcome["sigma"]["weight"]["least_member"] > 4 for row in coalitions)
    assert made[0].outcome["mean_cost_pp"] == pytest.approx(
        100 * (made[0].outcome["shared"] - sum(made[0].outcome["copies"]) / 3)
    )
    again = run_study([batch], rows)
    assert (again.made, again.there) == ([], 8)
    assert Fraction(made[0].trial["budget"]) == Fraction(1, 1000)
    table = tracing_table(rows.read())
    assert "| weight | informed | GNSS, simulated | 3/3 | 3/3, all 3 | 1/1, all 1 | - | - | 0 |" in table


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
