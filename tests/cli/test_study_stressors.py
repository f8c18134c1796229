"""`zktrace study stressors`: what is left is told without training anything; what is unknown is one line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.cli.app import run


def command(folder: Path, *options: str) -> list[str]:
    given = ["--out", str(folder / "rows.jsonl"), "--work", str(folder / "work"), "--preset", "smoke"]
    return ["study", "stressors", *given, *options]


def left(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> int:
    assert run(command(folder, "--dry-run", "--json", *options)) == 0
    return int(json.loads(capsys.readouterr().out)["trials"])


def test_a_dry_run_counts_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert left(tmp_path, capsys) == 13 + 12  # CIFAR-10 has no receivers
    assert left(tmp_path, capsys, "--dataset", "cifar10") == 12
    assert left(tmp_path, capsys, "--variant", "shift") == 1
    seeds = ("--seed", "1", "--seed", "2")
    assert left(tmp_path, capsys, "--variant", "median", "--variant", "alpha-0.1", *seeds) == 8
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--variant", "magic"), "no variant 'magic'"),
        (("--variant", "shift", "--dataset", "cifar10"), "variant shift is of simulated GNSS"),
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
