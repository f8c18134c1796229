"""A log in a database: an SQLite file, or PostgreSQL by URL.

One table, one row an entry. Triggers refuse to change or remove a row and to leave a gap. They stop mistakes;
against somebody with the owner's rights and the intent, heads are published.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import Connection, Engine, bindparam, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from zktrace.errors import InputError, InvalidLog, MissingExtra, Refused
from zktrace.primitives.text import one_line
from zktrace.registry.records import ENTRY_LIMIT

SCHEMA_VERSION: Final = 1
WAIT_SECONDS: Final = 60  # for the lock
_LOCK: Final = 0x7A6B742D6C6F6701  # "zkt-log" and a version: the advisory lock of a PostgreSQL database
_WRITES: Final = "zkt_writes"
_DRIVERS: Final = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}

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

    def __init__(self, url: str | URL, *, create: bool = True) -> None:
        self._url = _parsed(url)
        self._sqlite = self._url.get_backend_name() == "sqlite"
        self._place = str(self._url.database) if self._sqlite else _public(self._url)
        with self._errors():
            self._engine = self._make_engine()
        if create:
            self._prepare()
        self._check()

    @classmethod
    def of_file(cls, path: Path, *, create: bool = True) -> Self:
        """The log of an SQLite file, whatever characters its name has."""
        return cls(URL.create("sqlite", database=str(path)), create=create)

    def __repr__(self) -> str:
        return f"<SqlStore {self._place}>"

    def read(self, start: int = 0) -> list[bytes]:
        """The entries from place `start` on."""
        with self._errors(), self._engine.connect() as connection, connection.begin():
            return _read(connection, start)

    def pick(self, places: Sequence[int]) -> list[bytes]:
        """The entries at these places, in the order of the log; what is not there is left out."""
        with self._errors(), self._engine.connect() as connection, connection.begin():
            return _pick(connection, places)

    @contextmanager
    def transaction(self) -> Iterator["_SqlTransaction"]:
        """A block with sole access."""
        with self._errors(), self._exclusive() as connection:
            yield _SqlTransaction(connection)

    @contextmanager
    def _exclusive(self) -> Iterator[Connection]:
        with self._engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
            if not self._sqlite:
                connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'"))
                connection.execute(text("SET LOCAL synchronous_commit = on"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection

    def _make_engine(self) -> Engine:
        if not self._sqlite:
            # a later snapshot than the lock's own is needed: each statement takes a new one
            return create_engine(
                self._url, poolclass=NullPool, hide_parameters=True, isolation_level="READ COMMITTED"
            )
        engine = create_engine(self._url, poolclass=NullPool, hide_parameters=True)
        event.listen(engine, "connect", _tune_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine

    def _prepare(self) -> None:
        """Make the tables, once, in a file for its owner alone."""
        if self._sqlite:
            with suppress(OSError):  # SQLite says what is wrong
                os.close(os.open(self._place, os.O_RDWR | os.O_CREAT, 0o600))
        with self._errors(), self._exclusive() as connection:
            if self._has_tables(connection):
                return
            for statement in _SQLITE if self._sqlite else _POSTGRESQL:
                connection.exec_driver_sql(statement)
            version = {"version": SCHEMA_VERSION}
            connection.execute(text("INSERT INTO zkt_schema (version) VALUES (:version)"), version)

    def _check(self) -> None:
        """Refused unless the tables are there and of this version."""
        if self._sqlite and not Path(self._place).is_file():
            raise Refused(f"{self._place}: the database is not there")
        with self._errors(), self._engine.connect() as connection, connection.begin():
            if not self._has_tables(connection):
                raise Refused(f"{self._place}: the database holds no registry")
            found = connection.execute(text("SELECT version FROM zkt_schema")).scalars().all()
        if found != [SCHEMA_VERSION]:
            raise Refused(f"{self._place}: tables of another version ({found}), this is {SCHEMA_VERSION}")

    def _has_tables(self, connection: Connection) -> bool:
        query = (
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'zkt_schema'"
            if self._sqlite
            else "SELECT count(to_regclass('zkt_schema'))"
        )
        return bool(connection.execute(text(query)).scalar())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What a database says, in one line of ours and without the URL's secrets."""
        try:
            yield
        except ModuleNotFoundError as error:
            raise MissingExtra.of(error) or error from None
        except SQLAlchemyError as error:
            said = str(error.orig if isinstance(error, DBAPIError) else error)
            first = next(iter(said.strip().splitlines()), type(error).__name__)
            raise Refused(f"{self._place}: {one_line(_scrubbed(first, self._url), limit=300)}") from None


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


def _tune_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401
    """A new connection: our transactions, not the driver's; a commit outlives a power cut."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {WAIT_SECONDS * 1000}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "trusted_schema = OFF",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes the lock before it reads."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _parsed(url: str | URL) -> URL:
    """The URL with its driver, or InputError that does not repeat it: it may hold a password."""
    try:
        found = make_url(url)
    except (SQLAlchemyError, ValueError):
        raise InputError("the database's URL cannot be read: sqlite:///FILE or postgresql://...") from None
    driver = _DRIVERS.get(found.drivername)
    if driver is None:
        raise InputError("the database must be sqlite:///FILE or postgresql://USER@HOST/NAME")
    if driver == "sqlite" and (found.query or found.database in (None, "", ":memory:")):
        raise InputError("an SQLite database is sqlite:///FILE, without options")
    return found.set(drivername=driver)


def _public(url: URL) -> str:
    """Which database, without user, password and options."""
    return f"postgresql://{url.host or 'local'}/{url.database or ''}"


def _scrubbed(message: str, url: URL) -> str:
    """The message without any secret of the URL."""
    values = [url.password, *(value for key, value in url.query.items() if "pass" in key.lower())]
    for value in values:
        for each in (value,) if isinstance(value, str) else value or ():
            message = message.replace(str(each), "***") if each else message
    return message
