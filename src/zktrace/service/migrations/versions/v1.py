"""Accounts, tokens and jobs."""

from typing import Final

from alembic import op

revision: Final = "1"
down_revision: Final = None

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
    "INSERT INTO zks_schema (version) VALUES (1)",
)


def upgrade() -> None:
    """From an empty database."""
    for statement in _TABLES:
        op.execute(statement)
