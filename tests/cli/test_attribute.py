"""`zktrace attribute` on a model that carries two stations' codewords."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from zktrace.cli.app import run
from zktrace.cli.attribute import heat_text
from zktrace.credentials import PublicKey
from zktrace.models import save_model
from zktrace.readouts.identity import IdentityCodebook


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    words = []
    for name in ("alpha", "bravo", "carol"):
        run(["credential", "new", name])
        key = PublicKey.from_bytes((tmp_path / f"{name}.pub").read_bytes())
        words.append(np.unpackbits(np.frombuffer(key.codeword(), dtype=np.uint8)))
    book = IdentityCodebook(stations=3, bits=128, layers=(600,))
    signed = (2.0 * np.concatenate(words)[:, None] - 1) * book.directions.block(0, 384)
    gamma = np.linalg.lstsq(signed, np.ones(384), rcond=None)[0].astype(np.float32)
    save_model("model.safetensors", {"bn1.weight": gamma, "bn1.running_var": np.ones(600, np.float32)})
    capsys.readouterr()
    return tmp_path


def public(*names: str) -> list[str]:
    return [word for name in names for word in ("--public", f"{name}.pub")]


def test_every_station_is_attributed_to_itself(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attribute", "model.safetensors", *public("alpha", "bravo", "carol"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["attribution"], facts["self_agreement"]) == (1.0, 1.0)
    assert abs(facts["cross_talk"] - 0.5) < 0.15
    assert [row["attributed"] for row in facts["stations"]] == ["alpha", "bravo", "carol"]
    assert all(row["within_radius"] for row in facts["stations"])
    assert run(["attribute", "model.safetensors", *public("alpha", "bravo", "carol")]) == 0
    shown = capsys.readouterr().out
    assert "attributed to themselves: 100.0%" in shown
    assert "alpha, proved by its distance" in shown


def test_the_order_of_the_roster_matters(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attribute", "model.safetensors", *public("bravo", "alpha", "carol"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["attribution"] == pytest.approx(1 / 3)
    assert [row["attributed"] for row in facts["stations"]] == ["alpha", "bravo", "carol"]


def test_another_codebook_reads_chance(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["attribute", "model.safetensors", *public("alpha", "bravo", "carol"), "--codebook", "other"]
    assert run([*arguments, "--json"]) == 0
    assert abs(json.loads(capsys.readouterr().out)["self_agreement"] - 0.5) < 0.15


def test_a_report_has_table_and_heat_map(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["attribute", "model.safetensors", *public("alpha", "bravo", "carol")]
    assert run([*arguments, "--report", "marks.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == "marks.html"
    document = (here / "marks.html").read_text()
    assert "Agreement of components and codewords" in document
    assert document.count("alpha") >= 4  # row, column, table, attributed to
    assert run([*arguments, "--report", "marks.html"]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert run([*arguments, "--report", "marks.html", "--force"]) == 0
    assert "marks.html" in capsys.readouterr().out


def test_the_map_of_a_terminal(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert heat_text([[1.0, 0.5], [0.65, 0.97]], ["a", "bc"]).split("\n")[1:3] == ["a   ██· ", "bc  ░░██"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(["attribute", "model.safetensors", *public("alpha", "bravo", "carol")]) == 0
    shown = capsys.readouterr().out
    assert "alpha  ██" in shown
    assert run(["attribute", "model.safetensors", *public("alpha", "bravo", "carol"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_neither_reading_nor_drawing_needs_torch(here: Path) -> None:
    arguments = ["attribute", "model.safetensors", *public("alpha", "bravo"), "--report", "r.html", "--force"]
    code = f"import sys; from zktrace.cli.app import run; assert run({arguments!r}) == 0; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model.safetensors", *public("alpha")], "at least two stations"),
        (["missing", *public("alpha", "bravo")], "cannot be read"),
        (["plain.safetensors", *public("alpha", "bravo")], "no BatchNorm scales"),
        (
            ["model.safetensors", "--public", "alpha.key", "--public", "bravo.pub"],
            "a secret key, where a public one belongs",
        ),
    ],
)
def test_bad_input_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    save_model("plain.safetensors", {"conv.weight": np.ones(3, np.float32)})
    assert run(["attribute", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
