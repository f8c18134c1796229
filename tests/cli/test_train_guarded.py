"""`zktrace train --workspace`: rounds under a guard, unless one says no, identity marks and all."""

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
    assert run([*command, "--out", "guarded"]) == 0
    said = capsys.readouterr().out
    assert "federation  2 broadcasts on record, each station's with its own row" in said
    assert run([*command, "--out", "plain", "--no-guard", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guard"] is None
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
    assert run([*command, "--out", "guarded", "--resume", "--guard", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["guard"] == {"release": "federation", "broadcasts": 3}


def test_a_network_too_small_for_a_guard_is_one_line_that_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operator(tmp_path / "op", *NAMES, shapes=(default_shape("spread"),))
    text = preset_toml(small.preset(rounds=1, bits=16))
    (tmp_path / "narrow.toml").write_text(text.replace("width = 4", "width = 1"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert (
        run(["train", "--preset", "narrow.toml", "--workers", "0", "--workspace", "op", "--out", "run"]) == 2
    )
    said = capsys.readouterr().err
    assert "--no-guard" in said
    assert said.count("\n") == 1
    assert not Path("run").exists()


def test_a_guard_needs_a_workspace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["train", "--out", str(tmp_path / "run"), "--guard"]) == 2
    assert "--guard needs --workspace" in capsys.readouterr().err
