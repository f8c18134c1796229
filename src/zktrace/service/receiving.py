"""Receipts: what a station is asked to sign for, and what it signed.

Copies that were dispatched, that is. Whose rounds of a guarded release are signed for is compared with lists
that stand behind the code key, and the process that listens has none: `zktrace receipts` does these.
"""

from zktrace.errors import InvalidProof, Refused
from zktrace.front.receipts import delivery, take
from zktrace.registry.signing import Receipt
from zktrace.service import facts
from zktrace.service.desk import FrontDesk


def asked(desk: FrontDesk, release: str, station: str) -> bytes:
    """The delivery that a station has not signed for yet."""
    facts.release_of(desk.home.registry.ledger(), release)
    return delivery(desk.home, station, release).to_bytes()


def taken(desk: FrontDesk, data: bytes, station: str) -> facts.Facts:
    """A receipt of the station that sends it, put on record."""
    receipt = Receipt.from_bytes(data)
    said = receipt.delivery
    if said.station != station:
        raise InvalidProof(check="receipt", reason="it is another station's")
    if said.rounds:
        raise Refused("receipts for rounds are taken by the operator: zktrace receipts take")
    entry = take(desk.home, receipt, allow_weak_params=desk.settings.allow_weak_params)
    return {"entry": entry, "release": said.release, "copies": len(said.copies)}
