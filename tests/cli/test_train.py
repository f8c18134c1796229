"""`zktrace train` as a user meets it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.cli.app import run
from zktrace.learning.presets import preset_text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = preset_text("smoke").replace("samples = 1_200", "samples = 400").replace("width = 8", "width = 4")
    text = text.replace("shot = 5\nquery = 5", "shot = 1\nquery = 2")
    (tmp_path / "tiny.toml").write_text(text)
    return tmp_path


def test_train_then_attribute(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rounds"] == 2
    assert "simulated" in facts["dataset"]
    keys = [word for path in sorted(Path("run/stations").iterdir()) for word in ("--public", str(path))]
    assert run(["attribute", "run/model.safetensors", *keys, "--bits", "16", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["self_agreement"] == pytest.approx(facts["marks"]["self_agreement"])
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0", "--resume"]) == 0
    assert "of the stations attributed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "nope", "--out", "x"], "nope"),
        (["--preset", "bad.toml", "--out", "x"], "unknown key"),
        (["--preset", "tiny.toml", "--out", "x", "--public", "a.pub"], "1 public keys for 3 stations"),
        (["--preset", "cifar.toml", "--out", "x"], "--cifar10"),
        (["--preset", "cifar.toml", "--out", "x", "--cifar10", "missing"], "no such folder"),
        (["--preset", "tiny.toml", "--out", "tiny.toml"], "tiny.toml"),
    ],
)
def test_bad_input_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    text = Path("tiny.toml").read_text()
    Path("bad.toml").write_text(text.replace("clients =", "client ="))
    Path("cifar.toml").write_text(text.replace('"gnss"', '"cifar10"'))
    run(["credential", "new", "a"])
    capsys.readouterr()
    assert run(["train", *arguments, "--workers", "0"]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
