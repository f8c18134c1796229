"""kill -9 in the middle of an investigation leaves a whole log, and evidence that is whole or absent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("seed", [0, 1])
def test_thirty_killed_investigations_leave_whole_logs(tmp_path: Path, seed: int) -> None:
    ran = subprocess.run(
        [sys.executable, str(TESTS / "tracing" / "kill_child.py"), str(tmp_path), "30", str(seed)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))},  # what is under test here
    )
    assert ran.returncode == 0, ran.stderr
    lines = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    assert len(lines) == 30
    assert lines[:4] == [(0, 0), (1, 0), (1, 0), (2, 0)]  # killed just before or after a record
