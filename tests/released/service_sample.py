"""What a version of the service kept, opened now: its dump, in the database of a copy of `light`."""

import shutil
import sqlite3
from pathlib import Path

import zktrace
from zktrace.registry.stores.sql import SqlStore
from zktrace.registry.workspace import SETTINGS

HERE = Path(__file__).parent
LIGHT, SUSPECT = HERE / "0.2.0" / "light", HERE / "0.2.0" / "suspects" / "alpha.safetensors"
PASSWORD = "correct horse battery"  # noqa: S105
DUMPS = sorted(HERE.glob("service-*.sql"))


def workspace(folder: Path, dump: Path, url: str | None = None) -> zktrace.Workspace:
    """With its log and the service's tables in the SQLite file, or in the empty PostgreSQL database `url`."""
    root = shutil.copytree(LIGHT, folder / "light")
    uploads = root / "service" / "uploads"
    uploads.mkdir(parents=True)
    shutil.copyfile(SUSPECT, uploads / "suspect")
    for each in (root, *root.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)
    statements = dump.read_text().replace("WORKSPACE", str(root))
    if url is None:
        with sqlite3.connect(root / "registry.db") as connection:
            connection.executescript(statements)
        return zktrace.Workspace.open(root)
    import psycopg

    entries = SqlStore.of_file(root / "registry.db", create=False).read()
    with SqlStore(url).transaction() as log:
        for place, data in enumerate(entries):
            log.append(place, data)
    with psycopg.connect(url) as connection:
        connection.execute(statements.encode())
    (root / SETTINGS).write_text(f'version = 1\ndatabase = "{url}"\n')
    return zktrace.Workspace.open(root)
