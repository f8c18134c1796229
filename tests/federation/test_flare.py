"""A guard in jobs of NVIDIA FLARE, in its simulator: copies of their own, averages of nobody."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="NVIDIA FLARE is not installed (pip install 'zktrace[flare]')")

import zktrace

JOB = Path(__file__).with_name("flare_job.py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "flare-job" / "job.py"
STATIONS = {"alpha": "hospital-1", "bravo": "hospital-2"}
MINUTES = 10 * 60.0


@pytest.fixture
def home(tmp_path: Path) -> zktrace.Workspace:
    return zktrace.Workspace.create(tmp_path / "op", title="a federation", budget="1/2")


@pytest.fixture
def enrolled(home: zktrace.Workspace) -> zktrace.Workspace:
    for station in STATIONS.values():
        home.enrol(station, zktrace.Credential.new("x").request(home.setup))
    return home


def simulated(script: Path, *arguments: str | Path, folder: Path) -> str:
    """What a job says; the simulator's processes end with it."""
    ran = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=MINUTES,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def named(home: zktrace.Workspace, path: Path) -> tuple[str, ...]:
    with np.load(path) as kept:
        return home.trace(dict(kept), budget="1/1000000").named


def broadcasts(home: zktrace.Workspace) -> list[tuple[str, int]]:
    return [(each.label, each.copies) for _, each in home.opened().ledger.broadcasts("federation")]


def reading(home: zktrace.Workspace, out: Path) -> float:
    """Of the model that the server keeps, along the directions of rows."""
    kept = np.load(out / "flare" / "server" / "simulate_job" / "models" / "server.npy")
    assert not np.array_equal(kept, np.load(out / "first.npy"))
    return float(np.abs(home.opened().reader("spread").read({"numpy_key": kept})).max())


@pytest.mark.slow
def test_the_example_every_client_has_a_copy_of_its_own_each_round(
    home: zktrace.Workspace, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    simulated(EXAMPLE, "--workspace", home.root, "--out", out, folder=tmp_path)
    seen = sorted((out / "seen").iterdir())
    assert [path.stem for path in seen] == [
        f"site-{site}-{number}" for site in (1, 2, 3) for number in (0, 1)
    ]
    for path in seen:
        assert named(home, path) == (path.stem[:-2],)
    assert reading(home, out) == 0.0
    assert broadcasts(home) == [("train 0", 3), ("train 1", 3)]


@pytest.mark.slow
def test_differences_and_models_of_others_are_marked_anew_and_a_liar_gets_nothing(
    enrolled: zktrace.Workspace, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    said = simulated(JOB, enrolled.root, out, "train", "validate", folder=tmp_path)
    seen = sorted((out / "seen").glob("*.npz"))
    kinds = {tuple(path.stem.split("-")[:3]) for path in seen}
    assert kinds == {
        (client, task, owner)
        for client in STATIONS
        for task, owner in (
            ("train", "server"),
            ("validate", "SRV_server"),
            ("validate", "alpha"),
            ("validate", "bravo"),
        )
    }
    for path in seen:
        assert named(enrolled, path) == (STATIONS[path.stem.split("-")[0]],), path.stem
    assert "charlie is no station of the workspace: it is sent an empty task" in said
    asked = [path.read_text() for path in (out / "seen").glob("charlie-*.txt")]
    assert len(asked) >= 5
    assert set(asked) == {"['__headers__']"}
    assert reading(enrolled, out) == 0.0
    records = broadcasts(enrolled)
    assert records[:2] == [("train 0", 2), ("train 1", 2)]
    assert {label for label, _ in records[2:]} == {"validate"}


@pytest.mark.slow
def test_a_task_that_the_guard_was_not_told_of_leaves_empty(
    enrolled: zktrace.Workspace, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    said = simulated(JOB, enrolled.root, out, "train", folder=tmp_path)
    assert "the task 'validate' carries a model, and is not among the tasks of the guard" in said
    assert {path.stem.split("-")[1] for path in (out / "seen").glob("*.npz")} == {"train"}
    assert {label for label, _ in broadcasts(enrolled)} == {"train 0", "train 1"}


@pytest.mark.slow
def test_without_a_release_nothing_leaves(enrolled: zktrace.Workspace, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = simulated(JOB, enrolled.root, out, "--no-begin", "train", "validate", folder=tmp_path)
    assert "there is no release federation in the workspace" in said
    assert not list((out / "seen").glob("*.npz"))


@pytest.mark.parametrize("tasks", [["*"], ["train", "*"], []])
def test_all_tasks_are_no_list_of_tasks(tasks: list[str]) -> None:
    """FLARE takes the star for a filter, and then applies it to no task."""
    from nvflare.job_config.api import FedJob

    from zktrace.flare import TaskGuard

    with pytest.raises(zktrace.errors.InputError, match="name the tasks"):
        FedJob(name="a").to_server(TaskGuard(workspace="op"), tasks=tasks)


def test_what_may_carry_a_model() -> None:
    from zktrace.federation.flare import _carries

    harmless: list[Any] = [{}, {"a": [1, 2.0, "x", b"y", None, True]}, np.ones(9), np.float32(3.0)]
    models: list[Any] = [
        np.ones((2, 2)),
        {"DXO": {"data": {"w": np.ones((2, 2))}}},
        [object()],
        {"a": {1: object}},
    ]
    assert not any(map(_carries, harmless))
    assert all(map(_carries, models))
