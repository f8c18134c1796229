"""A log in a database: an SQLite file, or PostgreSQL by URL.

One table, one row an entry. Triggers refuse to change or remove a row and to leave a gap. They stop mistakes;
against somebody with the owner's rights and the intent, heads are published.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.engine import URL

from zktrace.errors import InvalidLog, Refused
from zktrace.registry.records import ENTRY_LIMIT
from zktrace.registry.stores.database import Database

SCHEMA_VERSION: Final = 1
_LOCK: Final = 0x7A6B742D6C6F6701  # "zkt-log" and a version: the advisory lock of a PostgreSQL database

_SQLITE: Final = (
    f"CREATE TABLE zkt_entries (place INTEGER PRIMARY KEY, data BLOB NOT NULL CHECK "
    f"(typeof(data) = 'blob' AND length(data) BETWEEN 1 AND {ENTRY_LIMIT})) STRICT",
    "CREATE TABLE zkt_schema (version INTEGER NOT NULL) STRICT",
    "CREATE TRIGGER zkt_no_update BEFORE UPDATE ON zkt_entries "
    "BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    "CREATE TRIGGER zkt_no_delete BEFORE DELETE ON zkt_entries "
    "BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END",
    "CREATE TRIGGER zkt_no_gap BEFORE INSERT ON zkt_entries "
    "WHEN NEW.place IS NOT (SELECT COALESCE(MAX(place) + 1, 0) FROM zkt_entries) "
    "BEGIN SELECT RAISE(ABORT, 'the log has no gaps'); END",
)
_POSTGRESQL: Final = (
    f"CREATE TABLE zkt_entries (place BIGINT PRIMARY KEY, data BYTEA NOT NULL CHECK "
    f"(length(data) BETWEEN 1 AND {ENTRY_LIMIT}))",
    "CREATE TABLE zkt_schema (version INTEGER NOT NULL)",
    "CREATE FUNCTION zkt_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the log is append-only'; END $$",
    "CREATE FUNCTION zkt_next() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN IF NEW.place IS DISTINCT FROM (SELECT COALESCE(MAX(place) + 1, 0) FROM zkt_entries) "
    "THEN RAISE EXCEPTION 'the log has no gaps'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER zkt_no_change BEFORE UPDATE OR DELETE ON zkt_entries "
    "FOR EACH ROW EXECUTE FUNCTION zkt_refuse()",
    "CREATE TRIGGER zkt_no_truncate BEFORE TRUNCATE ON zkt_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION zkt_refuse()",
    "CREATE TRIGGER zkt_no_gap BEFORE INSERT ON zkt_entries FOR EACH ROW EXECUTE FUNCTION zkt_next()",
)


class SqlStore:
    """The log of a database. No connection is kept between calls.

    With `create` the tables are made if they are not there; without it, a database that has none is
    refused: a registry that was lost must not be taken for an empty one.
    """

    def __init__(self, url: str | URL | Database, *, create: bool = True) -> None:
        self._database = url if isinstance(url, Database) else Database(url)
        if create:
            self._prepare()
        self._check()

    @classmethod
    def of_file(cls, path: Path, *, create: bool = True) -> Self:
        """The log of an SQLite file, whatever characters its name has."""
        return cls(Database.of_file(path), create=create)

    def __repr__(self) -> str:
        return f"<SqlStore {self._database.place}>"

    def read(self, start: int = 0) -> list[bytes]:
        """The entries from place `start` on."""
        with self._database.connected() as connection:
            return _read(connection, start)

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        with self._database.connected() as connection:
            return _pick(connection, places)

    @contextmanager
    def transaction(self) -> Iterator["_SqlTransaction"]:
        """A block with sole access."""
        with self._exclusive() as connection:
            yield _SqlTransaction(connection)

    @contextmanager
    def _exclusive(self) -> Iterator[Connection]:
        with self._database.connected(writes=True) as connection:
            if not self._database.sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection

    def _prepare(self) -> None:
        """Make the tables, once, in a file for its owner alone."""
        self._database.make_file()
        with self._exclusive() as connection:
            if self._has_tables(connection):
                return
            for statement in _SQLITE if self._database.sqlite else _POSTGRESQL:
                connection.exec_driver_sql(statement)
            version = {"version": SCHEMA_VERSION}
            connection.execute(text("INSERT INTO zkt_schema (version) VALUES (:version)"), version)

    def _check(self) -> None:
        """Refused unless the tables are there and of this version."""
        place = self._database.place
        if self._database.sqlite and not Path(place).is_file():
            raise Refused(f"{place}: the database is not there")
        with self._database.connected() as connection:
            if not self._has_tables(connection):
                raise Refused(f"{place}: the database holds no registry")
            found = connection.execute(text("SELECT version FROM zkt_schema")).scalars().all()
        if found != [SCHEMA_VERSION]:
            raise Refused(f"{place}: tables of another version ({found}), this is {SCHEMA_VERSION}")

    def _has_tables(self, connection: Connection) -> bool:
        return self._database.has_table(connection, "zkt_schema")


class _SqlTransaction:
    """Sole access to the table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, start: int) -> list[bytes]:
        """The entries from place `start` on."""
        return _read(self._connection, start)

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        return _pick(self._connection, places)

    def append(self, place: int, data: bytes) -> None:
        """Put an entry at the end, which must be `place`."""
        self._connection.execute(
            text("INSERT INTO zkt_entries (place, data) VALUES (:place, :data)"),
            {"place": place, "data": data},
        )


def _read(connection: Connection, start: int) -> list[bytes]:
    rows = connection.execute(
        text("SELECT place, data FROM zkt_entries WHERE place >= :start ORDER BY place"), {"start": start}
    ).all()
    for wanted, (place, _) in enumerate(rows, start):
        if place != wanted:
            raise InvalidLog(f"entry {wanted} is missing, the table goes on with {place}")
    return [bytes(data) for _, data in rows]


def _pick(connection: Connection, places: Sequence[int]) -> list[bytes]:
    query = text("SELECT data FROM zkt_entries WHERE place IN :places ORDER BY place")
    found = connection.execute(
        query.bindparams(bindparam("places", expanding=True)), {"places": list(places)}
    )
    return [bytes(data) for data in found.scalars()]
