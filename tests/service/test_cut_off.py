"""A download whose connection is cut again and again: it goes on where it was, to the right digest."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.small import house, served
from service.test_fetch import free_port, recorded, running
from zktrace.errors import ServiceFailed
from zktrace.models import model_digest, open_model
from zktrace.service import client
from zktrace.service.client import Service

PIECE = 1 << 12


class Cutting:
    """A proxy on this machine that closes a connection after so many bytes of an answer."""

    def __init__(self, port: int, target: int, limit: int) -> None:
        self._target, self.limit = target, limit
        self.cut = 0  # connections that were
        self._listening = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> "Cutting":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                visitor, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(visitor,), daemon=True).start()

    def _pass_on(self, visitor: socket.socket) -> None:
        with visitor, socket.create_connection(("127.0.0.1", self._target)) as service:
            threading.Thread(target=self._ask, args=(visitor, service), daemon=True).start()
            left = self.limit
            with contextlib.suppress(OSError):
                while piece := service.recv(min(PIECE, left)):
                    visitor.sendall(piece)
                    left -= len(piece)
                    if not left:
                        self.cut += 1
                        break
            for each in (visitor, service):  # whoever still reads from it is told
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _ask(self, visitor: socket.socket, service: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := visitor.recv(PIECE):
                service.sendall(piece)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[tuple[Cutting, Service, bytes]]:
    """The proxy, a station that knows the service by it, and the digest of its copy."""
    made, port, door = house(tmp_path), free_port(), free_port()
    made.home.dispatch("alpha", "r1")
    url = f"http://127.0.0.1:{door}"
    served_there = served(made.home, made.credentials, url=url)
    with running(served_there, port), Cutting(door, port, 9_000) as cutting:
        yield cutting, Service.signed_in(url, made.credentials["alpha"]), recorded(made, "alpha")


def test_a_download_that_is_cut_goes_on_to_the_right_digest(
    proxy: tuple[Cutting, Service, bytes], tmp_path: Path
) -> None:
    cutting, service, digest = proxy
    path = tmp_path / "copy.safetensors"
    assert service.fetch("r1", path) == digest == model_digest(open_model(path))
    assert cutting.cut >= path.stat().st_size // 9_000 > 1
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("copy")] == [path.name]


def test_a_download_that_never_comes_is_given_up_and_the_next_goes_on(
    proxy: tuple[Cutting, Service, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutting, service, digest = proxy
    path, part = tmp_path / "copy.safetensors", tmp_path / "copy.safetensors.part"
    monkeypatch.setattr(client, "_WAIT", 0.01)
    keep = service._keep

    def after_some(*given: Any) -> None:
        if part.stat().st_size > 10_000:
            raise ConnectionResetError("cut")
        keep(*given)

    with monkeypatch.context() as patched:
        patched.setattr(Service, "_keep", lambda _, *given: after_some(*given))
        with pytest.raises(ServiceFailed, match="the same command goes on there"):
            service.fetch("r1", path)
    assert part.stat().st_size > 10_000
    cutting.limit = 1 << 30
    assert service.fetch("r1", path) == digest
    assert not part.exists()
