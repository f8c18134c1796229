"""`zktrace study tracing`: what is left is told without training anything; what is not known is one line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.cli.app import run


def command(folder: Path, *options: str) -> list[str]:
    given = ["--out", str(folder / "rows.jsonl"), "--work", str(folder / "work"), "--preset", "smoke"]
    return ["study", "tracing", *given, *options]


def left(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> int:
    assert run(command(folder, "--dry-run", "--json", *options)) == 0
    return int(json.loads(capsys.readouterr().out)["trials"])


def test_a_dry_run_counts_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = ("--dataset", "gnss")  # three stations: the cost, single copies, pairs, all three
    assert left(tmp_path, capsys, *one) == 4 * (2 + 4)
    assert left(tmp_path, capsys, *one, "--profile", "paper", "--seed", "1", "--seed", "2") == 2 * 4 * 2
    assert left(tmp_path, capsys, *one, "--carrier", "weight", "--carrier", "spread+weight") == 4 * 3
    assert left(tmp_path, capsys, *one, "--carrier", "weight", "--profile", "paper", "--copies", "2") == 3
    assert left(tmp_path, capsys, "--carrier", "weight", "--profile", "paper", "--size", "8") == 2 * 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--carrier", "magic"), "no carrier"),
        (("--carrier", "output", "--profile", "paper"), "no profile that is asked for"),
        (("--carrier", "weight+weight"), "each once"),
        (("--profile", "theirs"), "a profile is one of"),
        (("--copies", "40"), "copies for 40 of 3 stations"),
        (("--dataset", "moon"), "dataset = 'moon'"),
        (("--model", "model.safetensors"), "a finished model comes from one run"),
    ],
)
def test_what_is_not_known_is_one_line(
    options: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command(tmp_path, *options)) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1
