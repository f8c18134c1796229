"""What goes wrong around the service: database, disk, connections, clocks. Nothing is lost or done twice."""

import errno
import io
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import zktrace
from registry import postgres
from service.small import House, arrays, house, model_file, served
from service.test_fetch import free_port, running
from zktrace.errors import Unavailable
from zktrace.primitives.files import write_atomic
from zktrace.registry.registry import Registry
from zktrace.registry.stores.database import Database
from zktrace.registry.stores.memory import MemoryStore
from zktrace.service import uploads
from zktrace.service.jobs import Jobs, Lost
from zktrace.service.store import folder
from zktrace.service.visitors import Visitor


def until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("it did not come to pass")


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


@pytest.mark.skipif(postgres.missing() is not None, reason="PostgreSQL is not installed")
def test_a_database_that_is_killed_is_told_and_comes_back_with_all_that_was_there(tmp_path: Path) -> None:
    with postgres.running(durable=True) as server:
        home = zktrace.Workspace.create(
            tmp_path / "w", title="x", budget="1/10", carriers=["spread"], url=server.new_database()
        )
        home.release(arrays(), name="r1")
        made = served(home, {})
        auditor = made.account("auditor")
        job = made.desk.jobs.add("copy", {"release": "r1", "station": "s"}, subject="s", by="x")
        before = auditor.get("/api/v1/head").json()
        server.kill()
        for path in ("/api/v1/overview", "/healthz", "/", "/api/v1/head"):
            answer = auditor.get(path)
            assert answer.status_code == 503, path
            assert answer.headers["retry-after"]
        problem = auditor.get("/api/v1/overview").json()
        assert problem["error"] == "Unavailable"
        assert problem["detail"] == "the database cannot be had at the moment"
        server.start()
        assert auditor.get("/api/v1/head").json() == before
        assert auditor.get("/").status_code == 200
        assert made.desk.jobs.find(job.id).state == "queued"
        assert home.registry.verify() == home.registry.head()
        home.database.close()


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file of this process may become larger, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_upload_that_the_disk_does_not_take_is_refused_and_leaves_nothing(
    small: House, tmp_path: Path
) -> None:
    operator, place = small.account("operator"), folder(small.home, "uploads")
    browser, csrf = small.browser("operator")
    content = bytes(9 << 20)
    with small_disk(8 << 20):
        answer = operator.post("/api/v1/investigations", content=content)
        form = browser.post(
            "/cases", data={"csrf": csrf, "release": "r1"}, files={"file": ("m", io.BytesIO(content))}
        )
    assert (answer.status_code, answer.json()["error"]) == (503, "Unavailable")
    assert "cannot be kept (file too large)" in answer.json()["detail"]
    assert form.status_code == 503
    assert list(place.iterdir()) == []
    assert small.desk.jobs.listed() == []
    content = model_file(tmp_path / "m.safetensors").read_bytes()
    assert operator.post("/api/v1/investigations", content=content).status_code == 202


def test_a_connection_that_breaks_in_an_upload_leaves_nothing(small: House) -> None:
    port = free_port()
    made = served(small.home, small.credentials, url=f"http://127.0.0.1:{port}")
    token = made.desk.tokens.issue("session", Visitor(role="operator", name="an-operator"))
    place = folder(small.home, "uploads")
    with running(made, port):
        with socket.create_connection(("127.0.0.1", port)) as line:
            head = (
                f"POST /api/v1/investigations HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
                f"authorization: Bearer {token}\r\ncontent-length: 1000000\r\n\r\n"
            )
            line.sendall(head.encode() + bytes(100_000))
            until(lambda: sum(each.stat().st_size for each in place.iterdir()) > 0)
        until(lambda: list(place.iterdir()) == [])
    assert small.desk.jobs.listed() == []


def test_what_a_killed_service_left_of_uploads_goes_a_day_later(small: House, tmp_path: Path) -> None:
    operator, place = small.account("operator"), folder(small.home, "uploads")
    content = model_file(tmp_path / "m.safetensors").read_bytes()
    operator.post("/api/v1/investigations", content=content)
    (wanted,) = place.iterdir()
    for name, age in (("old", 25), ("young", 23)):
        (place / name).write_bytes(b"cut off")
        os.utime(place / name, (time.time() - 3600 * age,) * 2)
    os.utime(wanted, (0, 0))
    assert uploads.sweep(place, small.desk.jobs.files()) == 1
    assert {each.name for each in place.iterdir()} == {wanted.name, "young"}


class Clock:
    """A database whose clock is wrong by so many seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.off = 0.0
        right = Database.now.fget
        assert right is not None
        monkeypatch.setattr(Database, "now", property(lambda database: f"({right(database)} + {self.off})"))


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0], ids=["ahead", "back"])
def test_a_clock_that_jumps_makes_no_job_done_twice_and_loses_none(
    small: House, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    clock, jobs = Clock(monkeypatch), Jobs(small.home.database)
    jobs.add("copy", {}, subject="a", by="x")
    first = jobs.claim()
    assert first is not None
    clock.off = jump
    second = jobs.claim()  # the lease seems to have run out, or to last for a day
    assert second is not None
    assert (second.id, second.attempt) == (first.id, 2)
    with pytest.raises(Lost):
        jobs.settle(first, "done", result={"by": "first"})
    jobs.renew(second)
    assert jobs.claim() is None
    jobs.settle(second, "done", result={"by": "second"})
    assert jobs.find(first.id).result == {"by": "second"}


def test_a_worker_that_renews_keeps_its_job_when_the_clock_was_set_back(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, jobs = Clock(monkeypatch), Jobs(small.home.database)
    jobs.add("copy", {}, subject="a", by="x")
    held = jobs.claim()
    assert held is not None
    clock.off = -3600.0
    jobs.renew(held)
    assert jobs.claim() is None
    jobs.settle(held, "done")


def test_an_operators_clock_that_goes_back_stops_no_log() -> None:
    from datetime import UTC, datetime

    from registry.small import fill

    times = iter(range(100, 0, -1))
    registry = fill(
        Registry(MemoryStore(), clock=lambda: datetime(2026, 1, next(times) % 28 + 1, tzinfo=UTC))
    )
    assert registry.verify() == registry.head()
    assert [each.at for each in registry.entries()] != sorted(each.at for each in registry.entries())


def test_a_session_does_not_outlive_a_clock_that_goes_ahead(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    auditor = small.account("auditor")
    clock.off = 11 * 3600.0
    assert auditor.get("/api/v1/me").status_code == 200
    clock.off = 13 * 3600.0
    assert auditor.get("/api/v1/me").status_code == 401


def test_away_is_said_of_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    database = Database(f"postgresql://zkt@/x?host={tmp_path}")
    with pytest.raises(Unavailable), database.reading() as found:
        found.rows("SELECT 1")


@pytest.mark.parametrize("lost", ["report", "all"])
def test_a_full_disk_after_the_verdict_is_a_warning_and_tells_no_place_of_this_machine(
    small: House, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    copy = small.home.dispatch("bravo", "r1").path.read_bytes()
    client = small.account("operator")
    id = client.post("/api/v1/investigations", content=copy).json()["id"]
    small.work()
    client.post(f"/api/v1/jobs/{id}/confirm")

    def full(path: Path, data: bytes, **given: bool) -> None:
        if lost == "all" or path.suffix == ".html":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_atomic(path, data, **given)

    with monkeypatch.context() as patched:
        for room in ("suspects", "case"):
            patched.setattr(f"zktrace.front.{room}.write_atomic", full)
        (done,) = small.work()
    assert (done.state, done.result["named"]) == ("done", ["bravo"]), done.error
    warnings = done.result["warnings"]
    assert len(warnings) == (1 if lost == "report" else 2)
    assert "no report could be written" in warnings[-1]
    assert all("No space left on device" in each for each in warnings)
    place = done.result["place"]
    pages = [client.get(path) for path in (f"/jobs/{id}", f"/cases/{place}", f"/api/v1/jobs/{id}")]
    assert str(small.home.root) not in "".join(each.text for each in pages)
    report, evidence = (f'href="/cases/{place}/{what}"' for what in ("report", "evidence"))
    assert report not in pages[0].text + pages[1].text
    assert (evidence in pages[0].text) == (evidence in pages[1].text) == (lost == "report")
    assert client.get(f"/cases/{place}/report").status_code == 404
    ledger = small.home.registry.ledger()
    assert len(ledger.investigations) == len(ledger.verdicts) == 1


def test_what_stands_where_reports_go_is_a_warning_too(small: House) -> None:
    copy = small.home.dispatch("bravo", "r1").path.read_bytes()
    client = small.account("operator")
    id = client.post("/api/v1/investigations", content=copy).json()["id"]
    small.work()
    (small.home.root / "service" / "reports").write_text("no folder")
    client.post(f"/api/v1/jobs/{id}/confirm")
    (done,) = small.work()
    assert done.state == "done", done.error
    assert "the workspace/service/reports" in done.result["warnings"][0]
