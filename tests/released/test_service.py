"""What a service of an earlier version kept is there in this one: accounts, sessions, jobs and their work."""

import hashlib
import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed")

from registry import postgres
from registry.conftest import server
from released.service_sample import DUMPS, HERE, PASSWORD, workspace
from service.small import PLENTY, URL, House
from zktrace.service.app import make_app
from zktrace.service.desk import Settings
from zktrace.service.limits import Rates

__all__ = ["server"]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str | None:
    """Where the tables are: in the workspace's file, or in an empty database."""
    if request.param == "sqlite":
        return None
    reason = postgres.missing()
    if reason is not None:
        pytest.skip(reason)
    found: str = request.getfixturevalue("server").new_database()
    return found


def test_no_sample_changed_by_accident() -> None:
    stated = (HERE / "service.sha256").read_text()
    found = (f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in DUMPS)
    assert "".join(found) == stated
    assert len(DUMPS) >= 1
    assert not any(re.search("/(tmp|home|root|work|Users)/", each.read_text()) for each in DUMPS)


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: path.stem)
def test_accounts_sign_in_and_jobs_are_done(tmp_path: Path, dump: Path, url: str | None) -> None:
    home = workspace(tmp_path, dump, url)
    app = make_app(home, Settings(url=URL), rates=Rates(PLENTY))
    try:
        check_all_is_there(House(home=home, app=app, credentials={}))
    finally:
        home.database._engine.dispose()  # connections that a service keeps


def check_all_is_there(made: House) -> None:
    assert made.client("a-session-of-an-operator").get("/api/v1/me").json()["name"] == "an-operator"
    assert made.client("an-expired-session-of-an-auditor").get("/api/v1/me").status_code == 401
    assert made.client().post("/enter/a-link-of-an-auditor").status_code == 303
    for role in ("operator", "auditor"):
        assert made.account(role).get("/api/v1/me").json()["role"] == role
        given = {"name": f"an-{role}", "password": f"{PASSWORD} "}
        assert made.client().post("/api/v1/login", json=given).status_code == 401

    client = made.account("operator")
    jobs = {each["state"]: each["id"] for each in client.get("/api/v1/jobs").json()["jobs"]}
    assert sorted(jobs) == ["cancelled", "done", "failed", "queued", "running", "waiting"]
    assert "there is no release" in client.get(f"/api/v1/jobs/{jobs['failed']}").json()["error"]
    plan = client.get(f"/api/v1/jobs/{jobs['waiting']}").json()
    assert [each["share"] for each in plan["result"]["looks"]] == ["19/20", "1/20"]

    spent = made.home.registry.ledger().spent
    assert {job.id for job in made.work()} == {jobs["queued"], jobs["running"]}
    assert {made.desk.jobs.find(jobs[state]).state for state in ("queued", "running", "done")} == {"done"}
    assert made.desk.jobs.find(jobs["running"]).attempt == 2
    assert made.desk.jobs.find(jobs["waiting"]).state == "waiting"
    assert made.home.registry.ledger().spent == spent

    assert client.post(f"/api/v1/jobs/{jobs['waiting']}/confirm").status_code == 200
    (traced,) = made.work()
    assert (traced.state, traced.result["named"]) == ("done", ["alpha"])
