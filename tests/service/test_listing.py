"""Lists of jobs: what waits for somebody is not hidden by what stations asked for, which goes in time."""

from pathlib import Path

import pytest

from registry.conftest import server
from service.small import House, house
from service.test_jobs import database, upload
from zktrace.registry.stores.database import Database
from zktrace.service.job import OPEN
from zktrace.service.jobs import KEPT, Jobs
from zktrace.service.tidying import tidy

__all__ = ["database", "server"]


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


def age(made: Database, seconds: float) -> None:
    """Time goes by."""
    with made.writing() as change:
        change.run("UPDATE zks_jobs SET changed = changed - :seconds", seconds=seconds)


def test_lists_begin_with_what_waits_and_are_filtered_before_they_are_cut(database: Database) -> None:
    jobs = Jobs(database)
    plan = jobs.add("trace", {}, subject="plan", by="x")
    claimed = jobs.claim()
    assert claimed is not None
    jobs.settle(claimed, "waiting")
    done = jobs.add("release", {}, subject="release", by="x")
    claimed = jobs.claim()
    assert claimed is not None
    jobs.settle(claimed, "done")
    running = jobs.add("dispatch", {}, subject="dispatch", by="x")
    jobs.claim()
    copies = [jobs.add("copy", {}, subject=str(at), by="x").id for at in range(12)]
    order = [plan.id, running.id, *reversed(copies), done.id]
    assert [each.id for each in jobs.listed()] == order
    assert [each.id for at in range(0, 20, 4) for each in jobs.listed(start=at, limit=4)] == order
    assert [each.id for each in jobs.listed(kinds=("trace", "release"), limit=2)] == [plan.id, done.id]
    assert [each.id for each in jobs.listed(kinds=("trace", "release"), states=OPEN)] == [plan.id]
    assert (jobs.count(), jobs.count(kinds=("copy",)), jobs.count(states=("done",))) == (15, 12, 1)


def test_a_plan_that_waits_is_shown_whatever_stations_asked_for_since(small: House) -> None:
    waiting = upload(small, small.home.dispatch("bravo", "r1").path).json()["id"]
    small.work()
    for at in range(401):
        small.desk.jobs.add("copy", {"release": "r1", "station": "s"}, subject=str(at), by="s")
    browser, _ = small.browser("operator")
    for page in ("/cases", "/jobs", "/api/v1/jobs"):
        assert waiting in browser.get(page).text, page
    ids: list[str] = []
    while found := browser.get("/api/v1/jobs", params={"start": len(ids), "limit": 150}).json()["jobs"]:
        ids += [each["id"] for each in found]
    assert len(ids) == len(set(ids)) == 402
    assert "/jobs?from=100" in browser.get("/jobs").text
    assert "401 to 402 of 402" in browser.get("/jobs?from=400").text
    assert browser.get("/jobs?from=500").status_code == 200


def test_what_stations_asked_for_is_forgotten_a_day_after_it_has_ended(database: Database) -> None:
    jobs, ids = Jobs(database), {}
    for kind in ("copy", "receipt", "trace", "dispatch"):
        for state in ("done", "failed", "running"):
            ids[kind, state] = jobs.add(kind, {}, subject=kind + state, by="x").id  # type: ignore[arg-type]
            claimed = jobs.claim()
            assert claimed is not None
            if state != "running":
                jobs.settle(claimed, state)  # type: ignore[arg-type]
    ids["copy", "queued"] = jobs.add("copy", {}, subject="waits", by="x").id
    again = jobs.find(ids["copy", "done"])
    age(database, KEPT + 60)
    assert jobs.keep(again)
    young = jobs.add("receipt", {}, subject="young", by="x").id
    jobs.cancel(young)
    assert jobs.expire() == 3
    gone = {ids[key] for key in (("copy", "failed"), ("receipt", "done"), ("receipt", "failed"))}
    assert {each.id for each in jobs.listed()} == {*ids.values(), young} - gone
    assert not jobs.keep(jobs.find(young))


def test_a_station_fetches_a_copy_whose_job_is_forgotten(small: House) -> None:
    small.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
    small.work()
    client = small.station("alpha")
    client.post("/api/v1/copies/r1")
    small.work()
    first = client.get("/api/v1/copies/r1/file").content
    age(small.home.database, KEPT + 60)
    assert client.post("/api/v1/copies/r1").json()["state"] == "done"  # it is asked for: so it is kept
    tidy(small.home, small.desk.jobs)
    assert client.get("/api/v1/copies/r1/file").content == first
    age(small.home.database, KEPT + 60)
    tidy(small.home, small.desk.jobs)
    assert client.get("/api/v1/copies/r1/file").status_code == 404
    assert client.post("/api/v1/copies/r1").json()["state"] == "queued"
    small.work()
    assert client.get("/api/v1/copies/r1/file").content == first


def test_a_program_is_told_what_an_investigation_costs_before_it_confirms(small: House) -> None:
    asked = upload(small, small.home.dispatch("bravo", "r1").path, budget="1/500", name="leak.bin").json()
    small.work()
    client = small.account("operator")
    plan = client.get(f"/api/v1/jobs/{asked['id']}").json()
    assert plan["state"] == "waiting"
    assert (plan["budget"], plan["release"], plan["name"]) == ("1/500", "r1", "leak.bin")
    assert 0 < plan["created"] <= plan["changed"]
    dispatch = client.post("/api/v1/dispatches", json={"release": "r1"}).json()
    assert dispatch["release"] == "r1"
    assert "budget" not in dispatch
    listed = client.get("/api/v1/jobs")
    assert {each.get("budget") for each in listed.json()["jobs"]} == {"1/500", None}
    assert str(small.home.root) not in listed.text
