"""One contract for every store; and what only databases must hold."""

import sqlite3
from pathlib import Path
from threading import Thread

import pytest

from registry.conftest import Opener
from registry.postgres import Server
from zktrace.errors import Error, InvalidLog, MissingExtra, Refused
from zktrace.registry.stores.contract import Transaction
from zktrace.registry.stores.database import Database
from zktrace.registry.stores.sql import SqlStore


def _append_and_fail(change: Transaction) -> None:
    change.append(1, b"b")
    raise ZeroDivisionError


class TestStoreContract:
    """Memory, SQLite and PostgreSQL keep the same promises."""

    def test_a_new_log_is_empty(self, opener: Opener) -> None:
        assert opener().read() == []
        assert opener().read(5) == []

    def test_what_was_appended_is_read_in_order_from_anywhere(self, opener: Opener) -> None:
        data = [bytes([i]) * (i + 1) for i in range(20)]
        for i, each in enumerate(data):
            with opener().transaction() as change:
                change.append(i, each)
        store = opener()
        for start in range(22):
            assert store.read(start) == data[start:]
            with store.transaction() as change:
                assert change.read(start) == data[start:]

    def test_single_entries_are_picked_in_the_order_of_the_log(self, opener: Opener) -> None:
        data = [bytes([i]) * (i + 1) for i in range(20)]
        store = opener()
        with store.transaction() as change:
            for i, each in enumerate(data):
                change.append(i, each)
            assert change.pick([19, 3]) == [data[3], data[19]]
        for places in ([], [0], [7, 3, 3, 19], [19, 20, -1], [25], list(range(20))):
            wanted = [data[i] for i in sorted(set(places)) if 0 <= i < 20]
            assert store.pick(places) == wanted
            with store.transaction() as change:
                assert change.pick(places) == wanted

    def test_any_bytes_come_back(self, opener: Opener) -> None:
        data = [bytes(range(256)), b"\x00", b"it's; --", b"\xff" * 65536]
        with opener().transaction() as change:
            for i, each in enumerate(data):
                change.append(i, each)
        assert opener().read() == data

    def test_a_block_sees_what_it_appended(self, opener: Opener) -> None:
        with opener().transaction() as change:
            change.append(0, b"a")
            assert change.read(0) == [b"a"]
            change.append(1, b"b")
            assert change.read(1) == [b"b"]

    def test_a_block_that_fails_leaves_nothing(self, opener: Opener) -> None:
        store = opener()
        with store.transaction() as change:
            change.append(0, b"a")
        with pytest.raises(ZeroDivisionError), store.transaction() as change:
            _append_and_fail(change)
        assert store.read() == [b"a"]
        with store.transaction() as change:
            assert change.read(0) == [b"a"]
            change.append(1, b"c")
        assert opener().read() == [b"a", b"c"]

    @pytest.mark.parametrize("place", [0, 1, 3, -1])
    def test_only_the_end_can_be_written(self, opener: Opener, place: int) -> None:
        store = opener()
        with store.transaction() as change:
            change.append(0, b"a")
            change.append(1, b"b")
        with pytest.raises(Refused), store.transaction() as change:
            change.append(place, b"c")
        assert store.read() == [b"a", b"b"]

    def test_blocks_of_many_threads_come_one_after_the_other(self, opener: Opener) -> None:
        opener()

        def work(who: int) -> None:
            store = opener()
            for _ in range(5):
                with store.transaction() as change:
                    end = len(change.read(0))
                    change.append(end, b"%d %d" % (who, end))

        threads = [Thread(target=work, args=(i,)) for i in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        found = [tuple(map(int, each.split())) for each in opener().read()]
        assert [end for _, end in found] == list(range(30))
        assert all(sum(who == i for who, _ in found) == 5 for i in range(6))


def two_entries(url: str) -> SqlStore:
    store = SqlStore(url)
    with store.transaction() as change:
        change.append(0, b"a")
        change.append(1, b"b")
    return store


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE zkt_entries SET data = 'x'",
        "UPDATE zkt_entries SET place = place + 1",
        "DELETE FROM zkt_entries",
        "DELETE FROM zkt_entries WHERE place = 1",
        "INSERT INTO zkt_entries VALUES (3, x'00')",
        "INSERT INTO zkt_entries VALUES (1, x'00')",
        "INSERT INTO zkt_entries VALUES (-1, x'00')",
        "INSERT INTO zkt_entries VALUES (2, x'')",
        "INSERT INTO zkt_entries VALUES (2, zeroblob(65537))",
        "INSERT OR REPLACE INTO zkt_entries VALUES (1, x'00')",
        "INSERT INTO zkt_entries VALUES (1, x'00') ON CONFLICT (place) DO UPDATE SET data = x'00'",
        "REPLACE INTO zkt_entries VALUES (0, x'00')",
    ],
)
def test_sqlite_refuses_to_change_the_log_by_hand(tmp_path: Path, statement: str) -> None:
    store = two_entries(f"sqlite:///{tmp_path / 'a.db'}")
    connection = sqlite3.connect(tmp_path / "a.db")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()
    assert store.read() == [b"a", b"b"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE zkt_entries SET data = 'x'",
        "DELETE FROM zkt_entries WHERE place = 1",
        "TRUNCATE zkt_entries",
        "INSERT INTO zkt_entries VALUES (3, 'x')",
        "INSERT INTO zkt_entries VALUES (-1, 'x')",
        "INSERT INTO zkt_entries VALUES (2, '')",
        "INSERT INTO zkt_entries VALUES (1, 'x') ON CONFLICT (place) DO UPDATE SET data = 'x'",
    ],
)
def test_postgresql_refuses_to_change_the_log_by_hand(server: Server, statement: str) -> None:
    import psycopg

    url = server.new_database()
    store = two_entries(url)
    with pytest.raises(psycopg.Error):
        server.run(url.partition("@/")[2].partition("?")[0], statement)
    assert store.read() == [b"a", b"b"]


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_a_database_of_stricter_isolation_serialises_as_well(server: Server, level: str) -> None:
    """A snapshot older than the lock would make every second writer fail."""
    url = server.new_database(default_transaction_isolation=level)
    SqlStore(url)

    def work() -> None:
        store = SqlStore(url)
        for _ in range(5):
            with store.transaction() as change:
                change.append(len(change.read(0)), b"x")

    threads = [Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(SqlStore(url).read()) == 20


def test_sqlite_is_tuned_for_durability(tmp_path: Path) -> None:
    with Database.of_file(tmp_path / "a.db").connected() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 60_000}


@pytest.mark.parametrize("name", ["a?b.db", "a%41.db", "a#b.db", "a b;c.db", "ä.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    SqlStore.of_file(tmp_path / name)
    assert (tmp_path / name).exists()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"no database" * 1000)
    with pytest.raises(Refused, match="not a database"):
        SqlStore.of_file(tmp_path / "a.db")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="unable to open"):
        SqlStore.of_file(tmp_path / "nowhere" / "a.db")


def test_tables_of_another_version_are_refused(tmp_path: Path) -> None:
    SqlStore.of_file(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE zkt_schema SET version = 2")
    connection.close()
    with pytest.raises(Refused, match="another version"):
        SqlStore.of_file(tmp_path / "a.db")


def test_a_gap_made_with_the_owners_rights_is_noticed(tmp_path: Path) -> None:
    store = two_entries(f"sqlite:///{tmp_path / 'a.db'}")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("DROP TRIGGER zkt_no_delete")
        connection.execute("DELETE FROM zkt_entries WHERE place = 0")
    connection.close()
    with pytest.raises(InvalidLog, match="entry 0 is missing"):
        store.read()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://anna:hunter2@localhost:1/name",
        "postgresql://anna:hunter2@localhost:1/name?connect_timeout=nonsense",
        "postgresql://anna@localhost:1/name?password=hunter2&sslpassword=hunter2",
        "postgresql://anna:hunter2@localhost:port/name",
        "postgresql://anna:hunter2@localhost:1/name?hunter2=1",
        "mysql://anna:hunter2@localhost/name",
        "oracle+hunter2://x",
        "hunter2",
        "",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro",
    ],
)
def test_no_error_tells_a_secret_of_the_url(url: str) -> None:
    with pytest.raises(Error) as caught:
        SqlStore(url)
    said = str(caught.value)
    if url.startswith(("postgres", "mysql", "oracle")) or url == "hunter2":
        assert "hunter2" not in said
    assert "\n" not in said
    assert caught.value.__cause__ is None  # a traceback shows no more


def test_a_password_is_not_shown(server: Server) -> None:
    url = server.new_database().replace("zkt@", "zkt:hunter2@")
    assert "hunter2" not in repr(SqlStore(url))


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"zktrace\[postgresql\]"):
        SqlStore("postgresql://localhost/name")
