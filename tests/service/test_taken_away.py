"""Copies that go before they were fetched are asked for again, and those that nobody asked for go first."""

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.small import House, house, served
from service.test_fetch import free_port, recorded, running
from zktrace.errors import ServiceFailed
from zktrace.models import model_digest, open_model
from zktrace.service import asking, client, fetched
from zktrace.service.client import Service
from zktrace.service.fetched import make_room, place_of

SIZE = 100


@pytest.fixture
def made(tmp_path: Path) -> House:
    found = house(tmp_path)
    found.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
    found.work()
    return found


def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, free: int) -> Path:
    """Old and young copies, twice as many as there is room for; and so much room on the disk."""
    monkeypatch.setattr(fetched, "LIMIT", 2 * SIZE)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    for name, seconds in (("older", 9000), ("old", 5000), ("young", 300), ("younger", 200), ("youngest", 1)):
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(bytes(SIZE))
        os.utime(path, (time.time() - seconds,) * 2)
    return tmp_path


def test_copies_that_somebody_is_about_to_fetch_stay_beyond_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = filled(tmp_path, monkeypatch, free=1 << 40)
    assert make_room(place) == 0
    assert {each.stem for each in place.iterdir()} == {"young", "younger", "youngest"}


def test_on_a_full_disk_young_copies_go_too_and_it_is_said(
    made: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = filled(place_of(made.home), monkeypatch, free=0)
    station = made.station("alpha")
    station.post("/api/v1/copies/r1")
    (done,) = made.work()
    assert done.state == "done", done.error
    assert not (place / "young.safetensors").exists()
    assert (place / "younger.safetensors").exists()
    (warning,) = done.result["warnings"]
    assert "copies that others were about to fetch are to be made again (1)" in warning
    assert warning in made.account("operator").get(f"/jobs/{done.id}").text
    assert "warnings" not in station.get("/api/v1/copies/r1").json()


def test_a_copy_that_is_asked_for_or_fetched_is_young_again(made: House) -> None:
    station = made.station("alpha")
    station.post("/api/v1/copies/r1")
    made.work()
    (path,) = place_of(made.home).glob("*.safetensors")
    for ask in (
        lambda: station.post("/api/v1/copies/r1"),
        lambda: station.get("/api/v1/copies/r1/file"),
    ):
        os.utime(path, (0, 0))
        assert ask().status_code in (200, 202)
        assert path.stat().st_mtime > time.time() - fetched.YOUNG


def test_a_copy_that_goes_while_it_is_looked_for_is_not_there(
    made: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    station = made.station("alpha")
    station.post("/api/v1/copies/r1")
    made.work()
    known = Path.is_file

    def late(path: Path) -> bool:
        found = known(path)
        if found and path.parent == place_of(made.home):
            path.unlink()
        return found

    monkeypatch.setattr(Path, "is_file", late)
    assert station.get("/api/v1/copies/r1/file").status_code in (200, 404)
    for each in place_of(made.home).glob("*.safetensors"):
        each.unlink()
    assert station.get("/api/v1/copies/r1/file").status_code == 404
    assert station.post("/api/v1/copies/r1").json()["state"] == "queued"


def test_a_station_asks_again_for_a_copy_that_was_taken_away(
    made: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between "done" and its first byte, and again in the middle: what came is gone on with."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    path, part = tmp_path / "copy.safetensors", tmp_path / "copy.safetensors.part"
    pieces, known = client.Service._pieces, list[int]()

    def taken_away(self: Service, *given: object) -> None:
        known.append(part.stat().st_size)
        if len(known) < 3:
            for each in place_of(made.home).glob("*.safetensors"):
                each.unlink()
        if len(known) == 2:
            part.write_bytes(whole[:1000])
        pieces(self, *given)  # type: ignore[arg-type]

    with running(served(made.home, made.credentials, url=url), port):
        service = Service.signed_in(url, made.credentials["alpha"])
        service.fetch("r1", path)
        whole = path.read_bytes()
        monkeypatch.setattr(Service, "_pieces", taken_away)
        assert service.fetch("r1", path, replace=True) == recorded(made, "alpha")
    assert known == [0, 0, 1000]
    assert model_digest(open_model(path)) == recorded(made, "alpha")
    assert path.read_bytes() == whole


def test_a_copy_that_is_always_taken_away_is_given_up(
    made: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    url, asked = f"http://127.0.0.1:{port}", list[str]()
    copy = asking.copy

    def counted(*given: object) -> object:
        asked.append("")
        return copy(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(asking, "copy", counted)
    monkeypatch.setattr(asking, "file_of", lambda *_: None)
    monkeypatch.setattr(client, "_WAIT", 0.01)
    with running(served(made.home, made.credentials, url=url), port):
        service = Service.signed_in(url, made.credentials["alpha"])
        with pytest.raises(ServiceFailed, match="taken away 5 times; the same command goes on"):
            service.fetch("r1", tmp_path / "copy")
    assert len(asked) == client.ASKED
