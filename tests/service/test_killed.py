"""Processes that are killed, databases that go and come back: all that was asked ends, and is paid once."""

import os
import signal
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import zktrace
from registry import postgres
from service.small import House, arrays, house, served
from service.stalling import stalling, until
from service.test_fetch import free_port
from service.test_jobs import forget
from service.test_serving import started
from zktrace.credentials import SecretKey, by_name
from zktrace.errors import Refused, Unavailable
from zktrace.registry.requests import Request
from zktrace.service.jobs import JobRow
from zktrace.service.worker import Crew

pytestmark = pytest.mark.slow
needs_postgres = pytest.mark.skipif(postgres.missing() is not None, reason="PostgreSQL is not installed")
PRICE = Fraction(1, 1000)
WEAK = by_name("test-128-64-16")


def planned(made: House, content: bytes) -> str:
    """A suspect whose plan waits; a worker of this process reads it."""
    asked = made.account("operator").post("/api/v1/investigations", content=content).json()
    made.work()
    assert made.desk.jobs.find(asked["id"]).state == "waiting"
    return str(asked["id"])


def confirmed(made: House, content: bytes) -> str:
    id = planned(made, content)
    assert made.account("operator").post(f"/api/v1/jobs/{id}/confirm").status_code == 200
    return id


def done(made: House, id: str) -> Callable[[], JobRow | None]:
    def look() -> JobRow | None:
        try:
            found = made.desk.jobs.find(id)
        except Unavailable:
            return None
        assert found.state not in ("failed", "cancelled"), found.error
        return found if found.state == "done" else None

    return look


def check_once(made: House, *, cases: int = 1) -> None:
    """Every case has its one verdict and was paid for once, and the log is whole."""
    ledger = made.home.registry.ledger()
    assert len(ledger.investigations) == len(ledger.verdicts) == cases
    assert ledger.spent == cases * PRICE
    assert made.home.registry.verify() == made.home.registry.head()


def test_a_worker_that_is_killed_in_a_confirmed_trace_costs_no_verdict(tmp_path: Path) -> None:
    made = house(tmp_path)
    id = confirmed(made, made.home.dispatch("bravo", "r1").path.read_bytes())
    with stalling(tmp_path / "stall") as stalled:
        crew = Crew(made.home.root, 1, lease=2.0)
        crew.start()
        try:
            until(stalled.process)
            number = stalled.process()
            assert number is not None
            assert made.home.registry.ledger().spent == PRICE
            assert not made.home.registry.ledger().verdicts
            os.kill(number, signal.SIGKILL)
            until(done(made, id))
        finally:
            crew.stop()
    found = made.desk.jobs.find(id)
    assert (found.attempt, found.result["named"]) == (3, ["bravo"])  # the plan, the one killed, and this one
    check_once(made)


def test_a_service_that_is_killed_and_started_again_ends_all_that_was_asked_for(tmp_path: Path) -> None:
    made = house(tmp_path)
    waiting = planned(made, made.home.dispatch("alpha", "r1").path.read_bytes())
    running = confirmed(made, made.home.dispatch("bravo", "r1").path.read_bytes())
    with stalling(tmp_path / "stall") as stalled, started(made, free_port()) as child:
        until(stalled.process)
        queued = made.account("operator").post("/api/v1/dispatches", json={"release": "r1"}).json()["id"]
        states = [made.desk.jobs.find(each).state for each in (running, waiting, queued)]
        assert states == ["running", "waiting", "queued"]
        child.kill()
        child.wait()
        worker = stalled.process()
        until(lambda: not alive(worker))
    forget(made)
    with started(made, free_port()):
        until(done(made, running))
        until(done(made, queued))
        assert made.account("operator").post(f"/api/v1/jobs/{waiting}/confirm").status_code == 200
        until(done(made, waiting))
    named = [made.desk.jobs.find(each).result["named"] for each in (running, waiting)]
    assert named == [["bravo"], ["alpha"]]
    given = [each.station for _, each in made.home.registry.ledger().dispatches]
    assert sorted(given) == ["alpha", "bravo", "charlie"]
    check_once(made, cases=2)


def alive(number: int | None) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Enrolling:
    """Stations that are enrolled one after the other, each until it is on record; a database may be away."""

    def __init__(self, home: zktrace.Workspace, count: int, letter: str) -> None:
        self._home = home
        self.keys = {f"{letter}{at:03}": SecretKey.generate(WEAK) for at in range(count)}
        self.acknowledged: dict[str, int] = {}
        self.away = 0
        self._thread = threading.Thread(target=self._enrol)

    def __enter__(self) -> "Enrolling":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _enrol(self) -> None:
        for name, key in self.keys.items():
            while name not in self.acknowledged:
                try:
                    request = Request.make(key, self._home.offer)
                    self.acknowledged[name] = self._home.enrol(name, request, allow_weak_params=True)
                except Unavailable:
                    self.away += 1
                except Refused:  # it got there, and the answer was lost
                    known = self._home.registry.ledger().stations.get(name)
                    assert known is not None
                    self.acknowledged[name] = known.index


def on_server(server: postgres.Server, root: Path, *, places: int) -> House:
    home = zktrace.Workspace.create(
        root / "operator",
        title="x",
        budget="1/10",
        carriers=["spread"],
        places=places,
        url=server.new_database(),
    )
    return served(home, {})


@needs_postgres
def test_a_database_that_is_killed_in_enrolments_and_a_confirmed_trace_loses_nothing(tmp_path: Path) -> None:
    with postgres.running(durable=True) as server:
        made = on_server(server, tmp_path, places=96)
        with Enrolling(made.home, 12, "s") as first:
            pass
        made.home.release(arrays(), name="r1")
        id = confirmed(made, made.home.dispatch("s003", "r1").path.read_bytes())
        with stalling(tmp_path / "stall") as stalled:
            crew = Crew(made.home.root, 2, lease=2.0)
            crew.start()
            try:
                until(stalled.process)
                with Enrolling(made.home, 48, "t") as second:
                    until(lambda: len(second.acknowledged) > 8)
                    server.kill()
                    until(lambda: second.away > 2)
                    stalled.go()  # its verdict finds no database
                    server.start()
                until(done(made, id))
            finally:
                crew.stop()
        ledger = made.home.registry.ledger()
        for each in (first, second):
            assert all(ledger.stations[name].index == at for name, at in each.acknowledged.items())
        assert len(ledger.by_row) == 60
        (case,) = ledger.investigations.values()
        assert case.recipients == 12
        assert made.desk.jobs.find(id).result["named"] == ["s003"]
        check_once(made)
        made.home.database.close()


@needs_postgres
def test_two_services_on_one_database_do_every_job_once(tmp_path: Path) -> None:
    with postgres.running() as server:
        made = on_server(server, tmp_path, places=32)
        with Enrolling(made.home, 30, "s") as stations:
            pass
        made.home.release(arrays(), name="r1")
        copies = {each.station: each.digest.hex() for each in made.home.dispatch_all(None, "r1")}
        for path in (made.home.root / "copies").glob("**/*.safetensors"):
            path.unlink()  # they are made again
        jobs = {
            name: made.desk.jobs.add("copy", {"release": "r1", "station": name}, subject=name, by=name).id
            for name in stations.keys
        }
        with started(made, free_port()), started(made, free_port()):
            for id in jobs.values():
                until(done(made, id))
        for name, id in jobs.items():
            found = made.desk.jobs.find(id)
            assert (found.attempt, found.result["digest"]) == (1, copies[name])
        assert len(made.home.registry.ledger().dispatches) == 30
        assert made.home.registry.verify() == made.home.registry.head()
        made.home.database.close()
