"""The plan of `zktrace study paper`: what it has, in which order, and that all of it runs."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.cli.app import run
from zktrace.errors import InputError
from zktrace.learning.presets import load_preset
from zktrace.studies.exhibits import EXHIBITS
from zktrace.studies.paper import GRIDS, NAMES, SEEDS, SEEDS_OF, PaperSetting, estimates, experiments, stages
from zktrace.studies.rows import Rows


def setting(folder: Path, *, preset: str = "study", seeds: tuple[int, ...] = SEEDS) -> PaperSetting:
    return PaperSetting(preset=load_preset(preset), datasets=("gnss",), seeds=seeds, work=folder)


def test_costly_experiments_take_the_first_seeds() -> None:
    assert SEEDS == (42, 137, 271, 314, 1729, 2718, 3141, 5772, 6561, 9999)  # sub:config
    assert tuple(SEEDS_OF) == NAMES
    for each in experiments(setting(Path("nowhere"))):
        assert tuple(each.parts) == SEEDS[: SEEDS_OF[each.name]]


def test_seeds_take_their_turn() -> None:
    order = [each.name for each, _ in stages(experiments(setting(Path("nowhere"))))]
    assert order[: len(NAMES)] == list(NAMES)  # something of everything after the first
    assert order[len(NAMES) :][:3] == ["federation", "attacked-models", "attacks"]
    assert order[-2:] == ["federation", "attacked-models"]
    assert len(order) == sum(SEEDS_OF.values())


def test_every_study_of_an_exhibit_has_an_experiment() -> None:
    assert {name for each in EXHIBITS for name in each.experiments} <= set(NAMES)
    made = {batch.study for each in experiments(setting(Path("nowhere"))) for batch in each.batches}
    assert {study for each in EXHIBITS for study in each.studies} - {"baselines"} <= made


def test_shifted_receivers_are_simulated_and_strategies_are_beside_the_mean() -> None:
    whole = replace(setting(Path("nowhere"), seeds=(42,)), datasets=("gnss", "cifar10"))
    shifted, strategies = experiments(whole, ["shifted", "strategies"])
    rows = [each.facts for batch in shifted.batches for each in batch.trials(lambda *_: None)]
    assert {(each["dataset"], each["variant"]) for each in rows} == {("gnss", "shift")}
    assert {each.get("size", 0) for each in rows} == {0, 1, 2}
    assert not experiments(replace(whole, datasets=("cifar10",)), ["shifted"])[0].batches
    rows = [each.facts for batch in strategies.batches for each in batch.trials(lambda *_: None)]
    assert {each["profile"] for each in rows} == {"informed"}
    assert len({each.get("strategy") for each in rows}) == 10


def test_batches_of_a_stage_have_names_of_their_own() -> None:
    both = replace(setting(Path("nowhere")), datasets=("gnss", "cifar10"))
    for _, batches in stages(experiments(both)):
        assert len({batch.name for batch in batches}) == len(batches)


def test_a_federation_that_several_need_is_counted_once(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    whole = setting(tmp_path, seeds=(42,))
    alone = estimates(experiments(whole, ["disguise"]), rows)["disguise"]
    after = estimates(experiments(whole, ["insiders", "disguise"]), rows)["disguise"]
    trained = estimates(experiments(whole, ["federation", "disguise"]), rows)["disguise"]
    federation = experiments(whole, ["disguise"])[0].batches[0].needs[0].guess
    assert alone.seconds - after.seconds == pytest.approx(federation)
    assert trained == after
    assert alone.trials == after.trials == 10


def test_the_default_plan_is_of_about_fourteen_core_hours(tmp_path: Path) -> None:
    both = replace(setting(tmp_path), datasets=("gnss", "cifar10"))
    found = estimates(experiments(both), Rows(tmp_path / "rows.jsonl"))
    assert 10 < sum(each.seconds for each in found.values()) / 3600 < 16


def test_an_experiment_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no experiment 'moon'; known: steering, federation"):
        experiments(setting(tmp_path), ["moon"])
    with pytest.raises(InputError, match="needs a seed"):
        setting(tmp_path, seeds=())


def test_the_short_grid_is_shorter_in_everything_and_has_all_of_it() -> None:
    usual, short = GRIDS["paper"], GRIDS["short"]
    for name in ("coalitions", "copies", "tuned", "taught", "images", "holders", "pairs"):
        assert 1 <= getattr(short, name) < getattr(usual, name)
    assert 1 <= max(short.distilled) < min(usual.distilled)
    plan = experiments(replace(setting(Path("nowhere"), preset="smoke", seeds=(1,)), grid=short))
    assert [each.name for each in plan] == list(NAMES)


@pytest.mark.slow
def test_the_whole_plan_runs_and_its_page_has_everything(tmp_path: Path) -> None:
    """Every experiment on the smallest federation, then once more, then the page."""
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    out, page = tmp_path / "rows.jsonl", tmp_path / "page.html"
    command = ["study", "paper", "--out", str(out), "--preset", "smoke", "--seed", "1", "--dataset", "gnss"]
    assert run([*command, "--work", str(tmp_path / "work"), "--workers", "1"]) == 0
    made = out.read_bytes()
    assert run([*command, "--work", str(tmp_path / "work"), "--workers", "1"]) == 0
    assert out.read_bytes() == made
    assert run(["study", "paper", "--out", str(out), "--report", str(page)]) == 0
    text = page.read_text()
    alone = [each for each in EXHIBITS if each.studies == ("baselines",)]  # no experiment of the plan
    assert text.count("There are no rows for it yet") == text.count("zktrace study baselines") == len(alone)
