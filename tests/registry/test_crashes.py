"""Kills and crowds: a log is whole whenever somebody looks, and what was acknowledged stays."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from registry.reference import facts, replayed
from registry.small import request, setup
from zktrace.registry.cache import decoded
from zktrace.registry.enrolling import enrolment
from zktrace.registry.records import record_digest
from zktrace.registry.registry import Registry
from zktrace.registry.stores.sql import SqlStore

TESTS = Path(__file__).parents[1]
MANY = 2048  # places


def child(*arguments: object) -> dict[str, object]:
    """What a run of children.py reports."""
    ran = subprocess.run(
        [sys.executable, str(TESTS / "registry" / "children.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))},  # what is under test here
    )
    assert ran.returncode == 0, ran.stderr
    facts: dict[str, object] = json.loads(ran.stdout)
    return facts


def check_rows(registry: Registry) -> None:
    """Every station is on record as it asked, at a place of its own."""
    ledger = registry.ledger()
    for row, name in enumerate(ledger.by_row):
        found, asked = ledger.station(name).enrolment, request(name, record_digest(setup(MANY)))
        wanted = enrolment(name, row, asked, bits=ledger.setup.identity_bits)
        assert replace(found, request=asked.digest()) == wanted  # a proof is another each time


def test_eight_processes_that_enrol_at_once_lose_nothing(url: str) -> None:
    registry = Registry(SqlStore(url))
    registry.add(setup(MANY))
    assert child("enrol", url, 6) == {"codes": [0] * 8}
    assert registry.verify().size == 49
    assert set(registry.ledger().by_row) == {f"p{who}-{i}" for who in range(8) for i in range(6)}
    check_rows(registry)


def test_eight_processes_that_share_a_cache_lose_nothing(url: str, tmp_path: Path) -> None:
    """Each enrolment is by a registry that begins with the cache that somebody has just written."""
    path = tmp_path / "cache" / "ledger"
    Registry(SqlStore(url)).add(setup(MANY))
    assert child("enrol", url, 6, path) == {"codes": [0] * 8}
    registry = Registry(SqlStore(url), cache=path)
    assert [each.name for each in path.parent.iterdir()] == ["ledger"]
    assert decoded(path.read_bytes()).size > 2
    assert registry.head() == registry.verify()
    assert facts(registry.ledger()) == replayed(registry.entries())
    assert set(registry.ledger().by_row) == {f"p{who}-{i}" for who in range(8) for i in range(6)}


def test_a_kill_while_enrolling_leaves_a_whole_log(url: str) -> None:
    registry = Registry(SqlStore(url))
    registry.add(setup(MANY))
    times = 42 if url.startswith("sqlite") else 18
    found = child("kill", url, times, 1)
    assert found["lost"] == []
    assert found["extra"] in (0, 1)  # committed, and killed before it could say so
    assert int(str(found["stations"])) >= times  # none, one or two a process before it was killed
    check_rows(registry)


def test_a_kill_while_a_workspace_is_made_leaves_one_that_can_be_finished(tmp_path: Path) -> None:
    found = child("init", tmp_path, 15, 2)
    assert int(str(found["unfinished"])) >= 1
