"""What an operator asks most: what is there, what is left, which cases there were."""

import json
import os
import pty
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from cli import test_trace
from zktrace.cli.app import run
from zktrace.registry.overview import budget_text
from zktrace.registry.records import RevocationRecord
from zktrace.registry.workspace import Home

made, here = test_trace.made, test_trace.here  # a workspace of four stations with a copy each


def asked(capsys: pytest.CaptureFixture[str], *command: str) -> dict[str, object]:
    assert run([*command, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_status_counts_what_is_on_record(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home.find()
    home.registry.add(RevocationRecord(station="delta", reason="left"))
    assert run(["trace", "../bravo.safetensors"]) == 0
    assert run(["trace", "../unmarked.safetensors", "--budget", "1/500"]) == 4
    capsys.readouterr()
    facts = asked(capsys, "status")
    assert (facts["stations"], facts["revoked"], facts["copies"]) == (4, 1, 4)
    assert facts["releases"] == [
        {
            "name": "r1",
            "carriers": ["weight"],
            "copies": 4,
            "stations": 4,
            "signed": 0,
            "unsigned": ["alpha", "bravo", "carol", "delta"],
            "rounds": 0,
        }
    ]
    assert (facts["cases"], facts["certified"], facts["open"]) == (2, 1, 0)
    assert (facts["budget"], facts["spent"], facts["left"]) == ("1/100", "3/1000", "7/1000")
    assert facts["head"] == Home.find().registry.head().to_text()
    assert run(["status"]) == 0
    text = capsys.readouterr().out
    assert "stations  4 enrolled, 1 of them revoked" in text
    assert "receipts  r1: 0 signed, not: alpha, bravo, carol, delta" in text
    assert "budget    3/1000 of 1/100 spent, 7/1000 left" in text
    assert f"head      {facts['head']}" in text


def test_status_of_a_new_workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path / "w"), "--carrier", "weight"]) == 0
    assert run(["status", "--workspace", str(tmp_path / "w")]) == 0
    assert "releases  none yet" in capsys.readouterr().out
    assert run(["cases", "--workspace", str(tmp_path / "w")]) == 0
    assert capsys.readouterr().out == "no investigation is on record\n"


def test_trace_says_what_is_left(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "../bravo.safetensors"]) == 0
    assert "budget    1/1000 spent here; 9/1000 left" in capsys.readouterr().out
    assert run(["trace", "../bravo.safetensors", "--budget", "9/1000"]) == 0
    assert "budget    9/1000 spent here; nothing left" in capsys.readouterr().out


def test_cases_tell_how_each_ended_and_where_its_evidence_is(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["trace", "../bravo.safetensors"]) == 0
    assert run(["trace", "../unmarked.safetensors"]) == 4
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr("zktrace.tracing.protocol.investigate", _killed)
        assert run(["trace", "../bravo.safetensors", "--budget", "1/400"]) == 130
    capsys.readouterr()
    first, second, third = asked(capsys, "cases")["cases"]  # type: ignore[misc]
    assert (first["verdict"], first["named"], first["budget"]) == (
        "certified-attribute",
        ["bravo"],
        "1/1000",
    )
    assert Path(first["evidence"]).name == f"case-{first['investigation']}.zkt.json"
    assert (second["verdict"], second["named"]) == ("no-certified-evidence", [])
    assert (third["verdict"], third["evidence"], third["budget"]) == (None, None, "1/400")
    Path(first["evidence"]).write_bytes(Path(second["evidence"]).read_bytes())  # of another case
    Path(second["evidence"]).unlink()
    assert run(["cases"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert first["suspect"][:12] in lines[0]
    assert first["suspect"] not in lines[0]
    assert "certified-attribute: bravo" in lines[1]
    lost = [
        f"evidence lost (zktrace cases rebuild {each['investigation']} SUSPECT)" for each in (first, second)
    ]
    assert [line.strip() for line in lines if "lost" in line] == lost
    assert "no verdict: interrupted, its budget is spent" in lines[-2]
    assert lines[-1].strip().startswith("carry on to the verdict: zktrace cases resume ")
    assert max(map(len, lines)) <= 80


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("before", "wanted", "words"),
    [
        (["1/200"], "1e-2", "1/200 of 1/100 is left: --budget 1/200 would do"),
        (["1/200", "1/200"], "1e-3", "all of the budget of 1/100 is spent"),
        ([], "1/2", "--budget 1/100 would do"),
    ],
)
def test_a_budget_that_is_too_large_proposes_one_that_would_do(
    here: Path, capsys: pytest.CaptureFixture[str], before: list[str], wanted: str, words: str
) -> None:
    for budget in before:
        assert run(["trace", "../unmarked.safetensors", "--budget", budget]) == 4
    looks = len(Home.find().registry.ledger().investigations)
    capsys.readouterr()
    assert run(["trace", "../bravo.safetensors", "--budget", wanted]) == 2
    assert words in capsys.readouterr().err
    assert len(Home.find().registry.ledger().investigations) == looks


@pytest.mark.parametrize("text", ["1/100", f"1/{3**200}", f"{7**80}/{11**81}"])
def test_a_proposed_budget_can_be_spent(text: str) -> None:
    exact = Fraction(text)
    shown = budget_text(exact)
    assert len(shown) <= 40
    assert exact * Fraction(99, 100) < Fraction(shown) <= exact


def test_an_uncertified_look_is_asked_for_twice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["trace", "../bravo.safetensors", "--uncertified"]
    assert run(command) == 2
    said = capsys.readouterr().err
    assert "ends certified looks under this setup for ever" in said
    assert "--yes" in said
    assert not Home.find().registry.ledger().investigations
    assert run([*command, "--yes"]) == 3
    assert "budget    nothing spent here; nothing can be certified any more" in capsys.readouterr().out
    assert run(command) == 3  # there is nothing to lose any more
    capsys.readouterr()
    assert run(["trace", "../bravo.safetensors"]) == 2
    assert "looked without a budget" in capsys.readouterr().err
    assert run(["status"]) == 0
    assert "nothing can be certified any more" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 2), (b"y\n", 3)])
def test_on_a_terminal_it_asks(here: Path, answer: bytes, code: int) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "zktrace", "trace", "../bravo.safetensors", "--uncertified"]
    os.write(leader, answer)
    ran = subprocess.run(command, stdin=follower, capture_output=True, text=True, check=False)
    os.close(leader)
    os.close(follower)
    assert ran.returncode == code, ran.stderr
    assert "End certified looks for ever?" in ran.stderr
    assert len(Home.find().registry.ledger().investigations) == (code == 3)
