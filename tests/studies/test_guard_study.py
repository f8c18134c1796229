"""A small federation in three designs: what shared models keep, and whom leaks name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.errors import InputError
from zktrace.learning.presets import load_preset
from zktrace.models import ModelState, model_digest
from zktrace.studies.federation import FederationTrial
from zktrace.studies.guard import residues, runs, tracing
from zktrace.studies.guard.batches import GuardBatch
from zktrace.studies.guard.runs import Design, GuardRun
from zktrace.studies.guard_tables import guard_residues_table, guard_tracing_table, guard_utility_table
from zktrace.studies.innocents import InnocentsBatch, InnocentsTrial
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import run_study
from zktrace.studies.tracing import BUDGET

ROUNDS, STATIONS = 2, 3


def federation(seed: int = 1) -> FederationTrial:
    smoke = load_preset("smoke")
    small = replace(
        smoke,
        data=replace(smoke.data, samples=600),
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, rounds=ROUNDS, clients=STATIONS),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    return FederationTrial(preset=small, seed=seed)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guard")


@pytest.fixture(scope="module")
def trained(work: Path) -> dict[Design, GuardRun]:
    made = {each: GuardRun(federation=federation(), design=each, work=work) for each in runs.DESIGNS}
    for run in made.values():
        assert run.result()["rounds"] == ROUNDS
    return made


def part(trained: dict[Design, GuardRun], name: str) -> GuardBatch:
    return GuardBatch(federation=federation(), work=trained["guarded"].work, parts=(name,))


def test_designs_begin_alike_and_go_apart(trained: dict[Design, GuardRun]) -> None:
    first = {model_digest(run.shared(0)) for each, run in trained.items() if each != "unguarded"}
    last = {model_digest(run.shared(ROUNDS)) for run in trained.values()}
    assert len(first) == 1
    assert len(last) == len(runs.DESIGNS)


def test_a_row_a_run_and_no_second_training(trained: dict[Design, GuardRun], tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    batch = part(trained, "utility")
    assert [row.trial["design"] for row in run_study([batch], rows).made] == list(runs.DESIGNS)
    again = run_study([batch], rows)
    assert (again.made, again.there) == ([], len(runs.DESIGNS))
    with pytest.raises(InputError, match="no part 'cost'; known: utility, residues, tracing"):
        part(trained, "cost")


def test_a_guard_leaves_nothing_and_subtracting_leaves_what_training_made_of_marks(
    trained: dict[Design, GuardRun], tmp_path: Path
) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    assert len(run_study([part(trained, "residues")], rows).made) == 2 * ROUNDS
    found = {(row.trial["design"], row.trial["round"]): row.outcome for row in rows.read()}
    for number in range(1, ROUNDS + 1):
        assert np.abs(found["guarded", number]["participants"]).max() < 1e-6
        assert found["guarded", number]["greatest"] == 0.0
    shares = [np.mean(found["subtracted", number]["participants"]) for number in range(1, ROUNDS + 1)]
    assert min(np.abs(shares)) > 1e-5  # a hundred times what a guard leaves
    assert "subtracted" in guard_residues_table(rows.read())


def test_residues_are_those_of_a_plain_projection(trained: dict[Design, GuardRun]) -> None:
    """A row's mark put into a shared model is found again as a whole mark of that row."""
    run = trained["guarded"]
    bench = residues.ResidueBench(run=run)
    release = run.release
    phi = bench._phi(release, 1)
    assert np.abs(phi).max() < 1e-6
    copy = tracing.LeakBench(run=run).copy(1, 1)
    shared = run.shared(1)

    class Copied(GuardRun):
        def shared(self, number: int) -> ModelState:
            return ModelState.from_arrays(copy)

    other = Copied(federation=run.federation, design="guarded", work=run.work)
    shares, others = bench._shares(release, residues.ResidueBench(run=other)._phi(release, 1))
    assert shares[1] == pytest.approx(1.0, abs=1e-3)
    assert np.abs(shares[[0, 2]]).max() < 0.4
    assert others.std() == pytest.approx(1 / np.sqrt(release.layout("spread").length), rel=0.1)
    assert set(shared) == set(copy)


@pytest.mark.slow
def test_leaks_of_all_rounds_name_the_leaker(
    trained: dict[Design, GuardRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "STRATEGIES", ("mean", "median"))
    monkeypatch.setattr(tracing, "EPISODES", (1,))
    monkeypatch.setattr(tracing, "FINETUNED", 2)
    monkeypatch.setattr(tracing, "AFTERWARDS", ("nothing", "8 bits"))
    monkeypatch.setattr(tracing, "SAMPLED", 2)
    monkeypatch.setattr(tracing, "TRAINERS", 1)
    rows = Rows(tmp_path / "rows.jsonl")
    batch = part(trained, "tracing")
    ran = run_study([batch], rows)
    made = ran.made
    assert not ran.failures
    assert len(made) == batch.size
    assert {row.trial["leak"] for row in made} == {
        "broadcast",
        "trained on",
        "local training",
        "mean over rounds",
        "coalition",
    }
    assert all(row.outcome["framed"] == 0 and row.trial["budget"] == str(BUDGET) for row in made)
    as_sent = [row.outcome for row in made if row.trial["leak"] == "broadcast"]
    assert all(each["whole"] == each["cases"] == STATIONS for each in as_sent)
    assert not run_study([batch], rows).made
    assert guard_tracing_table(rows.read()).count("\n") > 4


@pytest.mark.slow
def test_shared_models_under_fresh_keys_are_silent_and_rounded_ones_keep_the_budget(
    trained: dict[Design, GuardRun], tmp_path: Path
) -> None:
    run = trained["guarded"]
    found = {}
    for change in ("nothing", "8 bits"):
        trial = InnocentsTrial(
            dataset="gnss",
            reference=run.release.folder.path / "models" / "000000.safetensors",
            suspects={"after two rounds": run.folder / "model.safetensors"},
            pool=lambda: pytest.fail("a guard needs no images"),
            leaks=("nobody",),
            keys=20,
            families=2,
            guarded=change,
        )
        batch = InnocentsBatch(trial=trial, work=tmp_path)
        (found[change],) = run_study([batch], Rows(tmp_path / "rows.jsonl")).made
        assert found[change].trial["guarded"] == change
    assert found["nothing"].outcome["namings"] == 0
    assert found["8 bits"].outcome["within"]
    with pytest.raises(InputError, match="no change 'smaller' of a shared model"):
        replace(trial, guarded="smaller")


def utility(design: str, seed: int, accuracy: float) -> Row:
    trial = {"study": "guard", "part": "utility", "network": "cnn", "dataset": "cifar10"}
    return Row(trial=trial | {"design": design, "seed": seed}, outcome={"accuracy": accuracy}, origin={})


def test_the_table_of_utility_takes_pairs_of_a_seed() -> None:
    rows = [utility("guarded", seed, 0.700 + 0.001 * seed) for seed in range(4)]
    rows += [utility("unguarded", seed, 0.701 + 0.001 * seed) for seed in range(5)]
    line = guard_utility_table(rows).splitlines()[-1]
    assert "0, 1, 2, 3 |" in line
    assert "-0.10 (-0.10 to -0.10)" in line
    assert "yes (p = " in line


def test_a_design_is_one_of_three(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no design 'hidden'; known: unguarded, guarded, subtracted"):
        GuardRun(federation=federation(), design="hidden", work=tmp_path)  # type: ignore[arg-type]
