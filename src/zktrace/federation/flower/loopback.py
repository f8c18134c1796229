"""A SuperLink and its SuperNodes on this machine, as in a real deployment: own processes, TLS, node keys.

For a trial of what will run on several machines, whichever Flower app it is, and for the tests. Certificates
and node keys are made for the occasion. Flower starts helpers of its own, some in sessions of their own:
every process inherits a mark in its environment, by which the last of them is found and ended.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

from zktrace.errors import FederationFailed
from zktrace.federation.flower.runfile import RunFile
from zktrace.federation.flower.superlink import FlowerClient, SuperLink, flower_environment
from zktrace.federation.spec import RunSpec
from zktrace.primitives.files import write_atomic

_HOST: Final = "127.0.0.1"
_HOME: Final = "home"
_MARK: Final = "ZKTRACE_LOOPBACK"
_START_LIMIT: Final = 60.0
_STOP_LIMIT: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is up: the SuperLink, its SuperNodes, and the keys they are registered with."""

    superlink: SuperLink
    keys: tuple[str, ...]  # lines of OpenSSH, in the order of the nodes
    link: "Process"
    nodes: tuple["Process", ...]
    client: FlowerClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Loopback:
    """A federation of this package that is up, and its run file with the nodes' keys."""

    deployment: Deployment
    found: RunFile

    @property
    def superlink(self) -> SuperLink:
        """Where it is reached."""
        return self.deployment.superlink


class Process:
    """A Flower process with whatever it starts. It runs in the folder of its log."""

    def __init__(self, program: str, arguments: Sequence[str], *, home: Path, log: Path) -> None:
        self._mark = secrets.token_hex(16)
        environment = flower_environment(home) | {_MARK: self._mark}
        command = [str(Path(sys.executable).parent / program), *arguments]
        with log.open("wb") as output:
            self._child = subprocess.Popen(  # noqa: S603
                command,
                env=environment,
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._log = log

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def check(self) -> None:
        """Raise if it has ended, with the end of what it said."""
        if not self.running():
            tail = " ".join(self._log.read_text(errors="replace").split())[-400:]
            raise FederationFailed(f"{self._log.stem} ended with code {self._child.returncode}: {tail}")

    def family(self) -> dict[int, str]:
        """Its processes and their command lines, by process id (Linux)."""
        wanted = f"{_MARK}={self._mark}".encode()
        found: dict[int, str] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def kill(self) -> None:
        """End it and all it started, at once and without a farewell."""
        self._child.kill()
        self._child.wait()
        for _ in range(50):
            left = self.family()
            if not left:
                return
            for number in left:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(0.1)

    def stop(self) -> None:
        """Ask it to end, then make sure."""
        if self.running():
            self._child.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(_STOP_LIMIT)
        self.kill()


@contextmanager
def deployment(folder: Path, configs: Sequence[Mapping[str, str | int]]) -> Iterator[Deployment]:
    """A SuperLink and a SuperNode for each configuration of a node; all is gone when the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    make_certificates(folder)
    names = [f"node{number:03d}" for number in range(len(configs))]
    keys = tuple(make_node_key(folder / name) for name in names)
    ports = free_ports(1 + len(names))
    address = SuperLink(address=f"{_HOST}:{ports[0]}", root_certificates=folder / "ca.crt")
    started: list[Process] = []
    try:
        started.append(_superlink(folder, ports[0]))
        _wait_for(started[0], ports[0])
        client = FlowerClient(address, folder / _HOME)
        for name in names:
            client.register(folder / f"{name}.pub")
        for name, config, port in zip(names, configs, ports[1:], strict=True):
            started.append(_supernode(folder, address, name, config, port))
        link, *nodes = started
        yield Deployment(superlink=address, keys=keys, link=link, nodes=tuple(nodes), client=client)
    except BaseException:
        for process in reversed(started):
            process.kill()
        raise
    for process in reversed(started):
        process.stop()


@contextmanager
def loopback(spec: RunSpec, folder: Path) -> Iterator[Loopback]:
    """The deployment of a federation of this package; a node reads its run file when it is first asked."""
    path = folder / "run.json"
    given = {"run-file": path, "cifar10": spec.cifar10, "cache": spec.cache}
    paths = {key: str(place.resolve()) for key, place in given.items() if place is not None}
    stations = range(spec.preset.federation.clients)
    configs: list[dict[str, str | int]] = [{"station": station, **paths} for station in stations]
    with deployment(folder, configs) as up:
        found = RunFile(spec=spec, nodes=up.keys)
        write_atomic(path, found.to_bytes(), replace=True)
        yield Loopback(deployment=up, found=found)


def _superlink(folder: Path, port: int) -> Process:
    tls = {"ca-certfile": "ca.crt", "certfile": "server.crt", "keyfile": "server.key"}
    arguments = [word for key, name in tls.items() for word in (f"--ssl-{key}", str(folder / name))]
    arguments += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
    arguments += ["--host", _HOST, "--port", str(port)]
    return Process("flower-superlink", arguments, home=folder / _HOME, log=folder / "superlink.log")


def _supernode(
    folder: Path, superlink: SuperLink, name: str, config: Mapping[str, str | int], port: int
) -> Process:
    arguments = ["--root-certificates", str(superlink.root_certificates), "--superlink", superlink.address]
    arguments += ["--auth-supernode-private-key", str(folder / name)]
    if config:
        values = " ".join(f"{key}={json.dumps(value)}" for key, value in config.items())
        arguments += ["--node-config", values]
    arguments += ["--host", _HOST, "--port", str(port)]
    return Process("flower-supernode", arguments, home=folder / _HOME, log=folder / f"{name}.log")


def _wait_for(process: Process, port: int) -> None:
    deadline = time.monotonic() + _START_LIMIT
    while time.monotonic() < deadline:
        process.check()
        with suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
            return
        time.sleep(0.2)
    raise FederationFailed(f"the SuperLink does not listen after {_START_LIMIT:g} s")


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    held = [socket.socket() for _ in range(count)]
    try:
        for each in held:
            each.bind((_HOST, 0))
        return [int(each.getsockname()[1]) for each in held]
    finally:
        for each in held:
            each.close()


def make_certificates(folder: Path) -> None:
    """A CA of one day (ca.crt) and a certificate for loopback by it (server.crt, server.key)."""
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "zktrace loopback")])
    root = (
        _certificate(name, name, authority.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA384())
    )
    host = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    alternatives = [x509.IPAddress(ip_address(_HOST)), x509.DNSName("localhost")]
    leaf = (
        _certificate(host, name, server.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
        )
        .sign(authority, hashes.SHA384())
    )
    write_atomic(folder / "ca.crt", root.public_bytes(Encoding.PEM), replace=True)
    write_atomic(folder / "server.crt", leaf.public_bytes(Encoding.PEM), replace=True)
    private = server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_atomic(folder / "server.key", private, secret=True, replace=True)


def _certificate(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
    )


def make_node_key(path: Path) -> str:
    """A node's key pair as ssh-keygen would make it (`path`, `path`.pub); its public line."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    write_atomic(path, private, secret=True, replace=True)
    write_atomic(path.with_name(path.name + ".pub"), f"{public}\n".encode(), replace=True)
    return public
