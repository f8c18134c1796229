"""Stations sign for their copies over HTTP, and everybody sees who watches the log."""

import json
from pathlib import Path

import pytest

from service.small import House, house
from zktrace.front.receipts import kept, sign
from zktrace.registry.signing import Delivery, Receipt
from zktrace.registry.witnessing import PublicLog
from zktrace.transparency.keys import Kind, Signer
from zktrace.transparency.note import Note


@pytest.fixture
def made(tmp_path: Path) -> House:
    """Three stations; alpha and bravo have copies."""
    found = house(tmp_path)
    for name in ("alpha", "bravo"):
        found.home.dispatch(name, "r1")
    return found


def signed(made: House, name: str, by: str | None = None) -> tuple[Delivery, bytes]:
    """What a station is asked, and its answer."""
    asked = Delivery.from_bytes(made.station(name).get("/api/v1/copies/r1/delivery").content)
    key = made.credentials[by or name].key
    return asked, sign(key, asked, [made.home.copy_path("r1", name)]).to_bytes()


def test_a_receipt_goes_on_record_and_is_shown(made: House) -> None:
    asked, receipt = signed(made, "alpha")
    assert [each.copy for _, each in made.home.registry.ledger().dispatches][:1] == list(asked.copies)
    answer = made.station("alpha").post("/api/v1/receipts", content=receipt)
    assert answer.status_code == 201
    entry = answer.json()["entry"]
    ((place, path),) = kept(made.home, "alpha", "r1")
    assert place == entry
    assert path is not None
    assert Receipt.from_bytes(path.read_bytes()).to_bytes() == receipt
    reader = made.account("auditor")
    copies = {each["station"]: each["signed"] for each in reader.get("/api/v1/releases/r1").json()["copies"]}
    assert copies == {"alpha": entry, "bravo": None}
    page = reader.get("/releases/r1").text
    assert f"/log/{entry}" in page
    assert "not yet" in page
    assert made.station("alpha").get("/api/v1/me").json()["copies"][0]["signed"] == entry
    again = made.station("alpha").get("/api/v1/copies/r1/delivery")
    assert again.status_code == 409
    assert "that it has not signed for" in again.json()["detail"]
    assert made.station("alpha").post("/api/v1/receipts", content=receipt).status_code == 409


def test_a_receipt_of_somebody_else_or_by_another_key_is_refused(made: House) -> None:
    before = made.home.head
    _, receipt = signed(made, "alpha")
    other = made.station("bravo").post("/api/v1/receipts", content=receipt)
    assert other.status_code == 422, other.text
    assert "another station's" in other.json()["detail"]
    _, forged = signed(made, "alpha", by="bravo")
    assert made.station("alpha").post("/api/v1/receipts", content=forged).status_code == 422
    for bad in (b"", b"{}", receipt[:-20], receipt.replace(b"alpha", b"bravo")):
        assert made.station("alpha").post("/api/v1/receipts", content=bad).status_code == 422
    assert made.home.head == before


def test_the_log_shows_its_witnesses(made: House) -> None:
    anybody = made.client()
    assert "no witnesses" in anybody.get("/log").text
    assert anybody.get("/api/v1/log/checkpoint").status_code == 404
    assert anybody.get("/api/v1/log/witnesses").json() == {"checkpoint": None, "witnesses": []}
    log = PublicLog(made.home)
    log.make_keys("north.example/log", [Kind.NOTE])
    witness = Signer.generate("w1.example", Kind.COSIGNATURE)
    log.add_witness(witness.verifier)
    note = log.sign()
    assert Note.from_bytes(anybody.get("/api/v1/log/checkpoint").content) == note
    said = anybody.get("/api/v1/log/witnesses").json()
    assert said["checkpoint"]["size"] == made.home.registry.ledger().size
    assert said["witnesses"] == [{"name": "w1.example", "key": witness.verifier.to_text(), "cosigned": False}]
    page = anybody.get("/log").text
    assert "north.example/log" in page
    assert "not yet" in page
    private = log.keys_path.read_text().split("+")[-1].strip()
    assert private not in page + json.dumps(said)
