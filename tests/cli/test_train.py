"""`zktrace train` as a user meets it."""

import io
import json
import math
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from rich.console import Console

from zktrace.cli.app import run
from zktrace.cli.progress import round_line, training_progress
from zktrace.federation.server import RoundReport
from zktrace.learning.presets import load_preset, preset_text
from zktrace.learning.training import EpochReport


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
    document = Path("run/report.html").read_text()
    assert facts["report"] == "run/report.html"
    assert "Everything on this page comes from simulated data." in document
    assert "Agreement of components and codewords" in document
    assert "Pre-training loss" in document
    keys = [word for path in sorted(Path("run/stations").iterdir()) for word in ("--public", str(path))]
    assert run(["attribute", "run/model.safetensors", *keys, "--bits", "16", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["self_agreement"] == pytest.approx(facts["marks"]["self_agreement"])
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0", "--resume"]) == 0
    assert "of the stations attributed" in capsys.readouterr().out
    _redrawn(document, capsys)


def _redrawn(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`zktrace report` draws the same page again, also where the run is of a version without a matrix."""
    assert run(["report", "run", "--out", "again.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "report": "again.html"}
    assert Path("again.html").read_text() == document
    Path("run/agreement.json").unlink()
    assert run(["report", "run", "--out", "again.html"]) == 2
    assert "--force" in capsys.readouterr().err
    assert run(["report", "run", "--out", "again.html", "--force"]) == 0
    assert Path("again.html").read_text() == document
    assert run(["report", "stations"]) == 2
    assert "spec.json" in capsys.readouterr().err


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


def report_of(**changes: object) -> RoundReport:
    values: dict[str, object] = {
        "round": 0,
        "asked": (0, 1, 2),
        "trained": (0, 1),
        "absent": {2: "no answer"},
        "excluded": {},
        "loss": 0.25,
        "penalty": 0.0,
        "accuracy": 0.875,
    }
    return RoundReport(**values | changes)  # type: ignore[arg-type]


def test_a_round_is_one_line() -> None:
    full = round_line(report_of(attribution=0.9, held_out=0.781))
    assert full == "round   1  loss 0.2500  accuracy 87.5%  held out 78.1%  attributed 90%  1 left out"
    nobody = report_of(trained=(), absent={}, loss=math.nan, accuracy=math.nan)
    assert round_line(nobody) == "round   1"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_and_nowhere_else(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with training_progress(load_preset("smoke"), console=console) as progress:
        progress(EpochReport(epoch=1, epochs=2, images=10, loss=1.5, accuracy=0.5))
        progress(report_of(attribution=0.5))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("round   1  loss 0.2500" in shown) is terminal
    assert ("loss 1.500, accuracy 50.0%" in shown) is terminal
    assert terminal or shown.strip() == ""
