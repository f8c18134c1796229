"""A real PostgreSQL for the tests: in a temporary folder, reached by a socket in it, gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

USERS = ("postgres", "nobody")  # whom a server runs as if we are root: it refuses to be


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, if PostgreSQL is installed."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((each for each in folders if (each / "initdb").exists()), None)


def server_user() -> str | None:
    """Who may run a server here."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    known = {each.pw_name for each in pwd.getpwall()}
    return next((name for name in USERS if name in known), None)


def missing() -> str | None:
    """Why there can be no server, if so."""
    if binaries() is None:
        return "PostgreSQL is not installed (initdb and pg_ctl were not found)"
    if server_user() is None:
        return "no user to run PostgreSQL as"
    return None


@contextmanager
def running(*, durable: bool = False) -> Iterator["Server"]:
    """A server for the length of the block; a durable one waits for the disk, as a real one does."""
    folder, user, tools = Path(tempfile.mkdtemp(prefix="zkt-pg-")), server_user(), binaries()
    assert user
    assert tools
    as_user: dict[str, str] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, user)
        as_user = {"user": user}

    def call(*command: str) -> None:
        output = folder / "output"
        with output.open("ab") as handle:
            code = subprocess.run(
                command, stdout=handle, stderr=handle, check=False, cwd=folder, **as_user
            ).returncode
        assert code == 0, output.read_text()

    data = str(folder / "data")
    sync = "on" if durable else "off"
    options = (
        f"-c listen_addresses= -c fsync={sync} -c unix_socket_directories={folder} -c max_connections=60"
    )
    try:
        call(str(tools / "initdb"), "-D", data, "-U", "zkt", "-A", "trust", "--no-sync", "-E", "UTF8")
        call(str(tools / "pg_ctl"), "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield Server(folder)
        finally:
            call(str(tools / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """Makes databases."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def new_database(self, **settings: str) -> str:
        """The URL of a new, empty database."""
        name = f"t{token_hex(6)}"
        self.run("postgres", f"CREATE DATABASE {name}")
        for key, value in settings.items():
            self.run("postgres", f"ALTER DATABASE {name} SET {key} = '{value}'")
        return f"postgresql://zkt@/{name}?host={self._folder}"

    def run(self, database: str, statement: str) -> list[tuple[object, ...]]:
        """One statement, by hand."""
        import psycopg

        where = f"postgresql://zkt@/{database}?host={self._folder}"
        with psycopg.connect(where, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
