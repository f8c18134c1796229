"""Workers that are asked to end cost a job nothing; those that die count only where it does not go on."""

import os
import signal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from registry.conftest import server
from service.small import House, house
from service.stalling import stalling, until
from service.test_jobs import database, forget
from service.test_paid import check_paid_once, confirm, upload
from zktrace.errors import Refused
from zktrace.registry.records import DispatchRecord
from zktrace.registry.stores.database import Database
from zktrace.service.jobs import ATTEMPTS, Jobs
from zktrace.service.worker import Crew, do

__all__ = ["database", "server"]


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


def test_a_job_that_is_given_back_is_not_given_up(database: Database) -> None:
    jobs = Jobs(database)
    made = jobs.add("dispatch", {}, subject="a", by="x")
    for attempt in range(1, 3 * ATTEMPTS):
        claimed = jobs.claim()
        assert claimed is not None
        assert claimed.attempt == attempt
        assert jobs.give_back(claimed.id, claimed.attempt)
        assert jobs.find(made.id).state == "queued"
    for _ in range(ATTEMPTS):
        assert jobs.claim(lease=-1.0) is not None
    assert jobs.claim() is None
    assert jobs.find(made.id).state == "failed"


def test_nobody_gives_back_what_is_another_workers(database: Database) -> None:
    jobs = Jobs(database)
    jobs.add("dispatch", {}, subject="a", by="x")
    gone, again = jobs.claim(lease=-1.0), jobs.claim()
    assert gone is not None
    assert again is not None
    assert not jobs.give_back(gone.id, gone.attempt)
    jobs.settle(again, "done")
    assert not jobs.give_back(again.id, again.attempt)
    assert jobs.find(gone.id).state == "done"


def test_a_job_is_given_up_where_it_ends_its_workers_at_the_same_place(database: Database) -> None:
    jobs = Jobs(database)
    made = jobs.add("dispatch", {}, subject="a", by="x")
    for place in (0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5):
        claimed = jobs.claim(lease=-1.0)
        assert claimed is not None, place
        for share in (0.05, place):
            jobs.report(claimed, share=share, note="on its way")
        assert jobs.find(made.id).share == pytest.approx(place)
        with database.writing() as change:
            change.run("UPDATE zks_jobs SET lease = 1")
    assert jobs.claim() is None
    found = jobs.find(made.id)
    assert (found.state, found.share) == ("failed", 0.5)


def test_a_dispatch_whose_workers_die_goes_on_as_long_as_each_made_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"s{at}" for at in range(ATTEMPTS + 3))
    made = house(tmp_path, stations=names)
    made.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
    add = made.home.registry.add

    def dies(record: Any) -> int:
        place = add(record)
        if isinstance(record, DispatchRecord):
            raise KeyboardInterrupt
        return place

    with monkeypatch.context() as patched:
        patched.setattr(made.home.registry, "add", dies)
        for at in range(1, len(names)):
            job = made.desk.jobs.claim()
            assert job is not None, at
            with pytest.raises(KeyboardInterrupt):
                do(made.home, made.desk.jobs, job, lease=1e6)
            assert len(made.home.registry.ledger().dispatches) == at
            forget(made)
    (done,) = made.work()
    assert done.state == "done", done.error
    assert len(made.home.registry.ledger().dispatches) == len(names)


def test_what_is_given_back_after_it_was_paid_for_is_not_cancelled(
    small: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(small, small.home.dispatch("bravo", "r1").path.read_bytes())
    confirm(small, job)
    with monkeypatch.context() as patched:

        def ends(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patched.setattr("zktrace.tracing.protocol.investigate", ends)
        claimed = small.desk.jobs.claim()
        assert claimed is not None
        with pytest.raises(KeyboardInterrupt):
            do(small.home, small.desk.jobs, claimed, lease=1e6)
    assert small.desk.jobs.give_back(claimed.id, claimed.attempt)
    assert small.home.registry.ledger().spent == Fraction(1, 1000)
    with pytest.raises(Refused, match="goes on to its verdict"):
        small.desk.jobs.cancel(job)
    assert f"/jobs/{job}/cancel" not in small.account("operator").get(f"/jobs/{job}").text
    (done,) = small.work()
    assert (done.state, done.result["named"]) == ("done", ["bravo"]), done.error
    check_paid_once(small)


def test_services_that_are_stopped_in_the_middle_leave_a_paid_investigation_to_the_next(
    small: House, tmp_path: Path
) -> None:
    """A lease as long as this one never runs out: only what is given back is taken up again."""
    job = upload(small, small.home.dispatch("bravo", "r1").path.read_bytes())
    confirm(small, job)

    def taken(times: int) -> int:
        until(stalled.process)
        number = stalled.process()
        assert number is not None
        (stalled.place / "at").unlink()
        assert small.desk.jobs.find(job).attempt == times + 1  # and one for the plan
        assert small.home.registry.ledger().spent == Fraction(1, 1000)
        return number

    with stalling(tmp_path / "stall") as stalled:
        crew = Crew(small.home.root, 1, lease=1e6)
        crew.start()
        try:
            os.kill(taken(1), signal.SIGTERM)  # as a whole service is ended by systemd
            taken(2)
        finally:
            crew.stop()
        assert small.desk.jobs.find(job).state == "queued"
        crew = Crew(small.home.root, 1, lease=1e6)
        crew.start()
        try:
            os.kill(taken(3), signal.SIGKILL)
        finally:
            crew.stop()
    assert small.desk.jobs.find(job).state == "running"  # nobody asked for this end: it counts
    forget(small)
    (done,) = small.work()
    assert (done.state, done.result["named"]) == ("done", ["bravo"]), done.error
    check_paid_once(small)
