"""What the API says is what the registry says, and its errors are those of the tree."""

import json
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from service.small import URL, House, TestClient, house, served
from service.test_access import TABLE
from service.test_fetch import free_port, running
from zktrace.errors import InvalidLog, InvalidProof, LimitExceeded, MalformedFile, Refused, WorkerDied
from zktrace.registry import export
from zktrace.registry.export import read_export, write_export
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Extension, Head, ProvenEntry
from zktrace.registry.registry import Registry
from zktrace.service.limits import HEADERS
from zktrace.service.problems import problem, status_of


def test_it_is_ready(shared: House) -> None:
    answer = shared.client().get("/healthz")
    assert answer.status_code == 200
    assert answer.text == f"ok {shared.home.head.size}\n"


def test_everybody_reads_head_entries_and_proofs_and_can_verify_them(shared: House, tmp_path: Path) -> None:
    client = shared.client()
    head = Head.from_text(client.get("/api/v1/head").json()["head"])
    assert head == shared.home.head
    listed = client.get("/api/v1/log/entries", params={"start": 1, "limit": 3}).json()["entries"]
    assert [each["index"] for each in listed] == [1, 2, 3]
    assert [each["entry"]["body"]["station"] for each in listed] == ["alpha", "bravo", "charlie"]
    for index in range(head.size):
        proven = ProvenEntry.from_bytes(client.get(f"/api/v1/log/entries/{index}/proof").content)
        proven.verify(head)
        assert client.get(f"/api/v1/log/entries/{index}").json()["index"] == index
    old = Head.of_leaves(shared.home.registry.leaves(2))
    found = Extension.from_bytes(client.get("/api/v1/log/consistency", params={"old": 2}).content)
    found.verify(old, head)
    path = tmp_path / "registry.zkt"
    path.write_bytes(client.get("/api/v1/log/export").content)
    assert read_export(path)[1] == head
    write_export(shared.home.registry, tmp_path / "as the command writes it")
    assert path.read_bytes() == (tmp_path / "as the command writes it").read_bytes()


def test_an_export_of_a_log_that_is_exchanged_meanwhile_is_no_whole_answer(
    shared: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE", 4)
    pick, port = Registry._pick, free_port()

    def picked(registry: Registry, ledger: Ledger, places: Sequence[int]) -> list[bytes]:
        found = pick(registry, ledger, places)
        if 4 in places:
            raise InvalidLog("entry 4 is not the one that was there before")
        return found

    monkeypatch.setattr(Registry, "_pick", picked)
    made = served(shared.home, shared.credentials, url=f"http://127.0.0.1:{port}")
    with running(made, port) as url, httpx.stream("GET", f"{url}/api/v1/log/export") as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete"):
            answer.read()


def test_an_export_never_has_the_whole_log_in_hand(shared: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(registry: Registry) -> list[bytes]:
        raise AssertionError("the whole log was read")

    monkeypatch.setattr(Registry, "lines", whole)
    assert shared.client().get("/api/v1/log/export").status_code == 200


def test_readers_see_what_the_ledger_has(shared: House) -> None:
    client = shared.account("auditor")
    found = client.get("/api/v1/overview").json()
    assert (found["stations"], found["copies"], found["cases"], found["certified"]) == (3, 3, 1, 1)
    assert client.get("/api/v1/budget").json()["left"] == "99/1000"
    assert [each["station"] for each in client.get("/api/v1/stations?start=1").json()["stations"]] == [
        "bravo",
        "charlie",
    ]
    assert client.get("/api/v1/stations/bravo").json()["copies"][0]["release"] == "r1"
    assert len(client.get("/api/v1/releases/r1").json()["copies"]) == 3
    assert client.get("/api/v1/releases/r1/broadcasts").json() == {"broadcasts": []}
    (case,) = client.get("/api/v1/cases").json()["cases"]
    assert case["named"] == ["bravo"]
    evidence = client.get(f"/api/v1/cases/{case['investigation']}/evidence").content
    import zktrace

    assert zktrace.judge(evidence, head=shared.home.head).named == ("bravo",)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/log/entries/99999", 404),
        ("/api/v1/log/entries/-1", 404),
        ("/api/v1/log/entries/x", 422),
        ("/api/v1/log/entries?limit=501", 422),
        ("/api/v1/log/consistency?old=99999", 404),
        ("/api/v1/log/consistency", 422),
        ("/api/v1/stations/nobody", 404),
        ("/api/v1/releases/none", 404),
        ("/api/v1/releases/none/broadcasts", 404),
        ("/api/v1/cases/0", 404),
        ("/api/v1/cases/0/evidence", 404),
        ("/api/v1/jobs/none", 404),
        ("/api/v1/jobs/%00", 422),
        ("/api/v1/nothing", 404),
    ],
)
def test_what_is_not_there_is_a_problem_in_json(shared: House, path: str, status: int) -> None:
    answer = shared.account("operator").get(path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert "\n" not in answer.json()["detail"]


def test_a_name_with_a_nul_is_no_name_on_any_database(shared: House) -> None:
    answer = shared.client().post("/api/v1/login", json={"name": "\0", "password": "x" * 20})
    assert (answer.status_code, answer.json()["error"]) == (422, "InputError")


def test_errors_of_the_tree_have_their_status() -> None:
    assert status_of(LimitExceeded("")) == 413
    assert status_of(Refused("")) == 409
    assert status_of(MalformedFile("")) == 422
    assert status_of(WorkerDied("")) == 503
    found = problem(InvalidProof(check="commitment", reason="it differs", round=3))
    assert (found["status"], found["error"], found["check"], found["round"]) == (
        422,
        "InvalidProof",
        "commitment",
        3,
    )


def test_a_fault_of_ours_tells_nothing(shared: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("zktrace.service.facts.head_facts", fails)
    client = TestClient(shared.app, base_url=URL, raise_server_exceptions=False)
    for path in ("/api/v1/head", "/"):
        answer = client.get(path)
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert all(answer.headers[name] == value for name, value in HEADERS.items())


def test_the_openapi_document_has_every_endpoint_of_the_api(shared: House) -> None:
    document = shared.client().get("/api/v1/openapi.json").json()
    assert document["info"]["title"] == "zktrace"
    assert len(document["paths"]) >= 25
    assert all(path.startswith("/api/v1/") for path in document["paths"])
    json.dumps(document)


def test_the_document_says_who_signs_in_what_is_sent_and_how_errors_look(shared: House) -> None:
    document = shared.client().get("/api/v1/openapi.json").json()
    operations = {
        (method.upper(), path): operation
        for path, found in document["paths"].items()
        for method, operation in found.items()
    }
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for place, operation in operations.items():
        assert ("security" in operation) == ("public" not in TABLE[place]), place
        assert "application/problem+json" in operation["responses"]["4XX"]["content"], place
        assert "422" not in operation["responses"], place
    for path, kind in (
        ("investigations", "application/octet-stream"),
        ("releases", "application/octet-stream"),
        ("receipts", "application/json"),
        ("login", "application/json"),
    ):
        assert list(operations["POST", f"/api/v1/{path}"]["requestBody"]["content"]) == [kind]


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/head", "/log"])
def test_a_database_that_is_away_is_named_in_the_log_and_not_to_strangers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    made = house(tmp_path)
    client = made.client()
    assert client.get(path).status_code == 200
    database = Path(made.home.database.place)
    database.rename(tmp_path / "elsewhere")
    database.mkdir()
    with caplog.at_level("WARNING", logger="uvicorn.error"):
        answers = [client.get(path) for _ in range(3)]
    assert {each.status_code for each in answers} == {503}
    assert "the database cannot be had at the moment" in answers[0].text
    assert str(tmp_path) not in answers[0].text
    assert [str(database) in each.message for each in caplog.records] == [True]  # once a minute
