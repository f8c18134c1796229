"""Stations that enrol over HTTP: by an invitation, once, with a proof of their own key."""

import json
from pathlib import Path
from typing import Any

import pytest

import zktrace
from service.small import House, house
from zktrace.primitives.canonical import from_json, to_json
from zktrace.registry.workspace import Home


@pytest.fixture
def small(tmp_path: Path) -> House:
    return house(tmp_path, stations=("alpha",), release=False)


def invited(small: House, station: str) -> str:
    answer = small.account("operator").post("/api/v1/invitations", json={"station": station})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["invitation"])


def asked(small: House, credential: zktrace.Credential) -> str:
    """A request over what the service offers."""
    return credential.request(small.client().get("/api/v1/offer").json()["offer"]).to_bytes().decode()


def join(small: House, invitation: str, request: str) -> Any:
    body = json.dumps({"invitation": invitation, "request": request})  # whatever is in it
    headers = {"content-type": "application/json"}
    return small.client().post("/api/v1/enrolments", content=body, headers=headers)


def test_whoever_is_invited_enrols_once_and_signs_in(small: House) -> None:
    credential = zktrace.Credential.new("bravo")
    code, request = invited(small, "bravo"), asked(small, credential)
    answer = join(small, code, request)
    assert (answer.status_code, answer.json()) == (201, {"station": "bravo", "entry": 2, "place": 1})
    kept = Home.open(small.home.root).request_of("bravo")
    assert kept is not None
    assert kept.to_bytes().decode() == request
    assert join(small, code, request).status_code == 401  # used up
    small.credentials["bravo"] = credential
    assert small.station("bravo").get("/api/v1/me").json()["place"] == 1


def test_an_invitation_outlives_what_cannot_be_put_on_record(small: House) -> None:
    credential = zktrace.Credential.new("bravo")
    code, request = invited(small, "bravo"), asked(small, credential)
    value = from_json(request.encode(), what="a request")
    value["nonce"] = "00" * 32
    for bad in ("", "{}", "no request", to_json(value).decode(), "\ud800"):
        assert join(small, code, bad).status_code == 422, bad
    known = small.credentials["alpha"]
    assert join(small, code, asked(small, known)).status_code == 409  # her credential is enrolled already
    assert small.home.registry.ledger().by_row == ["alpha"]
    assert [each.name for each in (small.home.root / "requests").iterdir()] == ["alpha.json"]
    assert join(small, code, request).status_code == 201


def test_a_code_is_for_its_name_and_nothing_else(small: House) -> None:
    code = invited(small, "bravo")
    bearer = small.client(code)
    assert bearer.get("/api/v1/me").status_code == 401
    assert join(small, "x" * 43, "{}").status_code == 401
    assert join(small, small.account("operator").headers["authorization"][7:], "{}").status_code == 401
    operator = small.account("operator")
    for name in ("", "..", "a/b", "x" * 65):
        assert operator.post("/api/v1/invitations", json={"station": name}).status_code == 409, name
    answer = operator.post("/api/v1/invitations", json={"station": "alpha"})
    assert answer.status_code == 409
    assert "enrolled already" in answer.json()["detail"]


def test_the_first_of_two_invitations_for_a_name_counts(small: House) -> None:
    first, second = invited(small, "bravo"), invited(small, "bravo")
    one, other = (asked(small, zktrace.Credential.new("bravo")) for _ in range(2))
    assert join(small, second, one).status_code == 201
    answer = join(small, first, other)
    assert answer.status_code == 409
    assert "enrolled already" in answer.json()["detail"]


def test_the_console_shows_an_invitation_once(small: House) -> None:
    browser, csrf = small.browser("operator")
    assert "Invite a station" in browser.get("/stations").text
    answer = browser.post("/stations/invite", data={"csrf": csrf, "station": "bravo"})
    assert answer.status_code == 200
    assert "zktrace join http://testserver --key bravo.key --invitation " in answer.text
    code = answer.text.split("--invitation ")[1].split("<")[0]
    assert join(small, code, asked(small, zktrace.Credential.new("bravo"))).status_code == 201
    assert browser.post("/stations/invite", data={"station": "charlie"}).status_code == 403
