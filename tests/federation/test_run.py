"""Whole federations: engines agree, interruptions leave no trace, marks are read back."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from federation import small
from zktrace.errors import InputError, Refused
from zktrace.federation import run as run_module
from zktrace.federation.client import Absence, Update, client
from zktrace.federation.handout import Engine, Handout
from zktrace.federation.run import read_marks, run
from zktrace.federation.server import RoundReport
from zktrace.federation.spec import RunSpec, sample_counts
from zktrace.federation.workers import worker_engine
from zktrace.learning.arrays import State
from zktrace.learning.data.source import DataSource
from zktrace.models import model_digest, open_model


def trained(spec: RunSpec, folder: Path, *, workers: int = 0) -> dict[str, object]:
    with worker_engine(spec, workers=workers) as engine:
        return run(spec, folder, engine)


def digest(folder: Path) -> str:
    return model_digest(open_model(folder / "model.safetensors")).hex()


def test_one_process_and_workers_end_in_the_same_weights(tmp_path: Path) -> None:
    spec = small.spec()
    results = [trained(spec, tmp_path / str(workers), workers=workers) for workers in (0, 2)]
    assert digest(tmp_path / "0") == digest(tmp_path / "2")
    assert results[0] == results[1]
    lines = [json.loads(line) for line in (tmp_path / "0" / "log.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [0, 1]
    assert lines[0]["trained"] == [0, 1, 2]
    assert all(0 <= line["attribution"] <= 1 and 0 <= line["held_out"] <= 1 for line in lines)
    assert (tmp_path / "0" / "log.jsonl").read_bytes() == (tmp_path / "2" / "log.jsonl").read_bytes()
    matrix = np.array(json.loads((tmp_path / "0" / "agreement.json").read_text())["agreement"])
    assert matrix.shape == (3, 3)
    assert matrix.diagonal().mean() == pytest.approx(results[0]["marks"]["self_agreement"])


def test_watching_held_out_episodes_changes_no_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(small.spec(), tmp_path / "watched")
    monkeypatch.setattr(run_module, "_held_out", lambda spec: lambda state: None)
    trained(small.spec(), tmp_path / "unwatched")
    assert digest(tmp_path / "watched") == digest(tmp_path / "unwatched")
    line = json.loads((tmp_path / "unwatched" / "log.jsonl").read_text().splitlines()[0])
    assert line["held_out"] is None


def test_a_split_without_enough_validation_is_not_watched(tmp_path: Path) -> None:
    spec = small.spec(small.preset(rounds=1))
    dataset, plan = spec.source.load()
    few = replace(plan, split=replace(plan.split, validation=plan.split.validation[:5]))
    seen: list[object] = []
    with pytest.MonkeyPatch.context() as patch, worker_engine(spec, workers=0) as engine:
        patch.setattr(DataSource, "load", lambda _: (dataset, few))
        run(spec, tmp_path, engine, progress=seen.append)
    assert [each.held_out for each in seen if isinstance(each, RoundReport)] == [None]


def test_a_reason_that_speaks_of_nan_is_logged_as_it_is() -> None:
    report = RoundReport(
        round=0,
        asked=(0,),
        trained=(),
        absent={},
        excluded={0: "NaN in 'bn1.weight'"},
        loss=float("nan"),
        penalty=float("nan"),
        accuracy=float("nan"),
    )
    line = run_module._line(report)
    assert line["excluded"] == {"0": "NaN in 'bn1.weight'"}
    assert line["loss"] is line["accuracy"] is line["attribution"] is None


def test_another_seed_ends_elsewhere(tmp_path: Path) -> None:
    for seed in (1, 2):
        trained(small.spec(seed=seed), tmp_path / str(seed))
    assert digest(tmp_path / "1") != digest(tmp_path / "2")


COMMAND = """
import sys
from pathlib import Path
from federation import small
from zktrace.federation import run as run_module
from zktrace.federation.run import run
from zktrace.federation.workers import worker_engine
spec = small.spec(small.preset(rounds=4))
with worker_engine(spec, workers=0) as engine:
    run(spec, Path(sys.argv[1]), engine, resume=True)
"""


def test_a_run_that_is_killed_again_and_again_ends_in_the_same_weights(tmp_path: Path) -> None:
    spec = small.spec(small.preset(rounds=4))
    trained(spec, tmp_path / "straight")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    folder = tmp_path / "killed"
    random = np.random.default_rng(0)
    kills = 0
    while not (folder / "result.json").exists():
        child = subprocess.Popen([sys.executable, "-c", COMMAND, str(folder)], env=environment)
        seen = len(list(folder.glob("*.safetensors"))) if folder.exists() else 0
        while child.poll() is None:  # let it get at least one file or round further, then kill it
            time.sleep(float(random.uniform(0.02, 0.1)))
            grown = len(list(folder.glob("*.safetensors"))) > seen if folder.exists() else False
            if kills < 4 and grown:
                child.send_signal(signal.SIGKILL)
                child.wait()
                kills += 1
                break
            if kills >= 2:
                child.wait()
        assert kills < 10
    assert kills >= 1
    assert digest(folder) == digest(tmp_path / "straight")


def test_a_folder_belongs_to_one_run(tmp_path: Path) -> None:
    trained(small.spec(), tmp_path)
    with pytest.raises(Refused, match="--resume"):
        trained(small.spec(), tmp_path)
    with pytest.raises(Refused, match="another preset, seed or roster"):
        trained(small.spec(seed=2), tmp_path)


def test_marks_are_written_and_read_back(tmp_path: Path) -> None:
    chosen = small.preset(rounds=12, push_margin=0.3)
    result = trained(small.spec(chosen), tmp_path / "marked")
    control = trained(small.spec(small.preset(rounds=12, lambda_wm=0.0)), tmp_path / "control")
    assert result["marked"] is True
    assert control["marked"] is False
    assert result["marks"]["attribution"] == 1.0
    assert result["marks"]["self_agreement"] > 0.9
    assert control["marks"]["self_agreement"] < 0.8


def test_each_station_can_be_handed_a_state_of_its_own() -> None:
    spec = small.spec()
    state = client(spec, 0)._model.state_dict()
    shared: State = {name: np.array(value.numpy()) for name, value in state.items()}
    seen: dict[int, float] = {}

    def own(station: int, base: State) -> State:
        seen[station] = float(base["bn1.weight"][0])
        return base | {"bn1.weight": base["bn1.weight"] + np.float32(station)}

    handout = Handout(outgoing=own, incoming=lambda state: state)
    with worker_engine(spec, workers=0, handout=handout) as engine:
        answers = sorted(engine.answers(0, (0, 2), shared), key=lambda answer: answer.station)
    assert set(seen) == {0, 2}
    assert all(isinstance(answer, Update) for answer in answers)
    first, second = (answer.state["bn1.weight"].mean() for answer in answers if isinstance(answer, Update))
    assert second - first > 1


def test_what_is_handed_out_is_taken_out_of_the_average(tmp_path: Path) -> None:
    """A mark on every station's state would stand in the next shared model; the hook has to remove it."""
    spec = small.spec(small.preset(rounds=2))
    cleaned: list[int] = []

    def incoming(state: State) -> State:
        cleaned.append(len(state))
        return state

    with pytest.raises(TypeError):
        Handout(outgoing=lambda _station, state: state)  # type: ignore[call-arg]
    handout = Handout(outgoing=lambda _station, state: state, incoming=incoming)
    with worker_engine(spec, workers=0, handout=handout) as engine:
        run(spec, tmp_path / "run", engine)
    assert len(cleaned) == 2
    shift = Handout(
        outgoing=lambda _station, state: state,
        incoming=lambda state: state | {"bn1.bias": state["bn1.bias"] + np.float32(1)},
    )
    with worker_engine(spec, workers=0, handout=shift) as engine:
        run(spec, tmp_path / "shifted", engine)
    assert digest(tmp_path / "run") != digest(tmp_path / "shifted")


def test_a_claimed_sample_count_does_not_own_the_average(tmp_path: Path) -> None:
    """Station 2 sends poison and says it has seen 2^62 samples: the run ends as if it had sent nothing."""
    spec = small.spec(small.preset(rounds=1))
    counts = sample_counts(spec)
    assert counts == tuple(len(spec.source.load()[1].shard(station)) for station in range(3))

    def silenced(answer: Update | Absence) -> Update | Absence:
        return Absence(station=2, round=0, reason="silent") if answer.station == 2 else answer

    def poisoned(answer: Update | Absence) -> Update | Absence:
        if answer.station != 2 or isinstance(answer, Absence):
            return answer
        state = answer.state | {"bn1.weight": answer.state["bn1.weight"] - np.float32(77)}
        return replace(answer, state=state, samples=1 << 62)

    for name, change in (("silent", silenced), ("poisoned", poisoned)):
        with worker_engine(spec, workers=0) as engine:
            changed = Engine(lambda *asked, e=engine, c=change: [c(each) for each in e.answers(*asked)])
            run(spec, tmp_path / name, changed)
    assert digest(tmp_path / "silent") == digest(tmp_path / "poisoned")
    line = json.loads((tmp_path / "poisoned" / "log.jsonl").read_text())
    assert line["excluded"] == {"2": f"claims {1 << 62} samples, the roster says {counts[2]}"}


def test_a_station_without_enough_classes_sits_out_and_says_why(tmp_path: Path) -> None:
    base = small.preset(rounds=1)
    skewed = small.spec(replace(base, episodes=replace(base.episodes, shot=60, query=60)))
    result = trained(skewed, tmp_path)
    assert result["never_trained"] == [0, 1, 2]
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert line["trained"] == []
    assert "cannot form a 5-way 60-shot episode" in line["absent"]["0"]
    assert line["loss"] is None


def test_a_worker_that_dies_is_reported_and_the_round_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = small.spec()
    shared = {name: np.array(value.numpy()) for name, value in client(spec, 0)._model.state_dict().items()}
    broken = {name: array for name, array in shared.items() if name != "conv1.weight"}
    with worker_engine(
        spec,
        workers=0,
        handout=Handout(
            outgoing=lambda station, state: broken if station == 1 else state, incoming=lambda state: state
        ),
    ) as engine:
        answers = list(engine.answers(0, (0, 1, 2), shared))
    assert [type(answer) for answer in answers] == [Update, Absence, Update]
    assert "lacks 'conv1.weight'" in answers[1].reason


def test_too_few_test_samples_are_noticed_before_training(tmp_path: Path) -> None:
    base = small.preset()
    greedy = small.spec(replace(base, evaluation=replace(base.evaluation, shot=50)))
    with pytest.raises(InputError, match="the 60 test samples cannot form a 5-way 50-shot episode"):
        trained(greedy, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_cifar10_needs_its_folder() -> None:
    base = small.preset()
    with pytest.raises(InputError, match="--cifar10"):
        small.spec(replace(base, data=replace(base.data, dataset="cifar10"))).source.load()


def test_marks_need_two_stations(tmp_path: Path) -> None:
    alone = small.spec(small.preset(clients=1, rounds=1))
    assert trained(alone, tmp_path)["marks"] is None
    assert read_marks(alone, {}, {}) is None
