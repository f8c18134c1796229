"""The service's tables from version to version: each file of `versions` goes on where the one before ended.

Alembic goes through them, and notes in a table of its own how far it is. Each is a few statements that SQLite
and PostgreSQL both understand. There is no way back but a copy of the database.
"""

from pathlib import Path
from threading import Lock
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from zktrace.errors import Refused

VERSION: Final = 2  # of the last file
BY_HAND: Final = 1  # tables of this version were made before there were migrations
_ALEMBIC: Final = Lock()  # it keeps what it works on in globals


def migrate(connection: Any, found: int) -> None:  # noqa: ANN401
    """Bring tables of version `found`, 0 if there are none, up to ours in the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        with _ALEMBIC:
            if found == BY_HAND:
                command.stamp(config, str(BY_HAND))
            command.upgrade(config, str(VERSION))
    except CommandError as error:
        raise Refused(f"the service's tables cannot be brought up ({error})") from error
    connection.exec_driver_sql(f"UPDATE zks_schema SET version = {VERSION}")
