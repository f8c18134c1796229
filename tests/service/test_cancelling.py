"""What somebody does not want any more: at every moment of a job, and never what is paid for."""

from pathlib import Path

import pytest

from service.small import House, house, model_file
from zktrace.errors import Refused
from zktrace.service import work
from zktrace.service.jobs import JobRow, Jobs
from zktrace.service.worker import do


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


def uploads(made: House) -> list[Path]:
    return list((made.home.root / "service" / "uploads").iterdir())


def uploaded(made: House, tmp_path: Path) -> str:
    content = model_file(tmp_path / "m.safetensors").read_bytes()
    answer = made.account("operator").post("/api/v1/investigations", content=content)
    return str(answer.json()["id"])


@pytest.mark.parametrize("when", ["before it is read", "while it is read"])
def test_a_plan_that_is_cancelled_while_it_is_made_is_not_confirmed_any_more(
    small: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    id = uploaded(small, tmp_path)
    client, read = small.account("operator"), work._read

    def cancelled(home: object, job: JobRow) -> object:
        assert client.post(f"/api/v1/jobs/{id}/cancel").json()["stopping"] is True
        return read(home, job)  # type: ignore[arg-type]

    if when == "while it is read":
        monkeypatch.setattr(work, "_read", cancelled)
        small.work()
    else:
        job = small.desk.jobs.claim()
        assert job is not None
        assert client.post(f"/api/v1/jobs/{id}/cancel").json()["stopping"] is True
        do(small.home, small.desk.jobs, job)
    assert small.desk.jobs.find(id).state == "cancelled"
    assert uploads(small) == []
    assert client.post(f"/api/v1/jobs/{id}/confirm").status_code == 409
    assert small.home.registry.ledger().spent == 0


def test_a_row_that_is_to_stop_cannot_be_confirmed(small: House) -> None:
    jobs = small.desk.jobs
    id = jobs.add("trace", {}, subject="a", by="x").id
    job = jobs.claim()
    assert job is not None
    jobs.settle(job, "waiting")
    with small.home.database.writing() as change:  # as a version before this one could leave it
        change.run("UPDATE zks_jobs SET stopping = 1")
    with pytest.raises(Refused, match="does not wait"):
        jobs.confirm(id, by="x", began=1)


def test_what_is_confirmed_between_two_looks_of_a_cancel_goes_on(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one who cancels saw a plan that waits; meanwhile it is confirmed, and a worker is at it."""
    jobs = small.desk.jobs
    id = jobs.add("trace", {"budget": "1/1000"}, subject="a", by="x").id
    planning = jobs.claim()
    assert planning is not None
    jobs.settle(planning, "waiting")
    find, found = Jobs.find, []

    def late(self: Jobs, id: str) -> JobRow:
        row = find(self, id)
        if not found:
            found.append(row)
            jobs.confirm(id, by="x", began=1)
            found.append(jobs.claim())
        return row

    monkeypatch.setattr(Jobs, "find", late)
    with pytest.raises(Refused, match="goes on to its verdict"):
        jobs.cancel(id)
    monkeypatch.undo()
    running = jobs.find(id)
    assert (running.state, running.stopping) == ("running", False)
    jobs.report(running, share=0.5, note="scored")


def test_a_confirmed_trace_does_not_stop_even_if_it_is_marked(small: House) -> None:
    jobs = small.desk.jobs
    jobs.add("trace", {}, subject="a", by="x", confirmed=True)
    job = jobs.claim()
    assert job is not None
    with small.home.database.writing() as change:
        change.run("UPDATE zks_jobs SET stopping = 1")
    jobs.report(job, share=0.5, note="scored")
    jobs.settle(job, "done")


def test_the_model_of_a_release_that_is_cancelled_goes(small: House, tmp_path: Path) -> None:
    content = model_file(tmp_path / "m.safetensors", seed=4).read_bytes()
    client = small.account("operator")
    id = client.post("/api/v1/releases", params={"name": "r2"}, content=content).json()["id"]
    job = small.desk.jobs.claim()
    assert job is not None
    client.post(f"/api/v1/jobs/{id}/cancel")
    do(small.home, small.desk.jobs, job)
    assert small.desk.jobs.find(id).state == "cancelled"
    assert uploads(small) == []
    assert list(small.home.registry.ledger().releases) == ["r1"]
