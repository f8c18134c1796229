"""Jobs: never twice, never lost; and what a worker leaves behind when it is killed in the middle."""

import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from registry import postgres
from registry.conftest import server
from service.small import House, arrays, house, model_file
from zktrace.errors import Refused, WorkerDied
from zktrace.models import save_model
from zktrace.registry.stores.database import Database
from zktrace.service import store
from zktrace.service.jobs import ATTEMPTS, Cancelled, Jobs, Lost
from zktrace.service.worker import do

__all__ = ["server"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """The service's tables in an empty database."""
    if request.param == "sqlite":
        made = Database.of_file(tmp_path / "jobs.db")
        made.make_file()
    else:
        reason = postgres.missing()
        if reason is not None:
            pytest.skip(reason)
        made = Database(request.getfixturevalue("server").new_database())
    return store.brought_up(made)


def test_a_job_is_claimed_by_one_worker_and_the_oldest_first(database: Database) -> None:
    jobs = Jobs(database)
    first = jobs.add("copy", {"release": "r1"}, subject="a", by="x")
    jobs.add("copy", {"release": "r2"}, subject="b", by="x")
    claimed = jobs.claim()
    assert claimed is not None
    assert (claimed.id, claimed.state, claimed.attempt) == (first.id, "running", 1)
    other = jobs.claim()
    assert other is not None
    assert other.subject == "b"
    assert jobs.claim() is None
    jobs.settle(claimed, "done", result={"digest": "ab"})
    assert jobs.find(first.id).result == {"digest": "ab"}
    assert jobs.find(first.id).share == 1.0


def test_many_workers_share_many_jobs_without_doing_any_twice(database: Database) -> None:
    jobs = Jobs(database)
    for number in range(12):
        jobs.add("copy", {}, subject=str(number), by="x")
    done: list[str] = []

    def work() -> None:
        mine = Jobs(database)
        while (job := mine.claim()) is not None or any(each.state == "queued" for each in mine.listed()):
            if job is not None:
                done.append(job.id)
                mine.settle(job, "done")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(done) == len(set(done)) == 12


def test_a_job_whose_worker_is_gone_is_taken_up_and_the_old_worker_can_change_nothing(
    database: Database,
) -> None:
    jobs = Jobs(database)
    jobs.add("dispatch", {}, subject="a", by="x")
    gone = jobs.claim(lease=-1.0)
    assert gone is not None
    again = jobs.claim()
    assert again is not None
    assert (again.id, again.attempt) == (gone.id, 2)
    for attempt in (
        lambda: jobs.renew(gone),
        lambda: jobs.report(gone, share=0.5, note="x"),
        lambda: jobs.settle(gone, "done"),
    ):
        with pytest.raises(Lost):
            attempt()
    assert jobs.find(gone.id).state == "running"
    jobs.settle(again, "done")


def test_a_job_that_ends_its_workers_is_given_up(database: Database) -> None:
    jobs = Jobs(database)
    made = jobs.add("copy", {}, subject="a", by="x")
    for _ in range(ATTEMPTS):
        assert jobs.claim(lease=-1.0) is not None
    assert jobs.claim() is None
    found = jobs.find(made.id)
    assert found.state == "failed"
    assert "too little memory" in str(found.error)


def test_two_who_confirm_the_same_plan_confirm_it_once(database: Database) -> None:
    jobs = Jobs(database)
    made = jobs.add("trace", {}, subject="a", by="x")
    claimed = jobs.claim()
    assert claimed is not None
    jobs.settle(claimed, "waiting", result={"looks": []})
    said: list[str] = []

    def confirm(name: str) -> None:
        try:
            said.append(str(Jobs(database).confirm(made.id, by=name, began=7).confirmed_by))
        except Refused as error:
            said.append(str(error))

    threads = [threading.Thread(target=confirm, args=(name,)) for name in ("one", "two")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    winner = jobs.find(made.id).confirmed_by
    assert sorted(said) == sorted(
        [str(winner), f"this plan does not wait for a confirmation: {winner} confirmed it already"]
    )
    with pytest.raises(Refused, match="confirmed it already"):
        jobs.confirm(made.id, by="three", began=9)
    assert jobs.find(made.id).result["began"] == 7


def test_what_waits_is_cancelled_and_what_runs_is_asked_to_stop(database: Database) -> None:
    jobs = Jobs(database)
    waits = jobs.add("dispatch", {}, subject="a", by="x")
    assert jobs.cancel(waits.id).state == "cancelled"
    with pytest.raises(Refused, match="cancelled already"):
        jobs.cancel(waits.id)
    jobs.add("dispatch", {}, subject="b", by="x")
    runs = jobs.claim()
    assert runs is not None
    assert jobs.cancel(runs.id).stopping
    with pytest.raises(Cancelled):
        jobs.report(runs, share=0.2, note="alpha")
    assert jobs.find(runs.id).share == pytest.approx(0.2)


def test_two_jobs_on_one_subject_are_one(database: Database) -> None:
    jobs = Jobs(database)
    first = jobs.add("copy", {}, subject="a", by="x")
    assert jobs.add("copy", {}, subject="a", by="y").id == first.id
    jobs.cancel(first.id)
    assert jobs.add("copy", {}, subject="a", by="y").id != first.id


# ── the work itself ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


def forget(made: House) -> None:
    """Time goes by: whoever holds a job has not been heard of for long enough."""
    with made.home.database.writing() as change:
        change.run("UPDATE zks_jobs SET lease = 0")


def upload(made: House, path: Path, **options: str) -> Any:
    client = made.account("operator")
    return client.post("/api/v1/investigations", params=options, content=path.read_bytes())


def test_from_upload_to_verdict_and_nothing_is_spent_before_somebody_confirms(
    small: House, tmp_path: Path
) -> None:
    copy = small.home.dispatch("bravo", "r1")
    client = small.account("operator")
    asked = upload(small, copy.path, release="r1", budget="1/1000", name="leak.safetensors").json()
    assert asked["state"] == "queued"
    (planned,) = small.work()
    assert planned.state == "waiting"
    looks = planned.result["looks"]
    assert (looks[0]["carriers"], looks[0]["alignment"]) == (["spread"], "identity")
    assert sum(Fraction(each["share"]) for each in looks) == 1
    assert not small.home.registry.ledger().investigations
    assert small.home.registry.ledger().spent == 0
    assert client.post(f"/api/v1/jobs/{asked['id']}/confirm").status_code == 200
    again = client.post(f"/api/v1/jobs/{asked['id']}/confirm")
    assert again.status_code == 409
    assert "an-operator confirmed it already" in again.json()["detail"]
    (done,) = small.work()
    assert (done.state, done.result["named"]) == ("done", ["bravo"]), done.error
    ledger = small.home.registry.ledger()
    assert ledger.spent == Fraction(1, 1000)
    place = done.result["place"]
    assert client.get(f"/api/v1/cases/{place}").json()["evidence"] is True
    page = client.get(f"/cases/{place}/report")
    assert page.status_code == 200
    assert "bravo" in page.text
    assert "alpha" not in page.text


def test_a_plan_that_is_dropped_costs_nothing_and_its_upload_goes(small: House, tmp_path: Path) -> None:
    asked = upload(small, model_file(tmp_path / "m.safetensors", seed=0)).json()
    small.work()
    uploads = small.home.root / "service" / "uploads"
    assert len(list(uploads.iterdir())) == 1
    assert small.account("operator").post(f"/api/v1/jobs/{asked['id']}/cancel").json()["state"] == "cancelled"
    assert list(uploads.iterdir()) == []
    assert small.home.registry.ledger().spent == 0


@pytest.mark.parametrize("record", ["before", "investigation", "verdict"])
def test_a_worker_that_is_killed_leaves_one_investigation_that_is_paid_for_once(
    small: House, monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    """Killed before the investigation is on record, between it and its verdict, and after the verdict."""
    copy = small.home.dispatch("bravo", "r1")
    asked = upload(small, copy.path, budget="1/1000").json()
    small.work()
    small.account("operator").post(f"/api/v1/jobs/{asked['id']}/confirm")
    killed = small.desk.jobs.claim()
    assert killed is not None
    with monkeypatch.context() as patched:
        add = small.home.registry.add

        def dies(source: Any) -> int:
            if record == "before":
                raise KeyboardInterrupt
            place = add(source)
            if record == small.home.registry.entry(place).record.kind:
                raise KeyboardInterrupt
            return place

        patched.setattr(small.home.registry, "add", dies)
        with pytest.raises(KeyboardInterrupt):
            do(small.home, small.desk.jobs, killed, lease=1e6)
    forget(small)
    (done,) = small.work()
    assert (done.state, done.result["named"]) == ("done", ["bravo"]), done.error
    ledger = small.home.registry.ledger()
    assert len(ledger.investigations) == len(ledger.verdicts) == 1
    assert ledger.spent == Fraction(1, 1000)


def test_a_budget_that_is_not_left_is_refused_before_and_after_the_upload(
    small: House, tmp_path: Path
) -> None:
    model = model_file(tmp_path / "m.safetensors")
    assert upload(small, model, budget="2/10").status_code == 409
    assert upload(small, model, budget="nothing").status_code == 422
    assert upload(small, model, release="r9").status_code == 404
    assert list((small.home.root / "service" / "uploads").iterdir()) == []


@pytest.mark.parametrize("content", [b"\x80\x04not a model", b"PK\x03\x04" + b"\0" * 64, b"{" * 1000])
def test_a_hostile_upload_is_a_job_that_failed_and_nothing_else(small: House, content: bytes) -> None:
    client = small.account("operator")
    asked = client.post("/api/v1/investigations", content=content)
    assert asked.status_code == 202
    (failed,) = small.work()
    assert failed.state == "failed"
    assert "\n" not in str(failed.error)
    assert small.home.registry.ledger().spent == 0


def test_a_release_and_its_copies_are_made_by_jobs_and_again_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = house(tmp_path, release=False)
    client = made.account("operator")
    content = model_file(tmp_path / "m.safetensors").read_bytes()
    asked = client.post("/api/v1/releases", params={"name": "r1"}, content=content)
    assert asked.status_code == 202
    killed = made.desk.jobs.claim()
    assert killed is not None
    with monkeypatch.context() as patched:
        patched.setattr(made.desk.jobs, "settle", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            do(made.home, made.desk.jobs, killed, lease=1e6)
    assert list(made.home.registry.ledger().releases) == ["r1"]
    Path(killed.arguments["file"]).write_bytes(content)  # a kill leaves the upload
    forget(made)
    (done,) = made.work()
    assert (done.state, done.result["release"]) == ("done", "r1"), done.error
    assert list(made.home.registry.ledger().releases) == ["r1"]
    assert client.post("/api/v1/dispatches", json={"release": "r1"}).status_code == 202
    (done,) = made.work()
    assert (done.state, done.result["made"]) == ("done", 3), done.error
    assert len(made.home.registry.ledger().dispatches) == 3
    assert (
        list((made.home.root / "copies").glob("**/*.safetensors")) == []
    )  # made again when they are fetched
    assert (
        client.post("/api/v1/dispatches", json={"release": "r1", "stations": ["nobody"]}).status_code == 409
    )


def test_a_dispatch_stops_between_two_copies(small: House) -> None:
    small.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
    job = small.desk.jobs.claim()
    assert job is not None
    small.desk.jobs.cancel(job.id)
    do(small.home, small.desk.jobs, job)
    assert small.desk.jobs.find(job.id).state == "cancelled"
    assert len(small.home.registry.ledger().dispatches) <= 1


def test_a_fault_in_a_job_is_its_failure(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise error

    failures: list[Callable[[], Exception]] = [lambda: ZeroDivisionError("x"), lambda: WorkerDied("y")]
    for failure in failures:
        error = failure()
        monkeypatch.setattr("zktrace.service.worker.carry_out", fails)
        small.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
        (failed,) = small.work()
        assert failed.state == "failed"


def test_a_suspect_that_was_investigated_before_says_so(small: House, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save_model(path, arrays(3))
    small.home.trace(path, budget="1/1000")
    upload(small, path)
    (planned,) = small.work()
    assert planned.result["known"] == list(small.home.registry.ledger().investigations)
