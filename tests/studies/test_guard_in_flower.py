"""A network of the zoo in Flower's FedAvg, guarded and not, at its smallest."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("flwr", reason="Flower is not installed")

from zktrace.studies.guard import flower
from zktrace.studies.guard.flower import FlowerRun
from zktrace.studies.rows import Rows
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


def test_both_designs_train_and_differ(run: FlowerRun, tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    made = [flower.perform(each, rows) for each in (run, replace(run, guarded=False))]
    assert [row.trial["design"] for row in made if row is not None] == ["guarded", "unguarded"]
    assert all(row is not None and 0.0 <= row.outcome["accuracy"] <= 1.0 for row in made)
    assert flower.perform(run, rows) is None
