"""Tables of an earlier version are brought up once, whole or not at all; those of a later one are left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from registry import postgres
from registry.conftest import server
from released.service_sample import DUMPS, HERE
from zktrace.errors import Refused
from zktrace.registry.stores.database import Database
from zktrace.service import migrations
from zktrace.service.migrations import VERSION
from zktrace.service.store import brought_up

__all__ = ["server"]

FIRST = HERE / "service-1.sql"
CHILD = """
import os, signal, sys
from zktrace.registry.stores.database import Database
from zktrace.service import migrations, store
url, what = sys.argv[1:]
done, upgrade = [], migrations.command.upgrade
def noted(*given):
    upgrade(*given)
    done.append(given)
    if what == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
migrations.command.upgrade = noted
print("ready", flush=True)
sys.stdin.readline()
store.brought_up(Database(url))
print(len(done))
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes databases; the URL of each."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path / f'{token_hex(4)}.db'}"
    reason = postgres.missing()
    if reason is not None:
        pytest.skip(reason)
    server: postgres.Server = request.getfixturevalue("server")
    return server.new_database


@pytest.fixture
def url(empty: Callable[[], str]) -> str:
    """A database with the first version of the tables, and something in them."""
    found = empty()
    database = Database(found)
    with database.connected(writes=True) as connection:
        for statement in FIRST.read_text().splitlines():
            connection.exec_driver_sql(statement)
    return found


def columns(database: Database) -> dict[str, Any]:
    """The service's tables: their columns and indices."""
    with database.connected() as connection:
        seen = inspect(connection)
        return {
            name: (str(seen.get_columns(name)), seen.get_pk_constraint(name), seen.get_indexes(name))
            for name in seen.get_table_names()
        }


def contents(database: Database) -> dict[str, list[dict[str, Any]]]:
    """All rows of the service's tables."""
    with database.reading() as found:
        return {
            name: sorted(found.rows(f"SELECT * FROM {name}"), key=repr)  # noqa: S608
            for name in columns(database)
        }


def child(url: str, what: str) -> "subprocess.Popen[str]":
    """A process that brings tables up once it is told to; it is ready when this returns."""
    made = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},  # what is under test here
    )
    assert made.stdout is not None
    assert made.stdout.readline() == "ready\n"
    return made


def test_versions_are_a_line_that_ends_with_ours() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    found = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]
    assert found == [str(each) for each in range(VERSION, 0, -1)]


def test_there_is_a_dump_of_every_version_before() -> None:
    assert [each.name for each in DUMPS][: VERSION - 1] == [f"service-{at}.sql" for at in range(1, VERSION)]


def test_tables_that_were_brought_up_are_those_that_are_made_anew(url: str, empty: Callable[[], str]) -> None:
    old, new = brought_up(Database(url)), brought_up(Database(empty()))
    assert columns(old) == columns(new)
    kept = contents(old)
    assert kept["zks_schema"] == [{"version": VERSION}]
    assert [len(kept[name]) for name in ("zks_accounts", "zks_tokens", "zks_jobs")] == [2, 3, 6]
    brought_up(old)
    assert contents(old) == kept


def test_of_processes_that_start_together_one_brings_the_tables_up(url: str) -> None:
    children = [child(url, "lives") for _ in range(3)]
    for each in children:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate()[0].strip() for each in children]
    assert [each.returncode for each in children] == [0, 0, 0]
    assert sorted(said) == ["0", "0", "1"]
    assert contents(Database(url))["zks_schema"] == [{"version": VERSION}]


def test_a_process_that_is_killed_in_the_middle_leaves_the_version_before(url: str) -> None:
    database = Database(url)
    before, shape = contents(database), columns(database)
    killed = child(url, "dies")
    assert killed.communicate("go\n")[0] == ""
    assert killed.returncode == -signal.SIGKILL
    assert (contents(database), columns(database)) == (before, shape)
    assert contents(brought_up(database))["zks_jobs"] == before["zks_jobs"]


LATER = VERSION + 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (f"UPDATE zks_schema SET version = {LATER}", f"version {LATER}, which a later zktrace made"),  # noqa: S608
        ("DELETE FROM zks_schema", "do not say of which version"),
        ("INSERT INTO zks_schema VALUES (1)", "do not say of which version"),
        ("DROP TABLE zks_accounts", "zks_accounts"),
        ("CREATE TABLE zks_migrations (version_num TEXT)", None),
    ],
)
def test_what_cannot_be_brought_up_is_left_as_it_is(url: str, change: str, said: str | None) -> None:
    database = Database(url)
    with database.writing() as tables:
        tables.run(change)
        if said is None:
            tables.run("INSERT INTO zks_migrations VALUES ('of somebody else')")
    before = contents(database)
    with pytest.raises(Refused, match=said or "cannot be brought up") as refused:
        brought_up(database)
    assert "\n" not in str(refused.value)
    assert contents(database) == before
