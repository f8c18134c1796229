"""Stations sign for rounds of a guarded release over HTTP: listed and taken by a worker, shown to all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from service.small import House, arrays, house, served
from service.test_fetch import free_port, running
from service.test_jobs import forget
from zktrace.cli.app import run
from zktrace.front.receipts import sign
from zktrace.models import ModelState, model_digest
from zktrace.registry.signing import Delivery, Receipt
from zktrace.registry.workspace import Home
from zktrace.service.worker import do

WHERE = "/api/v1/copies/federation/delivery"
STATE = {"fc.weight": np.random.default_rng(8).normal(size=(64, 64)).astype(np.float32)}
Sent = dict[str, list[bytes]]


def guarded(made: House, rounds: int = 4) -> Sent:
    """A guarded federation: alpha is there in every round, charlie in every second. Digests of what came."""
    guard, sent = made.home.guard(STATE, length=256), {"alpha": list[bytes](), "charlie": list[bytes]()}
    for number in range(rounds):
        grown = {name: each + np.float32(number / 8) for name, each in STATE.items()}
        broadcast = guard.broadcast(grown, f"round {number}")
        for name in ("alpha", "charlie") if number % 2 else ("alpha",):
            sent[name].append(model_digest(ModelState.from_arrays(broadcast.outgoing(name))))
        assert broadcast.close() is not None
    return sent


@pytest.fixture
def made(tmp_path: Path) -> House:
    return house(tmp_path, release=False)


@pytest.fixture
def sent(made: House) -> Sent:
    return guarded(made)


def listed(made: House, name: str) -> Delivery:
    """What a station is asked to sign for, by way of a worker."""
    client = made.station(name)
    assert client.post(WHERE).status_code == 202
    assert client.get(WHERE, params={"rounds": 1}).status_code == 202
    made.work()
    answer = client.get(WHERE, params={"rounds": 1})
    assert answer.status_code == 200, answer.text
    return Delivery.from_bytes(answer.content)


def test_rounds_are_listed_and_taken_by_a_worker_alone(
    made: House, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = made.station("charlie")

    @contextmanager
    def listening() -> Iterator[None]:
        """Whoever listens does not open the code key."""
        with monkeypatch.context() as patched:
            patched.setattr(Home, "custody", property(lambda _: pytest.fail("the code key was opened")))
            yield

    with listening():
        assert client.get(WHERE, params={"rounds": 1}).status_code == 404
        assert client.post(WHERE).json()["state"] == "queued"
    made.work()
    with listening():
        asked = Delivery.from_bytes(client.get(WHERE, params={"rounds": 1}).content)
    assert (asked.rounds, list(asked.copies)) == ((1, 3), sent["charlie"])
    receipt = sign(made.credentials["charlie"].key, asked, [], unseen=sent["charlie"])
    with listening():
        answer = client.post("/api/v1/receipts", content=receipt.to_bytes())
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    (done,) = made.work()
    assert done.state == "done", done.error
    told = client.get(f"/api/v1/receipts/{answer.json()['job']}").json()
    ledger = made.home.registry.ledger()
    ((place, record),) = ledger.received(release="federation")
    assert (told["state"], told["entry"], told["copies"]) == ("done", place, 2)
    assert record.rounds == (1, 3)
    assert list((made.home.root / "service" / "uploads").iterdir()) == []
    again = client.post("/api/v1/receipts", content=receipt.to_bytes()).json()
    assert (again["entry"], made.work()) == (place, [])
    assert made.home.registry.ledger().size == ledger.size
    client.post(WHERE)
    made.work()
    nothing = client.get(WHERE, params={"rounds": 1})
    assert nothing.status_code == 409
    assert "no round of federation that it has not signed for" in nothing.json()["detail"]
    jobs = made.account("operator").get("/api/v1/jobs").text
    assert str(made.home.root) not in jobs
    assert sent["charlie"][0].hex() not in jobs


def test_a_worker_that_is_killed_after_it_took_a_receipt_takes_it_once(
    made: House, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = sign(made.credentials["alpha"].key, listed(made, "alpha"), [], unseen=sent["alpha"])
    id = made.station("alpha").post("/api/v1/receipts", content=receipt.to_bytes()).json()["job"]
    job = made.desk.jobs.claim()
    assert job is not None
    with monkeypatch.context() as patched:
        patched.setattr(made.desk.jobs, "settle", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            do(made.home, made.desk.jobs, job, lease=1e6)
    forget(made)
    (done,) = made.work()
    assert (done.id, done.state) == (id, "done"), done.error
    assert len(made.home.registry.ledger().receipts) == 1


def test_what_does_not_hold_is_refused_and_not_kept(made: House, sent: Sent) -> None:
    asked = listed(made, "alpha")
    key, other = made.credentials["alpha"].key, made.credentials["bravo"].key
    before = made.home.head
    client = made.station("alpha")
    swapped = replace(asked, copies=(asked.copies[1], asked.copies[0], *asked.copies[2:]))
    answer = client.post("/api/v1/receipts", content=Receipt.sign(key, swapped).to_bytes())
    assert answer.status_code == 202
    (failed,) = made.work()
    told = client.get(f"/api/v1/receipts/{answer.json()['job']}").json()
    assert (failed.state, told["state"]) == ("failed", "failed")
    assert "broadcast 0 is not the one" in told["error"]
    assert made.station("bravo").get(f"/api/v1/receipts/{failed.id}").status_code == 404
    made.home.release(arrays(), name="r1")
    before = made.home.head
    for receipt, status, words in (
        (Receipt.sign(other, asked), 422, ""),
        (Receipt(delivery=asked, proof=b"no proof"), 422, ""),
        (Receipt.sign(key, replace(asked, rounds=(0, 1, 2, 9))), 409, "no broadcast 9"),
        (Receipt.sign(key, replace(asked, release="r1")), 409, "r1 is not guarded"),
        (Receipt.sign(key, replace(asked, release="r9")), 404, "there is no release r9"),
        (Receipt.sign(key, replace(asked, setup=bytes(32))), 422, "it is for another registry"),
        (Receipt.sign(key, replace(asked, head="zkt-head-v1:1:" + "0" * 64)), None, ""),
    ):
        answer = client.post("/api/v1/receipts", content=receipt.to_bytes())
        assert answer.status_code == (status or answer.status_code) >= 400, answer.text
        assert words in answer.json()["detail"]
        assert made.work() == []  # the log was enough to see it
    theirs = made.station("bravo").post("/api/v1/receipts", content=Receipt.sign(key, asked).to_bytes())
    assert theirs.status_code == 422
    assert made.home.head == before
    assert list((made.home.root / "service" / "uploads").iterdir()) == []


def test_a_station_has_one_receipt_taken_at_a_time(made: House, sent: Sent) -> None:
    asked, key = listed(made, "alpha"), made.credentials["alpha"].key
    client, uploads = made.station("alpha"), made.home.root / "service" / "uploads"
    first, second = (Receipt.sign(key, asked).to_bytes() for _ in range(2))
    ids = {client.post("/api/v1/receipts", content=first).json()["job"] for _ in range(2)}
    refused = client.post("/api/v1/receipts", content=second)
    assert (refused.status_code, "is just being taken" in refused.json()["detail"]) == (409, True)
    assert len(list(uploads.iterdir())) == len(ids) == 1
    (done,) = made.work()
    assert (done.state, {done.id}) == ("done", ids), done.error
    assert client.post("/api/v1/receipts", content=second).status_code == 409
    assert (made.work(), list(uploads.iterdir())) == ([], [])


def test_rounds_are_listed_again_only_if_any_were_sent_or_signed_for_since(made: House) -> None:
    guard = made.home.guard(STATE, length=256)
    client, count = made.station("alpha"), iter(range(9))

    def send() -> None:
        broadcast = guard.broadcast(STATE, f"round {next(count)}")
        broadcast.outgoing("alpha")
        assert broadcast.close() is not None

    def asked() -> int:
        """How many jobs it took to be listed."""
        for _ in range(3):
            assert client.post(WHERE).status_code == 202
        return len(made.work())

    send()
    assert (asked(), asked()) == (1, 0)
    send()
    assert (asked(), asked()) == (1, 0)
    said = Delivery.from_bytes(client.get(WHERE, params={"rounds": 1}).content)
    receipt = sign(made.credentials["alpha"].key, said, [], unseen=said.copies)
    client.post("/api/v1/receipts", content=receipt.to_bytes())
    (taken,) = made.work()
    assert (said.rounds, taken.state) == ((0, 1), "done")
    assert asked() == 1


def test_a_release_that_is_not_guarded_has_no_rounds(tmp_path: Path) -> None:
    client = house(tmp_path).station("alpha")
    answer = client.post("/api/v1/copies/r1/delivery")
    assert (answer.status_code, "is not guarded" in answer.json()["detail"]) == (409, True)
    assert client.post("/api/v1/copies/r9/delivery").status_code == 404


def test_pages_show_who_signed_for_which_round(made: House, sent: Sent) -> None:
    reader, station = made.account("auditor"), made.station("charlie")
    assert "No copy was made" not in station.get("/").text
    assert "come in the rounds of its federation" in station.get("/").text
    assert "You have signed for no round yet" in station.get("/").text
    assert "nobody yet" in reader.get("/releases/federation").text
    receipt = sign(made.credentials["charlie"].key, listed(made, "charlie"), [], unseen=sent["charlie"])
    station.post("/api/v1/receipts", content=receipt.to_bytes())
    made.work()
    ((place, _),) = made.home.registry.ledger().received(release="federation")
    rounds = reader.get("/api/v1/releases/federation/broadcasts").json()["broadcasts"]
    assert {each["number"]: each["signed"] for each in rounds} == {0: 0, 1: 1, 2: 0, 3: 1}
    assert rounds[0]["signers"] == [{"station": "charlie", "entry": place}]
    page = reader.get("/releases/federation").text
    assert page.count(f'<a href="/log/{place}">') == 2
    for shown in (station.get("/").text, reader.get("/stations/charlie").text):
        assert "1, 3" in shown
        assert f"/log/{place}" in shown
    assert "charlie" not in made.station("alpha").get("/").text
    operator = made.account("operator")
    assert "receipt" in operator.get("/jobs").text
    for job in made.desk.jobs.listed():
        assert "A receipt for rounds" in operator.get(f"/jobs/{job.id}").text


@pytest.fixture
def url(made: House, sent: Sent) -> Iterator[str]:
    """A service on this machine, with somebody who does its jobs."""
    port = free_port()
    with running(served(made.home, made.credentials, url=f"http://127.0.0.1:{port}"), port) as found:
        yield found


def test_a_station_signs_for_its_rounds_by_one_command(
    made: House, url: str, sent: Sent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = str(made.credentials["alpha"].save(tmp_path))
    command = ["sign", url, "--key", key, "--release", "federation", "--rounds"]
    digests = [word for each in sent["alpha"] for word in ("--digest", each.hex())]
    assert run([*command, *digests[:-2], "--receipt", str(tmp_path / "none")]) == 2
    assert "none of those that were given" in capsys.readouterr().err
    assert run([*command, *digests, "--receipt", str(tmp_path / "mine"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rounds"] == [0, 1, 2, 3]
    ((place, record),) = made.home.registry.ledger().received(release="federation")
    assert (facts["entry"], record.receipt) == (
        place,
        Receipt.from_bytes((tmp_path / "mine").read_bytes()).digest(),
    )
    assert run([*command, *digests, "--receipt", str(tmp_path / "again")]) == 2
    assert "has not signed for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1), "0 to 1"),
        ((0, 1, 2, 5, 7, 8), "0 to 2, 5, 7 to 8"),
    ],
)
def test_rounds_are_said_as_people_say_them(numbers: tuple[int, ...], said: str) -> None:
    from zktrace.service.facts import spans

    assert spans(numbers) == said
