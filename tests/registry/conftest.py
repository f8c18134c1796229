"""Places to keep a log."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from registry import postgres
from zktrace.registry.stores.contract import Store
from zktrace.registry.stores.memory import MemoryStore
from zktrace.registry.stores.sql import SqlStore

Opener = Callable[[], Store]


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    reason = postgres.missing()
    if reason is not None:
        pytest.skip(reason)
    with postgres.running() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'registry.db'}"
    server: postgres.Server = request.getfixturevalue("server")
    return server.new_database()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same, at first empty, log again and again."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        return lambda: SqlStore(f"sqlite:///{tmp_path / 'registry.db'}")
    where = request.getfixturevalue("server").new_database()
    return lambda: SqlStore(where)
