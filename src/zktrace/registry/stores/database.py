"""A database: an SQLite file, or PostgreSQL by URL. Whatever it says comes out as one of our errors.

Nobody outside of this folder imports a database library: others are handed a `Database`, and run statements
of the SQL that both understand.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import Connection, CursorResult, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool, QueuePool

from zktrace.errors import InputError, MissingExtra, Refused, Unavailable
from zktrace.primitives.text import one_line

WAIT_SECONDS: Final = 60  # for the lock
_KEPT: Final = 16  # connections, and as many more in a rush
_WRITES: Final = "zkt_writes"
_AWAY: Final = (OperationalError, InterfaceError, PoolTimeout)  # what another attempt may do away with
_DRIVERS: Final = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


class Statements:
    """One transaction: statements with named values."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, **values: object) -> list[dict[str, Any]]:
        """What a statement finds, or gives back of what it changed."""
        return [dict(each) for each in self._done(statement, values).mappings()]

    def run(self, statement: str, **values: object) -> int:
        """How many rows a statement changed."""
        return self._done(statement, values).rowcount

    def _done(self, statement: str, values: Mapping[str, object]) -> CursorResult[Any]:
        """On every database alike: one of them takes text with a NUL in it, the other does not."""
        if any(isinstance(each, str) and "\0" in each for each in values.values()):
            raise InputError("a text with a NUL in it, which no database keeps")
        return self._connection.execute(text(statement), values)


class Database:
    """Transactions in one database. No connection is kept between them, unless a server wants it so."""

    def __init__(self, url: str | URL) -> None:
        self._url = _parsed(url)
        self.sqlite = self._url.get_backend_name() == "sqlite"
        self.place = str(self._url.database) if self.sqlite else _public(self._url)
        with self.errors():
            self._engine = self._make_engine()

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """An SQLite file, whatever characters its name has."""
        return cls(URL.create("sqlite", database=str(path)))

    def keep_connections(self) -> None:
        """Have some at hand, for a process that is asked all the time.

        Those to PostgreSQL, that is: it starts a process for each. An SQLite file is opened as it stands at
        the moment, as a backup may have taken its place. One that the server has closed is made anew.
        """
        if not self.sqlite:
            self._engine = self._make_engine(
                poolclass=QueuePool,
                pool_size=_KEPT,
                max_overflow=_KEPT,
                pool_timeout=WAIT_SECONDS,
                pool_pre_ping=True,
            )

    def close(self) -> None:
        """Let go of the connections at hand."""
        self._engine.dispose()

    def make_file(self) -> None:
        """The file of an SQLite database, for its owner alone, if it is not there."""
        if self.sqlite:
            with suppress(OSError):  # SQLite says what is wrong
                os.close(os.open(self.place, os.O_RDWR | os.O_CREAT, 0o600))

    @contextmanager
    def connected(self, *, writes: bool = False) -> Iterator[Connection]:
        """A connection in a transaction; in SQLite one that writes is alone from its first statement on.

        In PostgreSQL every statement sees what is there when it begins, in a transaction or not: what only
        reads goes without, and is not sent three times to and fro.
        """
        alone = writes or self.sqlite
        options = {_WRITES: writes} if alone else {_WRITES: writes, "isolation_level": "AUTOCOMMIT"}
        with self.errors():
            connection = self._engine.connect().execution_options(**options)
            with connection, connection.begin():
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Statements]:
        """A block of statements that change nothing."""
        with self.connected() as connection:
            yield Statements(connection)

    @contextmanager
    def writing(self) -> Iterator[Statements]:
        """A block of statements that are all done, durably, when it ends well, and else none of them is."""
        with self.connected(writes=True) as connection:
            yield Statements(connection)

    @property
    def now(self) -> str:
        """The database's own clock in seconds, as an expression: many machines have many clocks."""
        return (
            "((julianday('now') - 2440587.5) * 86400.0)"
            if self.sqlite
            else "CAST(extract(epoch from clock_timestamp()) AS double precision)"
        )

    def has_table(self, connection: Connection, name: str) -> bool:
        """Whether a table is there."""
        query = (
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name"
            if self.sqlite
            else "SELECT count(to_regclass(:name))"
        )
        return bool(connection.execute(text(query), {"name": name}).scalar())

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What a database says, in one line of ours and without the URL's secrets."""
        try:
            yield
        except ModuleNotFoundError as error:
            raise MissingExtra.of(error) or error from None
        except SQLAlchemyError as error:
            said = str(error.orig if isinstance(error, DBAPIError) else error)
            first = next(iter(said.strip().splitlines()), type(error).__name__)
            kind = Unavailable if isinstance(error, _AWAY) else Refused
            raise kind(f"{self.place}: {one_line(_scrubbed(first, self._url), limit=300)}") from None

    def _make_engine(self, **pool: Any) -> Engine:  # noqa: ANN401
        if not self.sqlite:
            # a later snapshot than the lock's own is needed: each statement takes a new one
            engine = create_engine(
                self._url,
                hide_parameters=True,
                isolation_level="READ COMMITTED",
                **(pool or {"poolclass": NullPool}),
            )
            event.listen(engine, "connect", _tune_postgresql)
            return engine
        engine = create_engine(self._url, poolclass=NullPool, hide_parameters=True)
        event.listen(engine, "connect", _tune_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine


def _tune_postgresql(connection: Any, _: object) -> None:  # noqa: ANN401
    """A new connection: a commit outlives a power cut, whatever the server is set to."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{WAIT_SECONDS}s'")
        cursor.execute("SET synchronous_commit = on")
    connection.commit()


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
