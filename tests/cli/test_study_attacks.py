"""`zktrace study attacks`: what is left is told without training anything; what is not known is one line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.cli.app import run
from zktrace.studies.rows import Rows


def command(folder: Path, *options: str) -> list[str]:
    given = ["--out", str(folder / "rows.jsonl"), "--work", str(folder / "work"), "--preset", "smoke"]
    return ["study", "attacks", *given, "--dataset", "gnss", *options]


def left(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> int:
    assert run(command(folder, "--dry-run", "--json", *options)) == 0
    return int(json.loads(capsys.readouterr().out)["trials"])


def test_a_dry_run_counts_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert left(tmp_path, capsys, "--family", "noise") == 3 * 6
    assert left(tmp_path, capsys, "--grid", "short", "--family", "pgd", "--seed", "1", "--seed", "2") == 12
    assert left(tmp_path, capsys, "--family", "distill", "--epochs", "1", "--target", "paper") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_is_there_is_not_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--target", "identity", "--family", "prune", "--family", "none", "--grid", "short")
    assert run(command(tmp_path, *options)) == 0
    assert capsys.readouterr().out.startswith("2 new rows in ")
    assert left(tmp_path, capsys, *options) == 0
    assert run(command(tmp_path, *options)) == 0
    assert capsys.readouterr().out == f"0 new rows in {tmp_path / 'rows.jsonl'}, 2 were there\n"
    assert [row.trial["family"] for row in Rows(tmp_path / "rows.jsonl").read()] == ["none", "prune"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--family", "magic"), "no attack 'magic'"),
        (("--target", "nobody"), "no target 'nobody'"),
        (("--grid", "long"), "long"),
        (("--dataset", "moon"), "dataset = 'moon'"),
    ],
)
def test_what_is_not_known_is_one_line(
    options: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(tmp_path, *options)) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1
