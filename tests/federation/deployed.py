"""What tests of a real deployment have in common."""

import socket
import time

import pytest

from zktrace.federation.flower.loopback import Deployment


def gone(deployment: Deployment) -> None:
    """No process is left, and the port is closed."""
    assert not any(process.family() for process in (deployment.link, *deployment.nodes))
    port = int(deployment.superlink.address.rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def all_online(deployment: Deployment, *, limit: float = 120.0) -> None:
    """Wait until every node is connected."""
    deadline = time.monotonic() + limit
    while deployment.client.online() < len(deployment.nodes):
        assert time.monotonic() < deadline
        time.sleep(1)


def ended(deployment: Deployment, run: int, *, limit: float = 600.0) -> str:
    """How a run ended."""
    deadline = time.monotonic() + limit
    while not (status := deployment.client.status(run)).startswith("finished"):
        assert time.monotonic() < deadline, status
        time.sleep(2)
    return status
