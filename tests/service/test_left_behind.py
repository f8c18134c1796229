"""Uploads that nothing came of: none of them stays, and what an investigation is about does."""

import os
from pathlib import Path

import pytest

from service.small import House, house, model_file
from service.test_jobs import forget
from zktrace.errors import Unavailable
from zktrace.service.jobs import ATTEMPTS
from zktrace.service.store import folder
from zktrace.service.tidying import tidy


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


def uploads(made: House) -> list[Path]:
    return list(folder(made.home, "uploads").iterdir())


def test_a_plan_that_failed_keeps_no_upload(small: House) -> None:
    client = small.account("operator")
    assert client.post("/api/v1/investigations", content=b"\x80\x04not a model").status_code == 202
    (failed,) = small.work()
    assert failed.state == "failed"
    assert uploads(small) == []


@pytest.mark.parametrize("way", ["program", "form"])
@pytest.mark.parametrize("what", ["cases", "releases"])
def test_an_empty_file_is_refused_and_not_kept(small: House, way: str, what: str) -> None:
    given = {"name": "r2"} if what == "releases" else {}
    if way == "program":
        place = "investigations" if what == "cases" else what
        answer = small.account("operator").post(f"/api/v1/{place}", params=given, content=b"")
    else:
        browser, csrf = small.browser("operator")
        answer = browser.post(f"/{what}", data={"csrf": csrf, **given}, files={"file": ("empty", b"")})
    assert answer.status_code == 422
    assert "choose a file" in answer.text
    assert uploads(small) == []
    assert small.desk.jobs.listed() == []


@pytest.mark.parametrize("what", ["cases", "releases"])
def test_an_upload_goes_if_the_database_is_away_when_its_job_is_made(
    small: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def away(*_: object, **__: object) -> None:
        raise Unavailable("postgresql://zkt@/x: the connection was lost")

    content = model_file(tmp_path / "m").read_bytes()
    client, (browser, csrf) = small.account("operator"), small.browser("operator")
    monkeypatch.setattr(small.desk.jobs, "add", away)
    given = {"name": "r2"}
    place = "investigations" if what == "cases" else what
    assert client.post(f"/api/v1/{place}", params=given, content=content).status_code == 503
    form = browser.post(f"/{what}", data={"csrf": csrf, **given}, files={"file": ("m", content)})
    assert form.status_code == 503
    assert uploads(small) == []


def test_workers_sweep_what_no_job_is_about_and_leave_suspects_of_investigations(
    small: House, tmp_path: Path
) -> None:
    client, content = small.account("operator"), small.home.dispatch("bravo", "r1").path.read_bytes()
    given_up = client.post("/api/v1/investigations", content=content).json()["id"]
    for _ in range(ATTEMPTS):
        assert small.desk.jobs.claim(lease=-1.0) is not None
    assert small.desk.jobs.claim() is None
    assert small.desk.jobs.find(given_up).state == "failed"
    traced, waiting = (client.post("/api/v1/investigations", content=content).json()["id"] for _ in range(2))
    small.work()
    client.post(f"/api/v1/jobs/{traced}/confirm")
    small.work()
    (folder(small.home, "uploads") / "cut-off").write_bytes(b"by a service that was killed")
    for each in uploads(small):
        os.utime(each, (0, 0))
    tidy(small.home, small.desk.jobs)
    wanted = {small.desk.jobs.find(each).arguments["file"] for each in (traced, waiting)}
    assert {str(each) for each in uploads(small)} == wanted
    forget(small)


def test_a_worker_tidies_up_when_it_begins(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from zktrace.service import worker

    ended, left = Event(), folder(small.home, "uploads") / "cut-off"
    left.write_bytes(b"by a service that was killed")
    os.utime(left, (0, 0))
    rounds = iter(range(3))

    def claim(*_: object, **__: object) -> None:
        if next(rounds) == 2:
            ended.set()

    monkeypatch.setattr("zktrace.service.jobs.Jobs.claim", claim)
    times: list[object] = []
    monkeypatch.setattr(worker, "tidy", lambda *given: (times.append(given), tidy(*given)))
    worker.work(small.home.root, ended, pause=0)
    assert len(times) == 1  # and not at every look for a job
    assert not left.exists()
