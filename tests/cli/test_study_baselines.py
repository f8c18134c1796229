"""The command of the study of published systems."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.baselines.table import SYSTEMS
from zktrace.cli.app import app


def test_systems_are_listed_one_a_line() -> None:
    result = CliRunner().invoke(app, ["study", "baselines", "--list"])
    assert result.exit_code == 0
    assert result.output.splitlines() == list(SYSTEMS)


def test_what_is_left_is_counted_without_training(tmp_path: Path) -> None:
    given = ["study", "baselines", "--work", str(tmp_path), "--out", str(tmp_path / "rows"), "--dry-run"]
    result = CliRunner().invoke(app, [*given, "--system", "duw", "--dataset", "gnss"])
    assert result.exit_code == 0
    assert result.output.startswith("5 trials are left")
    assert list(tmp_path.iterdir()) == []
