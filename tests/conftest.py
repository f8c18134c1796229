"""What holds for all tests: patience, and keys that are the same in every run.

No test here is about time: a busy machine must not turn a slow example into a failure.

A budget of 1/100 means that one run in a hundred may name an innocent. That is what the system promises,
and what a test that says "nobody else is named" cannot bear. So the bytes that keys are drawn from follow
from the name of the test, or of the fixture, that draws them. Rates of false accusations are measured
elsewhere, over many keys. Processes that a test starts draw their own.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


class Drawn:
    """Bytes for keys, from the name of whoever draws them and how often it has drawn."""

    def __init__(self) -> None:
        self.drawers = [["import", 0]]

    @contextmanager
    def by(self, name: str) -> Iterator[None]:
        self.drawers.append([name, 0])
        try:
            yield
        finally:
            self.drawers.pop()

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        drawer = self.drawers[-1]
        drawer[1] += 1
        return hashlib.shake_256(repr(drawer).encode()).digest(32 if nbytes is None else nbytes)


DRAWN = Drawn()
secrets.token_bytes = DRAWN.token_bytes  # before the package is imported: its functions take it as a default


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    with DRAWN.by(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """A fixture that many tests share does not depend on which of them ran first."""
    owner = request.node.nodeid if fixturedef.scope == "function" else fixturedef.baseid
    with DRAWN.by(f"{owner} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)
