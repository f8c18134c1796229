"""A running service: uvicorn in this process, workers in others; all end together."""

import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import uvicorn

from zktrace.errors import InputError, Refused
from zktrace.front.workspace import Workspace
from zktrace.primitives.files import open_regular
from zktrace.service.address import PORTS
from zktrace.service.app import make_app
from zktrace.service.desk import FrontDesk, Settings
from zktrace.service.store import folder
from zktrace.service.uploads import sweep
from zktrace.service.worker import Crew

CONNECTIONS: Final = 1000  # more are told to come back
PEM_LIMIT: Final = 1 << 20  # bytes
_BACKLOG: Final = 2048
_ABSENT: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # one of the addresses of a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a service listens."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None  # addresses or networks of proxies whose word for a visitor's address is taken

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS takes a certificate and its key: --tls-cert and --tls-key, or neither")
        if self.certificate is not None and self.key is not None:
            check_chain(self.certificate, self.key)
        if self.proxy is not None:
            check_proxies(self.proxy)

    @property
    def url(self) -> str:
        """The address, unless visitors know another."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}" + ("" if self.port == PORTS[scheme] else f":{self.port}")

    @contextmanager
    def opened(self) -> Iterator[list[socket.socket]]:
        """What listens there, for the block; Refused if the address cannot be had."""
        place = f"{self.host}, port {self.port}"
        with ExitStack() as stack:
            try:
                found = [stack.enter_context(each) for each in _sockets(self.host, self.port)]
            except (OSError, UnicodeError) as error:
                reason = getattr(error, "strerror", None) or "not a name of a machine"
                raise Refused(f"{place}: cannot be listened on ({reason.lower()})") from None
            yield found


def _sockets(host: str, port: int) -> Iterator[socket.socket]:
    """One for each address of a host; the first reason if there is none."""
    known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    absent = list[OSError]()
    for family, kind, protocol, _, address in dict.fromkeys(known):
        try:
            made = _socket(family, kind, protocol, address)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
            absent.append(error)
        else:
            yield made
    if len(absent) == len(set(known)):
        raise absent[0]


def _socket(family: int, kind: int, protocol: int, address: Any) -> socket.socket:  # noqa: ANN401
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(_BACKLOG)  # from here on nobody else can have it
    except BaseException:
        made.close()
        raise
    return made


def check_chain(certificate: Path, key: Path) -> None:
    """InputError unless these are a certificate chain and its key, in PEM and without a password."""
    for path in (certificate, key):
        os.close(open_regular(path, limit=PEM_LIMIT))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(certificate)
    except ssl.SSLError:
        raise InputError(f"{certificate}: has no certificate in PEM") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InputError(f"{key}: is not the key of {certificate}") from None
        reason = (error.reason or "unknown reason").replace("_", " ").lower()
        raise InputError(
            f"{key}: is no key in PEM, without a password, for {certificate} ({reason})"
        ) from None


def check_proxies(given: str) -> None:
    """InputError unless these are IP addresses or networks, with commas between them."""
    for each in given.split(","):
        try:
            ip_network(each.strip())
        except ValueError:
            raise InputError(f"--proxy {given!r}: {each.strip()!r} is no IP address and no network") from None


def serve(
    home: Workspace,
    listening: Listening,
    settings: Settings,
    sockets: Sequence[socket.socket],
    *,
    workers: int,
    ready: Callable[[], None],
) -> None:
    """Serve until the process is asked to end. `ready` is called when nothing more can be in the way."""
    if workers < 0:
        raise InputError(f"{workers} workers: none is the least")
    app = make_app(home, settings)
    desk: FrontDesk = app.state.desk
    sweep(folder(home, "uploads"), desk.jobs.files())
    sweep(folder(home, "judged"), ())
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
            proxy_headers=listening.proxy is not None,
            forwarded_allow_ips=listening.proxy,
            server_header=False,
            ws="none",
            access_log=False,  # it would keep who asked for what
            log_level="warning",
            limit_concurrency=CONNECTIONS,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=5,
        )
    )
    crew = Crew(home.root, workers)
    crew.start()
    try:
        ready()
        with suppress(KeyboardInterrupt):  # by then its requests have ended
            server.run(list(sockets))
    finally:
        crew.stop()
        home.database.close()
