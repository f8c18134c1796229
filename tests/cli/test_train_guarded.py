"""`zktrace train --guard`: this package's own rounds under a guard, identity marks and all."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import zktrace
from dispatch.small import SHAPES, operator
from federation import small
from zktrace.cli.app import run
from zktrace.federation.flower.runfile import preset_toml
from zktrace.federation.guarded import guarded_handout
from zktrace.models import open_model
from zktrace.registry.custody import default_shape

NAMES = ("kiel", "aachen", "munich")


def test_rounds_under_a_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operator(tmp_path / "op", *NAMES, shapes=(default_shape("spread"), *SHAPES[:1]))
    (tmp_path / "tiny.toml").write_text(preset_toml(small.preset(rounds=2, clients=3, bits=16)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = ["train", "--preset", "tiny.toml", "--workers", "0", "--workspace", "op"]
    assert run([*command, "--out", "guarded", "--guard"]) == 0
    assert run([*command, "--out", "plain"]) == 0
    home = zktrace.Workspace.open("op")
    records = [each for _, each in home.registry.ledger().broadcasts("federation")]
    assert [(each.label, each.copies) for each in records] == [("round 1", 3), ("round 2", 3)]
    final = open_model("guarded/model.safetensors")
    assert np.abs(home.opened("federation").reader("spread").read(final)).max() == 0.0
    results = [json.loads(Path(f"{each}/result.json").read_text()) for each in ("guarded", "plain")]
    assert results[0]["marks"]["attribution"] == results[1]["marks"]["attribution"]
    capsys.readouterr()
    assert run(["guard", "copies", "guarded/model.safetensors", "--workspace", "op", "--out", "copies"]) == 0
    assert run(["trace", "copies/munich.safetensors", "--workspace", "op", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [each["station"] for each in found["named"]] == ["munich"]
    assert found["remarks"][-1].startswith("spread, fits broadcast 2 (final)")
    again = guarded_handout(home, NAMES)
    first = home.opened("federation").shared
    sent = again.outgoing(1, dict(first.items()))
    assert home.trace(sent, budget="1/1000").named == ("aachen",)


def test_a_guard_needs_a_workspace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["train", "--out", str(tmp_path / "run"), "--guard"]) == 2
    assert "--guard needs --workspace" in capsys.readouterr().err
