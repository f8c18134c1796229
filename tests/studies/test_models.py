"""Networks protected by defaults, at the study's smallest; and what leakers do to any model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from zktrace.errors import InputError
from zktrace.models import open_model, save_model
from zktrace.studies import models, strengths
from zktrace.studies.changes import FORMATS, NOISE, as_state, noise, single
from zktrace.studies.models import FOREIGN, ModelsBatch
from zktrace.studies.rows import Rows
from zktrace.studies.runner import quietly, run_study
from zktrace.studies.strengths import StrengthsBatch
from zktrace.studies.tables import models_table, remains_table, strengths_table
from zktrace.studies.zoo.digits import arrays_of, fitted
from zktrace.studies.zoo.table import SEED, network_of
from zktrace.studies.zoo.trained import TrainedNetwork


def test_changes_of_any_model() -> None:
    rng = np.random.default_rng(2)
    model = {"w": rng.standard_normal((40, 50)).astype(np.float32), "b": np.ones(50, np.float32)}
    made = {name: change(model) for name, change in FORMATS.items()}
    assert {each.dtype for each in made["float16"].tensors()} == {"float16"}
    assert {each.dtype for each in made["bfloat16"].tensors()} == {"bfloat16"}
    np.testing.assert_allclose(made["bfloat16"]["w"], model["w"], rtol=2**-8)
    for bits in (8, 4):
        assert len(np.unique(made[f"{bits} bits"]["w"])) <= 2**bits
    pruned = made["half of the weights pruned"]
    assert np.count_nonzero(pruned["w"]) == 1000
    assert np.abs(model["w"][pruned["w"] == 0]).max() <= np.abs(model["w"][pruned["w"] != 0]).min()
    assert np.array_equal(pruned["b"], model["b"])
    moved = noise(model, np.random.default_rng(3))
    assert (moved["w"] - model["w"]).std() == pytest.approx(NOISE * model["w"].std(), rel=0.1)
    assert np.array_equal(moved["b"], model["b"])


def test_single_is_what_a_network_computes_with() -> None:
    state = as_state({"w": np.ones((2, 2), np.float16), "n": np.arange(3)})
    found = single(state)
    assert (found["w"].dtype, found["n"].dtype) == (np.float32, np.int64)


@pytest.mark.slow
def test_a_network_is_protected_by_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of a leaked copy names the leaker, and a judge upholds it; strangers name nobody."""
    monkeypatch.setattr(models, "STATIONS", 3)
    each = network_of("mlp")
    task = each.task(None)
    trained, foreign = (
        TrainedNetwork(network="mlp", folder=tmp_path / "zoo", seed=seed) for seed in (SEED, FOREIGN)
    )
    trained.folder.mkdir()
    for seed, path in enumerate((trained.path, foreign.path), start=1):
        save_model(path, arrays_of(fitted(task, seed=seed, epochs=5)))
    batch = ModelsBatch(trained=trained, foreign=foreign, seeds=(11, 12), work=tmp_path / "work")
    rows = Rows(tmp_path / "rows.jsonl")
    for trial in batch.trials(quietly):
        if trial.facts["keys"] == 12:  # on record: not done again
            rows.add(trial.facts, {})
    ran = run_study([batch], rows)
    assert (ran.failures, len(ran.made), ran.there) == ([], batch.size // 2, batch.size // 2)
    made = ran.made
    cost, *cases = made
    assert cost.outcome["mean_cost"] == pytest.approx(
        100 * (cost.outcome["shared"] - sum(cost.outcome["copies"]) / 3)
    )
    leaks = {row.trial["suspect"]: row.outcome for row in cases if row.trial["part"] == "leak"}
    strangers = [row.outcome for row in cases if row.trial["part"] == "stranger"]
    assert {*FORMATS, "as it is", "100 fine-tuning steps", "LoRA of rank 8, merged"} <= set(leaks)
    for kind in ("as it is", *FORMATS, "100 fine-tuning steps", "LoRA of rank 8, merged"):
        found = leaks[kind]
        assert (found["named"], found["judge"]) == (found["members"], "upheld"), kind
        (score,) = found["sigma"].values()
        assert score["member"] > score["threshold"] > score["greatest_other"]
    assert len(strangers) == 3
    assert all(row.outcome["framed"] == 0 for row in cases)
    assert run_study([batch], rows).made == []
    table = models_table(made)
    assert table.count("\n") == 2
    assert f"| 0/{len(cases)} |" in table
    assert remains_table(made).count(" % |") == 1 + len(leaks)
    assert open_model(trained.path).keys() == {
        *(f"coefs_.{layer}" for layer in range(3)),
        *(f"intercepts_.{layer}" for layer in range(3)),
    }


def test_stronger_marks_are_read_better_from_four_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strengths, "STATIONS", 3)
    monkeypatch.setattr(models, "STATIONS", 3)
    each = network_of("mlp")
    trained = TrainedNetwork(network="mlp", folder=tmp_path)
    save_model(trained.path, arrays_of(fitted(each.task(None), seed=1, epochs=5)))
    batch = StrengthsBatch(
        trained=trained,
        seed=3,
        work=tmp_path / "work",
        strengths=(0.005, 0.04),
        types=("float32", "bfloat16"),
    )
    rows = Rows(tmp_path / "rows.jsonl")
    ran = run_study([batch], rows)
    assert (ran.failures, len(ran.made)) == ([], batch.size)
    found = {(row.trial["type"], row.trial["strength"]): row.outcome for row in ran.made}
    for kind in ("float32", "bfloat16"):
        weak, strong = found[kind, 0.005], found[kind, 0.04]
        assert strong["score_4_bits"] > weak["score_4_bits"] + 2
        assert strong["score"] > 10
        assert strong["dimension"] == weak["dimension"] > 0
    assert run_study([replace(batch, strengths=(0.04,))], rows).made == []
    assert strengths_table(rows.read()).count("points;") == 4
    with pytest.raises(InputError, match="no type 'int8'"):
        replace(batch, types=("int8",))
