"""`zktrace guard` as an operator meets it: begin, copies of the last model, what was sent, a proof of it."""

import json
from pathlib import Path

import numpy as np
import pytest

import zktrace
from zktrace.cli.app import run
from zktrace.guarding import CopyProof
from zktrace.models import model_digest, open_model, save_model

NAMES = ("alpha", "bravo", "charlie")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = zktrace.Workspace.create(tmp_path / "op", title="a federation", budget="1/10")
    for name in NAMES:
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    monkeypatch.chdir(home.root)
    weights = np.random.default_rng(1).normal(size=(96, 64)).astype(np.float32)
    save_model("first.safetensors", {"fc.weight": weights, "fc.bias": weights[0]})
    later = weights + np.random.default_rng(2).normal(size=weights.shape).astype(np.float32)
    save_model("last.safetensors", {"fc.weight": later, "fc.bias": weights[1]})
    return home.root


def test_from_the_first_arrays_to_the_last_copies(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["guard", "init", "first.safetensors", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["release"], facts["length"], facts["tensors"], facts["strength"]) == (
        "federation",
        256,
        1,
        0.04,
    )
    assert run(["guard", "init", "first.safetensors"]) == 0  # it is there
    assert "federation  guarded: 256 positions in 6144 weights of 1 tensors" in capsys.readouterr().out
    assert run(["guard", "copies", "last.safetensors", "--out", "copies"]) == 0
    assert "3 copies in copies, broadcast 0 (final)" in capsys.readouterr().out
    kept = Path("copies/alpha.safetensors").read_bytes()
    assert run(["guard", "copies", "first.safetensors", "--out", "copies"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("copies/alpha.safetensors").read_bytes() == kept
    assert run(["trace", "copies/bravo.safetensors", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["station"] for each in found["named"]] == ["bravo"]
    assert found["remarks"] == ["spread, fits broadcast 0 (final) best, 0 deviations away"]
    assert run(["guard", "broadcasts"]) == 0
    assert "     0       3  " in capsys.readouterr().out
    assert run(["guard", "broadcasts", "--json"]) == 0
    (sent,) = json.loads(capsys.readouterr().out)["broadcasts"]
    assert (sent["number"], sent["label"], sent["copies"]) == (0, "final", 3)
    assert run(["guard", "prove", "charlie", "0", "--out", "proof.json", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["copy"] == model_digest(open_model("copies/charlie.safetensors")).hex()
    ledger = zktrace.Workspace.open(here).registry.ledger()
    ((index, record),) = ledger.broadcasts("federation")
    assert index == facts["entry"]
    assert CopyProof.from_bytes(Path("proof.json").read_bytes()).holds(record)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["guard", "copies", "last.safetensors", "--out", "x"], "there is no release federation"),
        (["guard", "broadcasts"], "there is no release 'federation'"),
        (["guard", "prove", "alpha", "0", "--out", "x"], "there is no release"),
        (["guard", "init", "first.safetensors", "--length", "100"], "a power of two"),
        (["guard", "init", "nothing.safetensors"], "nothing.safetensors"),
    ],
)
def test_what_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str], reason: str
) -> None:
    assert run(command) == 2
    assert reason in capsys.readouterr().err
    assert not Path("x").exists()


def test_another_model_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["guard", "init", "first.safetensors"]) == 0
    save_model("other.safetensors", {"fc.weight": np.ones((3, 3), np.float32)})
    assert run(["guard", "copies", "other.safetensors", "--out", "x"]) == 2
    assert "'fc.bias' is gone" in capsys.readouterr().err
    assert run(["guard", "prove", "alpha", "0", "--out", "x"]) == 2
    assert "no broadcast 0" in capsys.readouterr().err
