"""The command as it is started: it gets ready, its workers work, and one that is killed is replaced."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from service.small import PASSWORD, House, house
from service.test_fetch import free_port
from zktrace.cli.app import run
from zktrace.errors import InputError
from zktrace.service.address import address_of
from zktrace.service.client import Service
from zktrace.service.desk import Settings
from zktrace.service.jobs import JobRow
from zktrace.service.serving import CONNECTIONS

PATIENCE = 240  # rounds of a quarter of a second, on a machine that is busy


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    return house(tmp_path_factory.mktemp("serving"))


@pytest.fixture
def serving(made: House) -> Iterator["subprocess.Popen[bytes]"]:
    with started(made, free_port()) as child:
        yield child


@contextmanager
def started(
    made: House, port: int, *options: str, trusted: ssl.SSLContext | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """The command in a process of its own, once it is ready."""
    place = ["--workspace", str(made.home.root), "--port", str(port)]
    command = [sys.executable, "-m", "zktrace", "serve", *place, *options]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    scheme = "http" if trusted is None else "https"
    try:
        until(lambda: healthy(f"{scheme}://127.0.0.1:{port}/healthz", trusted))
        yield child
    finally:
        child.terminate()
        child.wait(30)
        assert child.stdout is not None
        child.stdout.close()


def until(holds: object) -> None:
    for _ in range(PATIENCE):
        if holds():  # type: ignore[operator]
            return
        time.sleep(0.25)
    pytest.fail("it did not come to pass")


def healthy(url: str, trusted: ssl.SSLContext | None = None) -> bool:
    try:
        with urllib.request.urlopen(url, context=trusted) as answer:  # noqa: S310
            return bool(answer.read().startswith(b"ok "))
    except urllib.error.URLError:
        return False


def workers(parent: int) -> list[int]:
    """Its child processes that do jobs."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            after = (each / "stat").read_text().rpartition(")")[2].split()
            words = (each / "cmdline").read_bytes()
        except OSError:
            continue
        if int(after[1]) == parent and b"spawn_main" in words and after[0] != "Z":
            found.append(int(each.name))
    return found


def test_a_worker_that_is_killed_is_replaced_and_nothing_outlives_the_service(
    made: House, serving: "subprocess.Popen[bytes]"
) -> None:
    def done(job: JobRow) -> bool:
        return made.desk.jobs.find(job.id).state == "done"

    first = made.desk.jobs.add("dispatch", {"release": "r1", "stations": ["alpha"]}, subject="a", by="x")
    until(lambda: done(first))
    (worker,) = workers(serving.pid)
    os.kill(worker, signal.SIGKILL)
    second = made.desk.jobs.add("dispatch", {"release": "r1", "stations": ["bravo"]}, subject="b", by="x")
    until(lambda: done(second))
    (other,) = workers(serving.pid)
    assert other != worker
    serving.kill()
    serving.wait()
    until(
        lambda: (
            not Path(f"/proc/{other}").exists() or "Z" in Path(f"/proc/{other}/stat").read_text().split()[2]
        )
    )
    given = [each.station for _, each in made.home.registry.ledger().dispatches]
    assert given == ["alpha", "bravo"]


def certificate(folder: Path) -> tuple[Path, Path]:
    """One for this machine's loopback that signs for itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(loopback, critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return folder / "tls.pem", folder / "tls.key"


def test_it_speaks_tls_and_a_station_signs_in_by_it(
    made: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cert, key = certificate(tmp_path)
    trusted, port = ssl.create_default_context(cafile=cert), free_port()
    address = f"https://127.0.0.1:{port}"
    station = str(made.credentials["alpha"].save(tmp_path))
    with started(made, port, "--tls-cert", str(cert), "--tls-key", str(key), trusted=trusted):
        with urllib.request.urlopen(f"{address}/log", context=trusted) as answer:  # noqa: S310
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert run(["login", address, "--key", station, "--authority", str(cert)]) == 0
        assert f"{address}/enter/" in capsys.readouterr().out
        assert run(["login", address, "--key", station]) == 2, "nobody vouches for this certificate"
        assert "certificate" in capsys.readouterr().err
        form = urllib.parse.urlencode({"name": "an-operator", "password": PASSWORD}).encode()
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusted), Stay)
        with pytest.raises(urllib.error.HTTPError) as entered:
            opener.open(f"{address}/sign-in", form)
        entered.value.close()
        assert entered.value.code == 303
        assert "Secure" in entered.value.headers["set-cookie"]


class Stay(urllib.request.HTTPRedirectHandler):
    """Does not go where an answer sends it."""

    def redirect_request(self, *_: object) -> None:
        return None


def test_accounts_are_made_on_the_command_line(
    made: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    where = ["--workspace", str(made.home.root)]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    assert run(["operator", "add", "eve", "--auditor", "--password-stdin", *where]) == 0
    assert made.desk.accounts.signed_in("eve", PASSWORD).role == "auditor"
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["operator", "add", "eva", *where]) == 2
    assert "--password-stdin" in capsys.readouterr().err
    assert run(["operator", "list", *where]) == 0
    assert "eve  auditor" in capsys.readouterr().out
    assert run(["operator", "remove", "eve", *where]) == 0
    assert run(["operator", "remove", "eve", *where]) == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--tls-cert", "none.pem"],
        ["--tls-cert", "none.pem", "--tls-key", "none.key"],
        ["--url", "ftp://x"],
        ["--url", "http://x/path"],
        ["--url", "http://a b"],
        ["--url", "https://somebody@x"],
        ["--proxy", "not-an-ip/99"],
        ["--proxy", "10.0.0.1,"],
        ["--proxy", "10.0.0.1/8"],
        ["--proxy", "*"],
        ["--workers", "-1"],
    ],
)
def test_what_cannot_be_served_is_said_at_once(
    made: House, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    refused(made, capsys, *options)


def refused(made: House, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What the command says against its options, in one line; nothing is announced."""
    assert run(["serve", "--workspace", str(made.home.root), "--workers", "0", *options]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    return said.err


def test_an_address_that_cannot_be_had_is_named_before_anything_is_announced(
    made: House, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "address already in use" in (said := refused(made, capsys, "--port", port))
        assert f"127.0.0.1, port {port}" in said
    for host in ("no-such-host.invalid", "192.0.2.1", "x" * 70 + ".invalid"):
        assert f"error: {host}, port " in refused(made, capsys, "--host", host, "--url", "http://x")


def test_a_certificate_that_cannot_be_used_is_named(
    made: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(cert: Path, key: Path) -> str:
        return refused(made, capsys, "--tls-cert", str(cert), "--tls-key", str(key))

    (tmp_path / "other").mkdir()
    (cert, key), (_, another) = certificate(tmp_path), certificate(tmp_path / "other")
    junk, locked = tmp_path / "junk.pem", tmp_path / "locked.key"
    junk.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    secret = serialization.BestAvailableEncryption(b"secret")
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked.write_bytes(loaded.private_bytes(pem, form, secret))
    assert f"{junk}: has no certificate in PEM" in said(junk, key)
    assert f"{key}: has no certificate in PEM" in said(key, cert)
    for wrong in (junk, cert, locked):
        assert f"{wrong}: is no key in PEM" in said(cert, wrong)
    assert f"{another}: is not the key of {cert}" in said(cert, another)
    assert f"{tmp_path}: is not a regular file" in said(cert, tmp_path)
    assert f"{tmp_path / 'none'}: cannot be read" in said(tmp_path / "none", key)


def test_it_is_announced_when_it_listens_and_connections_have_a_limit(
    made: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = list[uvicorn.Config]()

    class Server:
        def __init__(self, config: uvicorn.Config) -> None:
            found.append(config)
            assert capsys.readouterr().out == ""

        def run(self, sockets: list[socket.socket]) -> None:
            with socket.create_connection(sockets[0].getsockname()):
                assert capsys.readouterr().out == f"serving {made.home.root} at https://trace.example\n"

    monkeypatch.setattr(uvicorn, "Server", Server)
    where = ["--workspace", str(made.home.root), "--port", str(free_port()), "--workers", "0"]
    options = ["--url", "https://Trace.Example:443/", "--proxy", "10.0.0.0/8, ::1"]
    assert run(["serve", *where, *options]) == 0
    (config,) = found
    assert config.limit_concurrency == CONNECTIONS
    assert config.forwarded_allow_ips == "10.0.0.0/8, ::1"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("https://Host:443", "https://host"),
        ("HTTP://host:80/", "http://host"),
        ("https://host:80", "https://host:80"),
        ("http://[2001:DB8:0::0001]:8443", "http://[2001:db8::1]:8443"),
        ("http://127.0.0.1:", "http://127.0.0.1"),
        ("http://xn--mnchen-3ya.example", "http://xn--mnchen-3ya.example"),
    ],
)
def test_an_address_is_what_every_browser_makes_of_it(given: str, found: str) -> None:
    assert address_of(given) == Settings(url=given).url == Service(url=given).url == found
    assert Settings(url=given).host == found.partition("//")[2]


@pytest.mark.parametrize(
    "given",
    [
        "", "host", "//host", "ftp://host", "http://", "http://:80", "http://a b", " http://a", "http://a\tb",
        "http://user@host", "http://user:pass@host", "http://host/path", "http://host?x", "http://host#x",
        "http://host:0", "http://host:99999", "http://host:x", "http://[::1", "http://[fe80::1%25eth0]",
        "http://-host", "http://münchen.example", "http://a_b/..", "http://a,b",
    ],
)  # fmt: skip
def test_what_no_browser_would_send_as_host_is_no_address(given: str) -> None:
    with pytest.raises(InputError, match="no address of a service"):
        Settings(url=given)


def test_a_host_is_the_same_in_capitals(made: House) -> None:
    for host, status in (("TestServer", 200), ("testserver.", 400), ("", 400)):
        assert made.client().get("/api/v1/head", headers={"host": host}).status_code == status
