"""Kills and crowds: a log is whole whenever somebody looks, and what was acknowledged stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

from registry.small import CUSTODY, setup
from zktrace.credentials import PublicKey
from zktrace.registry.registry import Registry
from zktrace.registry.stores.sql import SqlStore

TESTS = Path(__file__).parents[1]


def child(*arguments: object) -> dict[str, object]:
    """What a run of children.py reports."""
    ran = subprocess.run(
        [sys.executable, str(TESTS / "registry" / "children.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
    )
    assert ran.returncode == 0, ran.stderr
    facts: dict[str, object] = json.loads(ran.stdout)
    return facts


def check_rows(registry: Registry) -> None:
    """Every station's commitments are those of its own row."""
    ledger = registry.ledger()
    for row, name in enumerate(ledger.by_row):
        enrolment = ledger.station(name).enrolment
        assert enrolment.row == row
        public = PublicKey.from_bytes(enrolment.public_key)
        assert CUSTODY.enrolment(setup(), station=name, row=row, public=public) == enrolment


def test_eight_processes_that_enrol_at_once_lose_nothing(url: str) -> None:
    registry = Registry(SqlStore(url))
    registry.add(setup())
    assert child("enrol", url, 6) == {"codes": [0] * 8}
    assert registry.verify().size == 49
    assert set(registry.ledger().by_row) == {f"p{who}-{i}" for who in range(8) for i in range(6)}
    check_rows(registry)


def test_a_kill_while_enrolling_leaves_a_whole_log(url: str) -> None:
    registry = Registry(SqlStore(url))
    registry.add(setup())
    times = 42 if url.startswith("sqlite") else 18
    found = child("kill", url, times, 1)
    assert found["lost"] == []
    assert found["extra"] in (0, 1)  # committed, and killed before it could say so
    assert int(str(found["stations"])) >= times  # none, one or two a process before it was killed
    check_rows(registry)


def test_a_kill_while_a_workspace_is_made_leaves_one_that_can_be_finished(tmp_path: Path) -> None:
    found = child("init", tmp_path, 15, 2)
    assert int(str(found["unfinished"])) >= 1
