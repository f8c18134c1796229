"""Where the service keeps what the log has no place for: accounts, sessions and jobs.

The tables stand in the registry's own database, so that several service processes share them. Nothing of it
is proof of anything: it can be lost, and the log still says what was promised and what was found.
"""

from pathlib import Path
from typing import Any, Final

from zktrace.errors import Refused
from zktrace.registry.stores.database import Database, Statements
from zktrace.registry.workspace import Home
from zktrace.service.migrations import VERSION, migrate

FOLDER: Final = "service"  # of the workspace: uploads, reports, copies that are fetched
_LOCK: Final = 0x7A6B742D73657201  # "zkt-ser" and the first version: the same for all that come after it


def prepared(home: Home) -> Database:
    """The registry's database with the service's tables in it, brought up to our version."""
    home.registry.known()  # a workspace without a log has no service
    return brought_up(home.database)


def brought_up(database: Database) -> Database:
    """The same database with the tables of our version; Refused if they are of a later one.

    All of it is one transaction under a lock: of processes that start together one does it, and one that is
    killed in the middle leaves the tables as they were.
    """
    with database.connected() as connection:
        done = _version(database, connection) == VERSION
    if not done:
        with database.connected(writes=True) as connection:
            if not database.sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            found = _version(database, connection)  # somebody may have been faster
            if found < VERSION:
                migrate(connection, found)
    return database


def _version(database: Database, connection: Any) -> int:  # noqa: ANN401
    """Of the tables that are there; 0 if there are none."""
    if not database.has_table(connection, "zks_schema"):
        return 0
    rows = Statements(connection).rows("SELECT version FROM zks_schema")
    found = rows[0]["version"] if len(rows) == 1 else None
    if found is None or found < 1:
        raise Refused(f"{database.place}: the service's tables do not say of which version they are")
    if found > VERSION:
        raise Refused(
            f"{database.place}: the service's tables are of version {found}, which a later zktrace made; "
            f"this one knows them up to version {VERSION}"
        )
    return int(found)


def folder(home: Home, name: str) -> Path:
    """A folder of the service's own in the workspace, made if it is not there."""
    place = home.root / FOLDER / name
    try:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Refused(f"{place}: cannot be made ({(error.strerror or '').lower()})") from error
    return place
