"""The command as it is started: it gets ready, its workers work, and one that is killed is replaced."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.small import PASSWORD, House, house
from service.test_fetch import free_port
from zktrace.cli.app import run
from zktrace.service.jobs import JobRow

PATIENCE = 240  # rounds of a quarter of a second, on a machine that is busy


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    return house(tmp_path_factory.mktemp("serving"))


@pytest.fixture
def serving(made: House) -> Iterator["subprocess.Popen[bytes]"]:
    port = str(free_port())
    command = [sys.executable, "-m", "zktrace", "serve", "--workspace", str(made.home.root), "--port", port]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        until(lambda: healthy(f"http://127.0.0.1:{port}/healthz"))
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


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:  # noqa: S310
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
        ["--workers", "-1"],
    ],
)
def test_what_cannot_be_served_is_said_at_once(made: House, options: list[str]) -> None:
    assert run(["serve", "--workspace", str(made.home.root), *options]) == 2
