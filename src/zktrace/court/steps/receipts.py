"""(4), receipts: whether the accused signed for a copy of the release, as far as this was given."""

from zktrace.court.bench import Bench
from zktrace.credentials import PublicKey
from zktrace.errors import CannotTell
from zktrace.registry.log import Head
from zktrace.registry.records import DispatchRecord, Entry, record_digest
from zktrace.registry.signing import Receipt, ReceiptRecord


def check_receipts(bench: Bench) -> None:
    """Every receipt holds, and is of an accused; with a policy that asks for it, each accused has one."""
    minutes, release = bench.minutes, bench.dossier.investigation.release
    stations = bench.evidence.findings.stations
    signed: set[str] = set()
    for receipt in bench.receipts:
        said = receipt.delivery
        if said.station not in stations or said.release != release:
            minutes.left(f"a receipt of {said.station} for {said.release}: it is not of this case")
            continue
        _check_receipt(bench, receipt)
        if _check_recorded(bench, receipt):
            signed.add(said.station)
    for name in stations:
        if name in signed:
            continue
        if bench.policy.require_receipt:
            minutes.reject(f"{name}: the policy asks for a receipt for a copy of {release}, none was given")
        minutes.left(f"that {name} has a copy of {release}: no receipt that it signed was given")


def _check_receipt(bench: Bench, receipt: Receipt) -> None:
    """The accused signed, for a copy under this setup; what else is known of the receipt is said."""
    said, minutes = receipt.delivery, bench.minutes
    if said.setup != record_digest(bench.dossier.setup):
        minutes.reject(
            f"{said.station}: its receipt is for another registry, of the setup {said.setup.hex()}"
        )
    key = PublicKey.from_bytes(bench.dossier.enrolments[said.station].public_key)
    receipt.verify(key, allow_weak_params=bench.policy.accept_weak_credentials)
    what = f"{len(said.copies)} copies" if len(said.copies) > 1 else "a copy"
    minutes.saw(f"{said.station} signed for {what} of {said.release}")
    if bench.dossier.investigation.suspect in said.copies:
        minutes.saw(f"the suspect is the very copy that {said.station} signed for")
    _check_head(bench, receipt)


def _check_head(bench: Bench, receipt: Receipt) -> None:
    """The head that the station saw when it signed is one of this log."""
    seen, own, minutes = Head.from_text(receipt.delivery.head), bench.heads.own, bench.minutes
    what = f"the head in the receipt of {receipt.delivery.station}"
    if seen == own or seen == Head.from_text(bench.evidence.head):
        minutes.saw(f"{what} is one that was checked")
        return
    if seen.size > own.size:
        minutes.left(f"that {what} is of this log: it has {seen.size} entries, the judge's {own.size}")
        return
    try:
        how = bench.heads.link(seen, (own,), minutes, what=what)
    except CannotTell:
        minutes.left(f"that {what} is of this log: no consistency proof was given")
    else:
        minutes.saw(f"{what} is of this log, by {how}")


def _check_recorded(bench: Bench, receipt: Receipt) -> bool:
    """With an exported registry: the receipt is on record. One that is not shows nothing by strange copies.

    Whoever hands a station a delivery to sign can name in it what the station never got.
    """
    said, minutes = receipt.delivery, bench.minutes
    name, release = said.station, said.release
    if bench.export is None:
        minutes.left(f"that the receipt of {name} is on record: no registry was given")
        return True
    handed: set[bytes] = set()
    for place, data in enumerate(bench.export):
        record = Entry.from_bytes(data).record
        if isinstance(record, ReceiptRecord) and record == receipt.record():
            minutes.saw(f"the receipt of {name} is on record (entry {place})")
            return True
        if isinstance(record, DispatchRecord) and (record.station, record.release) == (name, release):
            handed.add(record.copy)
    minutes.left(f"the receipt of {name} is not on record under the judge's head")
    strange = next((each for each in said.copies if each not in handed), None) if not said.rounds else None
    if strange is not None:
        what = f"no copy {strange.hex()} is on record for it"
        minutes.left(f"that {name} was handed what it signed for: {what}")
    return strange is None
