"""Receipts: what a station is asked to sign for, and what it signed.

Of copies that were dispatched, that is all on record. Whose rounds of a guarded release are signed for is
compared with lists that stand behind the code key, and the process that listens has none. It checks what the
log is enough for, keeps what came, and a worker does the rest, as a job: one at a time for a station.
"""

import secrets

from zktrace.errors import InvalidProof, Refused
from zktrace.front.receipts import check_signed, delivery, take
from zktrace.primitives.files import write_atomic
from zktrace.registry.ledger import Ledger
from zktrace.registry.log import Head
from zktrace.registry.signing import Delivery, Receipt
from zktrace.service import facts
from zktrace.service.desk import FrontDesk
from zktrace.service.job import JobRow
from zktrace.service.problems import not_there
from zktrace.service.store import folder


def asked(desk: FrontDesk, release: str, station: str) -> bytes:
    """The delivery that a station has not signed for yet."""
    facts.release_of(desk.home.registry.ledger(), release)
    return delivery(desk.home, station, release).to_bytes()


def ask_for_rounds(desk: FrontDesk, release: str, station: str) -> JobRow:
    """Have a worker make the delivery of the rounds that a station has not signed for.

    The last one is as good as long as nothing was sent or signed for since.
    """
    ledger = desk.home.registry.ledger()
    _check_guarded(ledger, release)
    found = desk.jobs.latest(_subject(release, station))
    if found is not None and found.state == "done" and _still_so(ledger, found) and desk.jobs.keep(found):
        return found
    told = {"release": release, "station": station}
    return desk.jobs.add("receipt", told, subject=_subject(release, station), by=station)


def rounds_asked(desk: FrontDesk, release: str, station: str) -> JobRow:
    """The job that makes or made it; Refused with its reason if it came to nothing."""
    found = desk.jobs.latest(_subject(release, station))
    if found is None:
        raise not_there(f"the rounds of {release[:64]} are not listed for you: ask for it first")
    if found.ended and found.state != "done":
        raise Refused(found.error or f"the job is {found.state}")
    return found


def taken(desk: FrontDesk, data: bytes, station: str) -> facts.Facts | JobRow:
    """A receipt of the station that sends it, put on record; or the job that does it."""
    receipt = Receipt.from_bytes(data)
    said = receipt.delivery
    if said.station != station:
        raise InvalidProof(check="receipt", reason="it is another station's")
    if said.rounds:
        return _of_rounds(desk, receipt)
    entry = take(desk.home, receipt, allow_weak_params=desk.settings.allow_weak_params)
    return _told(receipt, entry)


def _of_rounds(desk: FrontDesk, receipt: Receipt) -> facts.Facts | JobRow:
    """On record already; else all that the log can say of it is checked before a worker has it."""
    ledger, said = desk.home.registry.ledger(), receipt.delivery
    _check_guarded(ledger, said.release)
    for place, each in ledger.received(station=said.station, release=said.release):
        if each.receipt == receipt.digest():
            return _told(receipt, place)
    check_signed(ledger, receipt, allow_weak_params=desk.settings.allow_weak_params)
    return _kept_for_a_worker(desk, receipt)


def _kept_for_a_worker(desk: FrontDesk, receipt: Receipt) -> JobRow:
    digest, said = receipt.digest().hex(), receipt.delivery
    path = folder(desk.home, "uploads") / f"receipt-{secrets.token_hex(16)}"
    told = {
        "file": str(path),
        "receipt": digest,
        "release": said.release,
        "station": said.station,
        "weak": desk.settings.allow_weak_params,
    }
    try:
        write_atomic(path, receipt.to_bytes(), secret=True)
        subject = f"receipt:{said.release}:{said.station}"
        job = desk.jobs.add("receipt", told, subject=subject, by=said.station)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    if job.arguments["file"] != str(path):
        path.unlink(missing_ok=True)
    if job.arguments["receipt"] != digest:
        raise Refused(f"another receipt of yours for {said.release} is just being taken: try again after it")
    return job


def state_of(desk: FrontDesk, id: str, station: str) -> JobRow:
    """The job that takes a station's own receipt."""
    found = desk.jobs.find(id)
    if found.kind != "receipt" or found.asked_by != station or "file" not in found.arguments:
        raise not_there("there is no such receipt")
    return found


def _subject(release: str, station: str) -> str:
    return f"delivery:{release}:{station}"


def _check_guarded(ledger: Ledger, release: str) -> None:
    _, record = facts.release_of(ledger, release)
    if not facts.is_guarded(record):
        raise Refused(f"{release} is not guarded: nothing of it was sent in rounds")


def _still_so(ledger: Ledger, job: JobRow) -> bool:
    """Whether nothing was sent of a release, nor signed for by its station, since rounds were listed."""
    said = Delivery.from_bytes(job.result["delivery"].encode())
    size = Head.from_text(said.head).size
    broadcasts = (place for place, _ in ledger.broadcasts(said.release))
    receipts = (place for place, _ in ledger.received(station=said.station, release=said.release))
    return all(place < size for place in (*broadcasts, *receipts))


def _told(receipt: Receipt, entry: int) -> facts.Facts:
    said = receipt.delivery
    return {"entry": entry, "release": said.release, "copies": len(said.copies)}
