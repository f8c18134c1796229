"""A station fetches its own copy: made on demand, in pieces, its digest checked, from a service that runs."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from service.small import House, house, served
from zktrace.cli.app import run
from zktrace.errors import Refused, ServiceFailed
from zktrace.models import model_digest, open_model
from zktrace.registry.signing import Delivery, Receipt
from zktrace.service import receiving
from zktrace.service.client import Service


@contextlib.contextmanager
def running(made: House, port: int) -> Iterator[str]:
    """A service on a port, in a thread, with somebody who does its jobs."""
    config = uvicorn.Config(
        made.app, host="127.0.0.1", port=port, log_level="error", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.05):
            made.work()

    worker = threading.Thread(target=work)
    thread.start()
    worker.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        ended.set()
        server.should_exit = True
        thread.join()
        worker.join()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Copies are on record, and none lies in the workspace."""
    found = house(tmp_path_factory.mktemp("fetch"))
    found.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
    found.work()
    assert list((found.home.root / "copies").glob("**/*.safetensors")) == []
    for name, credential in found.credentials.items():
        credential.save(found.home.root.parent)
        assert name
    return found


@pytest.fixture(scope="module")
def url(made: House) -> Iterator[str]:
    port = free_port()
    with running(served(made.home, made.credentials, url=f"http://127.0.0.1:{port}"), port) as found:
        yield found


def recorded(made: House, station: str) -> bytes:
    (found,) = (each.copy for _, each in made.home.registry.ledger().dispatches if each.station == station)
    return found


def test_every_station_gets_its_own_copy_and_it_is_traced_to_it(
    made: House, url: str, tmp_path: Path
) -> None:
    digests = set()
    for name, credential in made.credentials.items():
        path = tmp_path / f"{name}.safetensors"
        digest = Service.signed_in(url, credential).fetch("r1", path)
        assert digest == recorded(made, name) == model_digest(open_model(path))
        digests.add(digest)
    assert len(digests) == 3
    case = made.home.trace(tmp_path / "charlie.safetensors", budget="1/1000")
    assert case.named == ("charlie",)
    assert len(made.home.registry.ledger().dispatches) == 3  # made again is no new copy


def test_a_download_goes_on_where_it_ended(made: House, url: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.safetensors"
    service = Service.signed_in(url, made.credentials["alpha"])
    service.fetch("r1", path)
    whole = path.read_bytes()
    path.unlink()
    begun = tmp_path / "copy.safetensors.part"
    begun.write_bytes(whole[:1000])
    shares: list[float] = []
    service.fetch("r1", path, progress=lambda what, share: shares.append(share))
    assert path.read_bytes() == whole
    assert not begun.exists()
    with pytest.raises(Refused, match="exists already"):
        service.fetch("r1", path)
    begun.write_bytes(b"\0" * len(whole))  # what lies there is of something else
    with pytest.raises(ServiceFailed, match="is no model, and is not kept"):
        service.fetch("r1", path, replace=True)
    service.fetch("r1", path, replace=True)  # and is in nobody's way
    assert path.read_bytes() == whole


def test_a_copy_that_was_taken_away_is_made_again_bit_for_bit(made: House, url: str, tmp_path: Path) -> None:
    service = Service.signed_in(url, made.credentials["bravo"])
    service.fetch("r1", tmp_path / "one")
    for each in (made.home.root / "service" / "fetched").iterdir():
        each.unlink()
    service.fetch("r1", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_pieces_are_asked_for_by_range_of_this_very_copy(made: House, url: str) -> None:
    import http.client

    service = Service.signed_in(url, made.credentials["alpha"])
    while service.call("POST", "/api/v1/copies/r1")["state"] != "done":
        time.sleep(0.05)
    digest = recorded(made, "alpha").hex()

    def asked(**headers: str) -> tuple[int, int]:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        sent["authorization"] = f"Bearer {service.token}"
        with contextlib.closing(http.client.HTTPConnection(url.removeprefix("http://"))) as connection:
            connection.request("GET", "/api/v1/copies/r1/file", headers=sent)
            answer = connection.getresponse()
            return answer.status, len(answer.read())

    status, size = asked()
    assert status == 200
    assert asked(range="bytes=100-199", if_range=f'"{digest}"') == (206, 100)
    assert asked(range="bytes=100-199", if_range='"another"') == (200, size)
    assert asked(range=f"bytes={size}-", if_range=f'"{digest}"')[0] == 416


def test_the_commands_of_a_station(
    made: House, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, out = str(made.home.root.parent / "alpha.key"), tmp_path / "mine.safetensors"
    assert run(["fetch", url, "--key", key, "--release", "r1", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == recorded(made, "alpha").hex()
    assert run(["login", url, "--key", key]) == 0
    assert capsys.readouterr().out.startswith(f"{url}/enter/")
    assert run(["fetch", url, "--key", key, "--release", "r9"]) == 2
    assert "there is no release r9" in capsys.readouterr().err
    assert run(["login", f"http://127.0.0.1:{free_port()}", "--key", key]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert run(["login", "ftp://x", "--key", key]) == 2


def test_a_station_loads_neither_a_database_nor_a_web_framework() -> None:
    code = "import sys, zktrace.service.client; print(*sys.modules)"
    loaded = {
        name.split(".")[0]
        for name in subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
    }
    assert not {"fastapi", "starlette", "uvicorn", "sqlalchemy", "jinja2", "torch", "httpx"} & loaded


def test_who_has_no_copy_or_is_revoked_gets_none(tmp_path: Path) -> None:
    from zktrace.registry.records import RevocationRecord

    made = house(tmp_path)
    client = made.station("alpha")
    assert client.post("/api/v1/copies/r1").status_code == 404
    assert client.get("/api/v1/copies/r1").status_code == 404
    assert client.get("/api/v1/copies/r1/file").status_code == 404
    made.home.dispatch("alpha", "r1")
    assert client.post("/api/v1/copies/r1").json()["state"] == "queued"
    assert client.get("/api/v1/copies/r1/file").status_code == 404
    made.work()
    assert client.get("/api/v1/copies/r1/file").status_code == 200
    made.home.registry.add(RevocationRecord(station="alpha", reason="it left"))
    assert client.get("/api/v1/copies/r1/file").status_code == 409
    assert client.post("/api/v1/copies/r1").status_code == 409


def test_a_copy_made_with_other_settings_is_not_passed_off_as_the_one_on_record(tmp_path: Path) -> None:
    from zktrace.marking.settings import CopySettings

    made = house(tmp_path)
    copy = made.home.dispatch("alpha", "r1", settings=CopySettings(strength=0.05))
    client = made.station("alpha")
    client.post("/api/v1/copies/r1")
    (done,) = made.work()
    assert done.state == "done"  # its file is kept
    copy.path.unlink()
    assert client.post("/api/v1/copies/r1").json()["state"] == "queued"
    (failed,) = made.work()
    assert "made with other settings" in str(failed.error)
    assert len(made.home.registry.ledger().dispatches) == 1


def test_a_station_signs_for_the_copy_that_it_fetched(
    made: House, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, out, receipt = str(made.home.root.parent / "bravo.key"), tmp_path / "mine", tmp_path / "receipt"
    command = ["fetch", url, "--key", key, "--release", "r1", "--out", str(out), "--receipt", str(receipt)]
    before = made.home.registry.ledger().size
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entry"] == before
    assert made.home.registry.ledger().holding("r1").signers == ["bravo"]
    assert Receipt.from_bytes(receipt.read_bytes()).delivery.copies == (recorded(made, "bravo"),)
    assert run(command) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_station_signs_for_nothing_else_than_what_it_has(made: House, url: str, tmp_path: Path) -> None:
    charlie = made.credentials["charlie"]
    service = Service.signed_in(url, charlie)
    service.fetch("r1", tmp_path / "mine")
    Service.signed_in(url, made.credentials["alpha"]).fetch("r1", tmp_path / "other")
    with pytest.raises(Refused, match="none of those that were given"):
        service.sign(charlie.key, "r1", tmp_path / "other")
    assert "charlie" not in made.home.registry.ledger().holding("r1").signers


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"station": "bravo"}, "of bravo for copies of r1"),
        ({"release": "another-release"}, "of charlie for copies of another-release"),
        ({"rounds": (7,)}, "of charlie for rounds of r1"),
    ],
)
def test_a_station_signs_as_nobody_else_and_for_no_other_release(
    made: House,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, Any],
    said: str,
) -> None:
    """A service that puts other words around the right digest."""
    charlie = made.credentials["charlie"]
    service = Service.signed_in(url, charlie)
    service.fetch("r1", tmp_path / "mine")
    asked = receiving.asked

    def other(*given: Any) -> bytes:
        return replace(Delivery.from_bytes(asked(*given)), **changed).to_bytes()

    monkeypatch.setattr(receiving, "asked", other)
    monkeypatch.setattr(Receipt, "sign", lambda *_: pytest.fail("it was signed"))
    with pytest.raises(Refused, match=f"{said}, and not of charlie for copies of r1: nothing is signed"):
        service.sign(charlie.key, "r1", tmp_path / "mine")
    monkeypatch.setattr(Service, "_listed", lambda _, where: service._bytes("GET", where, b"", limit=9999))
    monkeypatch.setattr(receiving, "asked", asked)
    with pytest.raises(Refused, match="for copies of r1, and not of charlie for rounds of r1"):
        service.sign_all(charlie.key, "r1", [tmp_path / "mine"], rounds=True)
