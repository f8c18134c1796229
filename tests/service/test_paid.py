"""What was paid for comes to its verdict, once, whatever fails in between; and nobody pays twice unasked."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from service.small import House, house, model_file
from service.test_jobs import forget
from zktrace.errors import Unavailable
from zktrace.service.jobs import ATTEMPTS, JobRow

PRICE = Fraction(1, 1000)


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path)


@pytest.fixture
def copy(small: House) -> bytes:
    return small.home.dispatch("bravo", "r1").path.read_bytes()


def upload(made: House, content: bytes, *, budget: str = "1/1000") -> str:
    """A suspect whose plan waits for a confirmation."""
    given = {"budget": budget, "name": "leak.safetensors"}
    asked = made.account("operator").post("/api/v1/investigations", params=given, content=content)
    assert asked.status_code == 202, asked.text
    (planned,) = made.work()
    assert planned.state == "waiting", planned.error
    return planned.id


def confirm(made: House, id: str) -> Any:
    return made.account("operator").post(f"/api/v1/jobs/{id}/confirm")


class Away:
    """A registry whose database is away when a record of some kind is added, so many times."""

    def __init__(
        self, made: House, kind: str, times: int, patch: pytest.MonkeyPatch, *, late: bool = False
    ) -> None:
        self._add, self._kind, self._late = made.home.registry.add, kind, late
        self.left = times
        patch.setattr(made.home.registry, "add", self)

    def __call__(self, record: Any) -> int:
        kind = "investigation" if callable(record) else record.kind
        if kind != self._kind or not self.left:
            return self._add(record)
        self.left -= 1
        if self._late:
            self._add(record)  # it is on record, and nobody hears of it
        raise Unavailable("postgresql://zkt@/x: the connection was lost")


def until_ended(made: House, id: str) -> JobRow:
    """The job, however often it has to be taken up again."""
    for _ in range(2 * ATTEMPTS):
        made.work()
        forget(made)
    return made.desk.jobs.find(id)


def check_paid_once(made: House) -> None:
    ledger = made.home.registry.ledger()
    assert len(ledger.investigations) == len(ledger.verdicts) == 1
    assert ledger.spent == PRICE


@pytest.mark.parametrize("late", [False, True], ids=["before it is there", "after it is there"])
@pytest.mark.parametrize("kind", ["investigation", "verdict"])
def test_a_database_that_is_away_for_a_moment_costs_no_verdict(
    small: House, copy: bytes, monkeypatch: pytest.MonkeyPatch, kind: str, late: bool
) -> None:
    job = upload(small, copy)
    confirm(small, job)
    Away(small, kind, 1, monkeypatch, late=late)
    (interrupted,) = small.work()
    assert (interrupted.state, interrupted.ended) == ("running", False)
    assert "the connection was lost" in str(interrupted.error)
    found = until_ended(small, job)
    assert (found.state, found.error) == ("done", None)
    assert found.result["named"] == ["bravo"]
    check_paid_once(small)


def test_a_database_that_stays_away_ends_the_job_and_the_job_says_how_to_carry_on(
    small: House, copy: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(small, copy)
    confirm(small, job)
    with monkeypatch.context() as patched:
        Away(small, "verdict", ATTEMPTS, patched)
        found = until_ended(small, job)
    assert found.state == "failed"
    assert "the connection was lost" in str(found.error)
    (place,) = small.home.registry.ledger().investigations
    assert small.home.registry.ledger().spent == PRICE
    client = small.account("operator")
    assert client.get(f"/api/v1/jobs/{job}").json()["open"] == place
    browser, csrf = small.browser("operator")
    for page in (f"/jobs/{job}", f"/cases/{place}"):
        assert "Carry on to the verdict" in browser.get(page).text, page
    auditor = small.account("auditor").get(f"/cases/{place}").text
    assert "no verdict yet" in auditor
    assert "Carry on" not in auditor
    answer = browser.post(f"/cases/{place}/carry-on", data={"csrf": csrf})
    assert answer.status_code == 303
    assert "A job is at it" in browser.get(f"/cases/{place}").text
    again = client.post(f"/api/v1/cases/{place}/carry-on")
    assert answer.headers["location"] == f"/jobs/{again.json()['id']}"
    (done,) = small.work()
    assert (done.state, done.result["place"], done.result["named"]) == ("done", place, ["bravo"])
    check_paid_once(small)
    assert small.account("auditor").get(f"/cases/{place}/report").status_code == 200
    assert "Its verdict is on record" in browser.get(f"/jobs/{job}").text
    assert client.get(f"/api/v1/jobs/{job}").json()["open"] is None
    assert "has its verdict already" in client.post(f"/api/v1/cases/{place}/carry-on").json()["detail"]
    assert client.post("/api/v1/cases/1/carry-on").status_code == 404


def killed_always(made: House, patch: pytest.MonkeyPatch) -> None:
    """Workers that are killed as soon as the price is paid."""

    def dies(*_: object, **__: object) -> Iterator[None]:
        raise KeyboardInterrupt

    patch.setattr("zktrace.tracing.protocol.investigate", dies)
    for _ in range(ATTEMPTS):
        with pytest.raises(KeyboardInterrupt):
            made.work()
        forget(made)
    assert made.work() == []


def test_after_the_last_worker_that_was_killed_the_job_says_how_to_carry_on(
    small: House, copy: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(small, copy)
    confirm(small, job)
    with monkeypatch.context() as patched:
        killed_always(small, patched)
    assert "too little memory" in str(small.desk.jobs.find(job).error)
    browser, csrf = small.browser("operator")
    (place,) = small.home.registry.ledger().investigations
    assert "Carry on to the verdict" in browser.get(f"/jobs/{job}").text
    carried = browser.post(f"/cases/{place}/carry-on", data={"csrf": csrf}).headers["location"]
    assert browser.post(f"{carried}/cancel", data={"csrf": csrf}).status_code == 303
    assert "Carry on to the verdict" in browser.get(f"/cases/{place}").text  # its upload is still there
    browser.post(f"/cases/{place}/carry-on", data={"csrf": csrf})
    (done,) = small.work()
    assert done.state == "done", done.error
    check_paid_once(small)


def test_a_case_whose_suspect_is_not_kept_names_the_command(
    small: House, copy: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(small, copy)
    confirm(small, job)
    with monkeypatch.context() as patched:
        killed_always(small, patched)
    Path(small.desk.jobs.find(job).arguments["file"]).unlink()
    (place,) = small.home.registry.ledger().investigations
    client = small.account("operator")
    assert f"zktrace cases resume {place} SUSPECT" in client.get(f"/cases/{place}").text
    answer = client.post(f"/api/v1/cases/{place}/carry-on")
    assert (answer.status_code, "zktrace cases resume" in answer.json()["detail"]) == (409, True)


def test_a_release_that_a_worker_had_put_on_record_is_found_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = house(tmp_path, release=False)
    content = model_file(tmp_path / "m.safetensors").read_bytes()
    job = made.account("operator").post("/api/v1/releases", params={"name": "r1"}, content=content).json()
    with monkeypatch.context() as patched:

        def away(*_: object, **__: object) -> None:
            raise Unavailable("away")

        patched.setattr(made.desk.jobs, "settle", away)
        made.work()
    assert until_ended(made, job["id"]).state == "done"
    assert list(made.home.registry.ledger().releases) == ["r1"]
    assert list((made.home.root / "service" / "uploads").iterdir()) == []


def test_of_two_uploads_of_one_suspect_the_second_is_not_paid_for_unasked(small: House, copy: bytes) -> None:
    first, second = upload(small, copy), upload(small, copy)
    confirm(small, first)
    small.work()
    (place,) = small.home.registry.ledger().investigations
    answer = confirm(small, second)
    assert answer.status_code == 409
    assert f"entry {place} investigated this suspect since this plan was made" in answer.json()["detail"]
    assert small.work() == []
    assert small.desk.jobs.find(second).state == "waiting"
    check_paid_once(small)
    third = upload(small, copy)  # its plan shows the case, so whoever confirms it knows
    assert small.desk.jobs.find(third).result["known"] == [place]
    assert confirm(small, third).status_code == 200
    (done,) = small.work()
    assert done.state == "done"
    assert small.home.registry.ledger().spent == 2 * PRICE


def test_two_uploads_that_are_confirmed_before_either_is_done_are_paid_for_once(
    small: House, copy: bytes
) -> None:
    first, second = upload(small, copy), upload(small, copy, budget="1/500")
    assert confirm(small, second).status_code == 200
    assert confirm(small, first).status_code == 200
    done = {each.id: each for each in small.work()}
    assert [done[each].state for each in (first, second)] == ["done", "done"]
    assert done[first].result["place"] == done[second].result["place"]
    (warning,) = done[second].result["warnings"]
    assert "at the price of 1/1000: 1/500 was not spent" in warning
    assert done[first].result["warnings"] == []
    assert warning in small.account("operator").get(f"/jobs/{second}").text
    check_paid_once(small)
