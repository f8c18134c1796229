"""A network of the zoo in Flower's FedAvg, guarded and not, at its smallest."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("flwr", reason="Flower is not installed")

from zktrace.errors import InputError
from zktrace.studies.guard import flower
from zktrace.studies.guard.flower import FlowerBatch, FlowerRun
from zktrace.studies.rows import Rows
from zktrace.studies.runner import quietly, run_study
from zktrace.studies.zoo.table import network_of
from zktrace.studies.zoo.tasks import SampleTask


@pytest.fixture
def run() -> FlowerRun:
    rng = np.random.default_rng(3)
    images, labels = rng.integers(0, 256, (80, 3, 32, 32), dtype=np.uint8), np.arange(80) % 10
    network = network_of("cnn")
    return FlowerRun(
        network=replace(network, lesson=replace(network.lesson, batch=4)),
        task=SampleTask(train=(images, labels), test=(images, labels)),
        seed=3,
        guarded=True,
        stations=2,
        rounds=2,
        steps=2,
    )


def test_stations_share_all_samples_and_no_sample_twice(run: FlowerRun) -> None:
    counts = [len(each.train[1]) for each in run.shards]
    assert sum(counts) == 80
    assert min(counts) > 0


def test_both_designs_train_and_differ(
    run: FlowerRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flower, "FlowerRun", lambda **given: replace(run, guarded=given["guarded"]))
    monkeypatch.setattr(flower, "network_of", lambda _name: SimpleNamespace(task=lambda _folder: run.task))
    rows, batch = Rows(tmp_path / "rows.jsonl"), FlowerBatch(network="cnn", seed=3, cifar10=None)
    made = run_study([batch], rows).made
    assert [row.trial["design"] for row in made] == ["unguarded", "guarded"]
    assert all(0.0 <= row.outcome["accuracy"] <= 1.0 for row in made)
    assert run_study([batch], rows).there == 2


def test_a_network_that_learns_no_images_is_refused() -> None:
    with pytest.raises(InputError, match="language does not learn images"):
        list(FlowerBatch(network="language", seed=3, cifar10=None).trials(quietly))
