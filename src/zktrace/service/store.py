"""Where the service keeps what the log has no place for: accounts, sessions and jobs.

The tables stand in the registry's own database, so that several service processes share them. Nothing of it
is proof of anything: it can be lost, and the log still says what was promised and what was found.
"""

from pathlib import Path
from typing import Final

from zktrace.errors import Refused
from zktrace.registry.stores.database import Database
from zktrace.registry.workspace import Home

SCHEMA_VERSION: Final = 1
FOLDER: Final = "service"  # of the workspace: uploads, reports, copies that are fetched
_LOCK: Final = 0x7A6B742D73657201  # "zkt-ser" and a version
_TABLES: Final = (
    "CREATE TABLE zks_accounts (name TEXT PRIMARY KEY, role TEXT NOT NULL, password TEXT NOT NULL, "
    "created DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE zks_tokens (digest TEXT PRIMARY KEY, kind TEXT NOT NULL, role TEXT NOT NULL, "
    "name TEXT NOT NULL, expires DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE zks_jobs (id TEXT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, "
    "state TEXT NOT NULL, arguments TEXT NOT NULL, asked_by TEXT NOT NULL, confirmed_by TEXT, "
    "created DOUBLE PRECISION NOT NULL, changed DOUBLE PRECISION NOT NULL, share DOUBLE PRECISION NOT NULL, "
    "note TEXT NOT NULL, result TEXT NOT NULL, error TEXT, attempt INTEGER NOT NULL, "
    "deaths INTEGER NOT NULL, "
    "lease DOUBLE PRECISION NOT NULL, stopping INTEGER NOT NULL)",
    "CREATE INDEX zks_jobs_state ON zks_jobs (state, created)",
    "CREATE INDEX zks_jobs_subject ON zks_jobs (subject)",
    "CREATE TABLE zks_schema (version INTEGER NOT NULL)",
)


def prepared(home: Home) -> Database:
    """The registry's database with the service's tables in it; Refused if they are of another version."""
    home.registry.known()  # a workspace without a log has no service
    database = home.database
    with database.connected(writes=True) as connection, database.errors():
        if not database.sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if not database.has_table(connection, "zks_schema"):
            for statement in (*_TABLES, f"INSERT INTO zks_schema (version) VALUES ({SCHEMA_VERSION})"):
                connection.exec_driver_sql(statement)
    with database.reading() as found:
        versions = [each["version"] for each in found.rows("SELECT version FROM zks_schema")]
    if versions != [SCHEMA_VERSION]:
        raise Refused(
            f"{database.place}: the service's tables are of another version ({versions}), "
            f"this is {SCHEMA_VERSION}"
        )
    return database


def folder(home: Home, name: str) -> Path:
    """A folder of the service's own in the workspace, made if it is not there."""
    place = home.root / FOLDER / name
    try:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Refused(f"{place}: cannot be made ({(error.strerror or '').lower()})") from error
    return place
