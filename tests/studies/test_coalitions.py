"""Coalitions of ten and averages in a crowd, at the study's smallest."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec, build_model
from zktrace.learning.presets import load_preset
from zktrace.learning.states import state_of
from zktrace.models import save_model
from zktrace.studies import coalitions
from zktrace.studies.coalitions import AFTERWARDS, CoalitionsBatch, CoalitionsTrial, _average, _Ground
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import run_study
from zktrace.studies.tables import coalitions_table, crowds_table


@pytest.fixture
def trial(tmp_path: Path) -> CoalitionsTrial:
    rng = np.random.default_rng(8)
    model = {"a": rng.standard_normal((256, 512)).astype(np.float32), "n": np.arange(4)}
    save_model(tmp_path / "model.safetensors", model)
    return CoalitionsTrial(
        model=tmp_path / "model.safetensors",
        dataset="cifar10",
        work=tmp_path / "work",
        sizes=(3,),
        strategies=("mean", "farthest"),
        sampled=2,
        crowds=((4, 512),),
    )


def test_coalitions_differ_and_a_seed_has_one_draw(trial: CoalitionsTrial) -> None:
    found = trial.members(3, 10)
    assert len(set(found)) == 2
    assert all(len(set(each)) == 3 and max(each) < 10 for each in found)
    assert found == trial.members(3, 10)


def perform(trial: CoalitionsTrial, rows: Rows) -> list[Row]:
    batch = CoalitionsBatch(trial=trial)
    found = run_study([batch], rows)
    assert (found.failures, len(found.made) + found.there) == ([], batch.size)
    return found.made


def test_sizes_and_strategies_are_checked(tmp_path: Path) -> None:
    def made(**given: object) -> CoalitionsTrial:
        return CoalitionsTrial(model=tmp_path, dataset="cifar10", work=tmp_path, **given)  # type: ignore[arg-type]

    with pytest.raises(InputError, match="no strategy 'vote'"):
        made(strategies=("vote",))
    with pytest.raises(InputError, match=r"has 2\.\.9 members"):
        made(sizes=(10,))
    with pytest.raises(InputError, match=r"has 2\.\.999 members"):
        made(crowds=((1000, 64),))
    with pytest.raises(InputError, match="whoever trains on needs data"):
        made(tuned=1)


def test_a_longer_study_is_said_to_take_longer(trial: CoalitionsTrial) -> None:
    whole = CoalitionsTrial(model=trial.model, dataset="cifar10", work=trial.work).seconds()
    assert all(whole[part] > each > 0 for part, each in trial.seconds().items() if part != "fine-tuning")


def test_an_average_is_the_mean_of_copies(trial: CoalitionsTrial) -> None:
    ground = _Ground(trial=trial, length=512)
    copies = [ground.copy(row)["a"].astype(np.float64) for row in (1, 5, 7)]
    found = _average(ground, (1, 5, 7))
    np.testing.assert_array_equal(found["a"], (sum(copies) / 3).astype(np.float32))
    np.testing.assert_array_equal(found["n"], np.arange(4))


def test_everybody_is_named_and_the_study_is_resumed(
    trial: CoalitionsTrial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coalitions, "CROWD", 30)
    rows = Rows(tmp_path / "rows.jsonl")
    made = perform(trial, rows)
    assert len(made) == 2 * len(AFTERWARDS) + 1
    assert all(row.outcome["framed"] == 0 for row in made)
    assert all(row.outcome["whole"] == 2 for row in made if row.trial.get("after") == "nothing")
    assert all(row.outcome["caught"] <= row.outcome["of"] == 2 * row.trial["size"] for row in made)
    assert perform(trial, rows) == []
    table = coalitions_table(rows.read())
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| mean", "| farthest"]
    assert "4 of 30 | 512 |" in crowds_table(rows.read())


def test_means_are_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny ResNet and its run's data: the row says how it was done, and nobody innocent is named."""
    monkeypatch.setattr(coalitions, "EPISODES", 2)
    smoke = load_preset("smoke")
    preset = replace(smoke, data=replace(smoke.data, samples=600), model=replace(smoke.model, width=8))
    spec = RunSpec(preset=preset, seed=3, words=())
    save_model(tmp_path / "model.safetensors", state_of(build_model(spec, 4)))
    trial = CoalitionsTrial(
        model=tmp_path / "model.safetensors",
        dataset="gnss",
        work=tmp_path / "work",
        sizes=(2,),
        strategies=(),
        sampled=2,
        crowds=(),
        spec=spec,
        tuned=1,
    )
    (row,) = perform(trial, Rows(tmp_path / "rows.jsonl"))
    assert (row.trial["after"], row.outcome["coalitions"], row.outcome["framed"]) == ("fine-tuning", 1, 0)
    assert perform(trial, Rows(tmp_path / "rows.jsonl")) == []
