"""The command of the demo: what it names exists, and a folder of somebody else is left alone."""

import json
from pathlib import Path

import pytest

from zktrace.cli.app import run
from zktrace.demo.pages import NEXT

pytest.importorskip("torch", reason="torch is not installed")


def test_what_to_do_next_names_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for _, command in NEXT:
        words = [word for word in command.split()[1:] if word.islower() and not word.startswith("-")]
        known = [word for word in words if word not in ("operator", "case.html")]
        assert run([*known, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert all(option in shown for option in command.split() if option.startswith("--"))


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert run(["demo", "--out", str(tmp_path)]) == 2
    assert "not of a demo" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_the_whole_demo_ends_as_expected_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["demo", "--out", str(tmp_path / "demo"), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["ok"]
        assert Path(facts["report"]).is_file()
