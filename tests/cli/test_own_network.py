"""A network of one's own, from init to judge, as an operator and a judge meet it."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import zktrace
from learning.foreign import plain_cnn, pool, taught
from learning.synthetic import task
from one_thread import one_thread
from zktrace.cli.app import run
from zktrace.models import save_model

__all__ = ["one_thread"]
MARKS = ("passes=60", "batch_size=32", "beside=32", "margin=0.7", "keep=1", "learning_rate=3e-4")
OWN = """
from learning.foreign import plain_cnn as make

def right(module):
    import torch
    from learning.foreign import task
    images, labels = task(60, seed=5)
    return float((module(torch.from_numpy(images)).argmax(1).numpy() + 10 == labels).mean())

def broken():
    raise RuntimeError("no such\\nfile")

def other():
    from learning.foreign import tiny_vit
    return tiny_vit()

def number():
    return 3

def nothing(module):
    return None
"""


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, object]:
    capsys.readouterr()
    code = run([*command, "--json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    found: dict[str, object] = json.loads(shown.out)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A workspace with three stations, a taught network without BatchNorm, inputs in a file; its module."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    module = f"own_{tmp_path.parent.name}_{tmp_path.name}".replace("-", "_")  # another one in each test
    Path(f"{module}.py").write_text(OWN)
    save_model("model.safetensors", {f"net.{key}": value for key, value in taught(plain_cnn).items()})
    inputs, labels = pool()
    np.savez("inputs.npz", inputs=inputs, labels=labels)
    Path("folder").mkdir()
    images, classes = task(120, seed=4)
    np.save("folder/inputs.npy", images)
    np.save("folder/labels.npy", classes)
    home = zktrace.Workspace.create("op", title="own", budget="1/10", carriers=["feature", "output"])
    for station in ("alpha", "beta", "gamma"):
        home.enrol(station, zktrace.Credential.new(station).request(home.setup))
    return module


def test_from_release_to_judge_with_a_network_of_ones_own(
    here: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own, at = ["--network", f"{here}:make"], ["--workspace", "op"]
    asked = ["--inputs", "inputs.npz", "--carrier", "output", "--length", "128"]
    released = printed(capsys, "release", "model.safetensors", *asked, *own, *at)
    assert released["proxy"] == "400 samples of inputs.npz"
    marks = [f"--mark=output.{each}" for each in MARKS]
    command = ["dispatch", "--station", "beta", "--jobs", "1", *marks, *own, *at]
    handed = printed(capsys, *command, "--metric", f"{here}:right")
    (copy,) = handed["copies"]  # type: ignore[misc]
    assert copy["weak"] == []
    assert handed["metric"] >= copy["metric"] > 0.9  # type: ignore[operator]
    assert handed["cost"] == pytest.approx(handed["metric"] - copy["metric"])  # type: ignore[operator]
    again = printed(capsys, *command, "--evaluate", "folder")
    assert again["made"] == 0
    assert again["accuracy"] > 0.9  # type: ignore[operator]
    case = printed(capsys, "trace", copy["file"], *own, *at)
    assert [each["station"] for each in case["named"]] == ["beta"]  # type: ignore[attr-defined]
    head = printed(capsys, "log", "head", *at)["head"]
    files = ["--suspect", copy["file"], "--shared", "model.safetensors"]
    probes = ["--probes", "op/releases/r1/queries.safetensors"]
    judged = ["judge", str(case["evidence"]), "--head", str(head), *files, *probes]
    assert printed(capsys, *judged, *own)["upheld"] is True
    for wrong in ([], ["--network", f"{here}:other"], ["--network", f"{here}:broken"]):
        assert run([*judged, *wrong]) == 2  # the judge's means are at fault, not the evidence
        assert "name the release's own (--network)" in capsys.readouterr().err
    assert run(judged[: -len(probes)]) == 0  # what only a network would tell is left unchecked
    for path in Path("op").rglob("*"):
        assert path.is_dir() or here.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--network", "make"], "must be like package.module:function"),
        (["--network", "nowhere_at_all:make"], "there is no module 'nowhere_at_all'"),
        (["--network", "OWN:nobody"], "has no function 'nobody'"),
        (["--network", "OWN:broken"], "raised RuntimeError: no such"),
        (["--network", "OWN:number"], "gave int, not a torch module"),
        (["--network", "OWN:other"], "the model has no 'token', which the network has"),
        (["--network", "OWN:make", "--features", "nowhere"], "has no module 'nowhere'"),
        (["--features", "5"], "name it with --network"),
        (["--network", "OWN:make", "--inputs", "no.npz"], "cannot be read"),
        (["--network", "OWN:make", "--inputs", "model.safetensors"], "there is no array 'inputs'"),
        (["--network", "OWN:make", "--inputs", "empty"], "there is no array 'inputs'"),
        (["--network", "OWN:make", "--inputs", "wrong"], "given inputs of shape (1, 4, 9, 9), raised"),
        (["--network", "OWN:make", "--proxy", "smoke"], "give one of them"),
        (["--network", "syntax:make"], "syntax cannot be imported (SyntaxError"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    here: str, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    Path("empty").mkdir()
    Path("wrong").mkdir()
    np.save("wrong/inputs.npy", np.zeros((400, 4, 9, 9), np.float32))
    np.save("wrong/labels.npy", np.arange(400) % 5)
    Path("syntax.py").write_text("def make(:")
    given = [each.replace("OWN", here) for each in options]
    command = ["release", "model.safetensors", "--carrier", "feature", "--length", "128", "--workspace", "op"]
    inputs = [] if "--inputs" in given else ["--inputs", "inputs.npz"]
    assert run([*command, *inputs, *given]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1
    assert not Path("op/releases/r1").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metric", "OWN:nothing"], "the metric gave NoneType, not a number"),
        (["--metric", "OWN:number"], "the metric raised TypeError"),
        (["--metric", "OWN:right", "--evaluate", "folder"], "one of them"),
    ],
)
def test_a_metric_that_gives_no_number_is_one_line(
    here: str, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    home = zktrace.Workspace.create("light", title="own", budget="1/10", carriers=["spread"])
    home.enrol("alpha", zktrace.Credential.new("alpha").request(home.setup))
    home.release("model.safetensors", length=128)
    given = [each.replace("OWN", here) for each in options]
    at = ["--all", "--workspace", "light", "--network", f"{here}:make"]
    assert run(["dispatch", *at, *given]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert words in shown[-1]
