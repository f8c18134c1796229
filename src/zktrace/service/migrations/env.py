"""What Alembic runs for every command: it works in the transaction that it is given, and commits nothing."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], version_table="zks_migrations")
context.run_migrations()
