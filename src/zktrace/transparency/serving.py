"""A witness over HTTP: `POST /add-checkpoint`, as c2sp.org/tlog-witness has it, on the standard library.

Bounded in all that a stranger decides: size of a body, time of a connection, connections at a time. It speaks
plain HTTP and is meant for loopback; whoever wants it on a network puts a proxy with TLS before it.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from typing import Any, Final

from zktrace.errors import Error, Refused
from zktrace.transparency.request import PATH, REQUEST_LIMIT, Answer
from zktrace.transparency.witness import Witness

PATIENCE: Final = 10.0  # seconds that a connection may be silent
LIFETIME: Final = 60.0  # seconds that it lasts, however busy it is
CONNECTIONS: Final = 32  # at a time; further ones wait in the listening queue
_DIGITS: Final = 9  # of a length


class _Handler(BaseHTTPRequestHandler):
    """One connection; `server` is a `WitnessServer`."""

    protocol_version = "HTTP/1.1"  # connections are kept
    server_version = "zktrace-witness"
    sys_version = ""
    timeout = PATIENCE
    server: "WitnessServer"

    def do_POST(self) -> None:
        """The one call."""
        if self.path != PATH:
            self._say(Answer(status=404, body="there is /add-checkpoint and nothing else\n"), last=True)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > _DIGITS:
            self._say(Answer(status=411, body="a request says how long it is\n"), last=True)
        elif int(length) > REQUEST_LIMIT:
            self._say(Answer(status=413, body=f"at most {REQUEST_LIMIT} bytes are read\n"), last=True)
        else:
            self._answer(self.rfile.read(int(length)), int(length))

    def do_GET(self) -> None:
        """There is nothing to read here."""
        self._say(Answer(status=405, body="POST /add-checkpoint\n"), last=True)

    def _answer(self, body: bytes, length: int) -> None:
        if len(body) != length:
            self.close_connection = True
            return
        try:
            answer = self.server.witness.answer(body)
        except Error as error:  # of the folder, not of the request
            self.server.complain(str(error))
            answer = Answer(status=500, body="the witness cannot keep what it saw\n")
        self._say(answer)

    def _say(self, answer: Answer, *, last: bool = False) -> None:
        data = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(data)))
        if last:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401
        """Nothing: a stranger does not write our log."""


class WitnessServer(ThreadingHTTPServer):
    """Listens for a witness."""

    daemon_threads = True
    lifetime = LIFETIME
    allow_reuse_address = True

    def __init__(self, witness: Witness, *, host: str, port: int) -> None:
        self.witness = witness
        self.complaints: list[str] = []
        self._room = BoundedSemaphore(CONNECTIONS)
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise Refused(f"{host}:{port}: cannot listen there ({error})") from None

    @property
    def url(self) -> str:
        """Where it is reached."""
        host, port = self.server_address[0], self.server_address[1]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def complain(self, what: str) -> None:
        """Remember what went wrong here; the last few are kept."""
        self.complaints = [*self.complaints[-9:], what]

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Wait for room before a thread is started."""
        self._room.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """One connection to its end, which comes in time."""
        end = Timer(self.lifetime, _cut, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """A connection that broke is the other side's affair."""


def _cut(connection: socket.socket) -> None:
    """End a connection that another thread is reading."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def listening(witness: Witness, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[WitnessServer]:
    """A server that has the witness's folder to itself; `serve_forever` answers."""
    with witness.alone(), WitnessServer(witness, host=host, port=port) as server:
        yield server
