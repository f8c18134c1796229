"""Receipts: what a station is asked to sign for, and what it signed.

Of copies that were dispatched, that is all on record. Whose rounds of a guarded release are signed for is
compared with lists that stand behind the code key, and the process that listens has none: it keeps what came,
and a worker does these, as a job.
"""

from zktrace.errors import InvalidProof, Refused
from zktrace.front.receipts import delivery, take
from zktrace.primitives.files import write_atomic
from zktrace.registry.signing import Receipt
from zktrace.service import facts
from zktrace.service.desk import FrontDesk
from zktrace.service.jobs import JobRow
from zktrace.service.problems import not_there
from zktrace.service.store import folder


def asked(desk: FrontDesk, release: str, station: str) -> bytes:
    """The delivery that a station has not signed for yet."""
    facts.release_of(desk.home.registry.ledger(), release)
    return delivery(desk.home, station, release).to_bytes()


def ask_for_rounds(desk: FrontDesk, release: str, station: str) -> JobRow:
    """Have a worker make the delivery of the rounds that a station has not signed for."""
    _, record = facts.release_of(desk.home.registry.ledger(), release)
    if not facts.is_guarded(record):
        raise Refused(f"{release} is not guarded: nothing of it was sent in rounds")
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
        return _kept_for_a_worker(desk, receipt)
    entry = take(desk.home, receipt, allow_weak_params=desk.settings.allow_weak_params)
    return {"entry": entry, "release": said.release, "copies": len(said.copies)}


def _kept_for_a_worker(desk: FrontDesk, receipt: Receipt) -> JobRow:
    digest, said = receipt.digest().hex(), receipt.delivery
    facts.release_of(desk.home.registry.ledger(), said.release)
    path = folder(desk.home, "uploads") / f"receipt-{digest}"
    write_atomic(path, receipt.to_bytes(), secret=True, replace=True)
    told = {
        "file": str(path),
        "release": said.release,
        "station": said.station,
        "weak": desk.settings.allow_weak_params,
    }
    return desk.jobs.add("receipt", told, subject=f"receipt:{digest}", by=said.station)


def state_of(desk: FrontDesk, id: str, station: str) -> JobRow:
    """The job that takes a station's own receipt."""
    found = desk.jobs.find(id)
    if found.kind != "receipt" or found.asked_by != station or "file" not in found.arguments:
        raise not_there("there is no such receipt")
    return found


def _subject(release: str, station: str) -> str:
    return f"delivery:{release}:{station}"
