"""Copies that stations sign for: the operator asks, a station answers, and the answer goes on record."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from zktrace.credentials import PublicKey, SecretKey
from zktrace.errors import Error, InvalidProof, Refused
from zktrace.guarding.broadcasts import handed_out
from zktrace.models import model_digest, open_model
from zktrace.primitives.files import claimed, read_bounded, write_atomic
from zktrace.registry.ledger import Ledger, check_name, signed_for
from zktrace.registry.log import Head
from zktrace.registry.records import record_digest
from zktrace.registry.registry import check_extends
from zktrace.registry.signing import COPIES_LIMIT, FILE_LIMIT, Delivery, Receipt
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease

_SHORT: Final = 16  # digits of a digest in a file name


def delivery(home: Home, station: str, release: str, *, rounds: bool = False) -> Delivery:
    """What a station was handed and has not signed for yet: copies that were dispatched, or rounds.

    At most 512 a receipt; what is left over is for the next one.
    """
    ledger = home.registry.ledger()
    ledger.station(station)
    signed = ledger.received(station=station, release=release)
    done = {part[2] for _, each in signed for part in signed_for(each)}
    pairs = (
        _rounds(home, ledger, station, release, done) if rounds else _copies(ledger, station, release, done)
    )
    if not pairs:
        what = "round of" if rounds else "copy of"
        raise Refused(f"{station} was handed no {what} {release} that it has not signed for")
    numbers, copies = zip(*pairs[:COPIES_LIMIT], strict=True)
    return Delivery(
        station=station,
        release=release,
        rounds=tuple(each for each in numbers if each is not None),
        copies=copies,
        setup=record_digest(ledger.setup),
        head=ledger.head.to_text(),
    )


def sign(key: SecretKey, asked: Delivery, copies: Sequence[Path], *, unseen: Sequence[bytes] = ()) -> Receipt:
    """A station's receipt, if the copies that it has are those it is asked to sign for.

    `unseen` are digests that it wrote down when copies came, of those that it keeps no longer.
    """
    have = {model_digest(open_model(each)) for each in copies} | set(unseen)
    for digest in asked.copies:
        if digest not in have:
            raise Refused(f"the copy {digest.hex()} is none of those that were given: sign for what came")
    return Receipt.sign(key, asked)


def take(home: Home, receipt: Receipt, *, allow_weak_params: bool = False) -> int:
    """Check a receipt against log and credential, keep it and put it on record; the index of its entry."""
    said = receipt.delivery
    check_signed(home.registry.ledger(), receipt, allow_weak_params=allow_weak_params)
    _check_rounds(home, said)
    path = receipt_path(home, said.station, receipt.digest())
    with claimed(path.parent, busy="a receipt is just being taken; try again", mode=0o700):
        write_atomic(path, receipt.to_bytes() + b"\n", secret=True, replace=True)
        try:
            return home.registry.add(receipt.record())
        except Error:
            signed = home.registry.ledger().received(station=said.station, release=said.release)
            if all(each.receipt != receipt.digest() for _, each in signed):
                path.unlink(missing_ok=True)
            raise


def check_signed(ledger: Ledger, receipt: Receipt, *, allow_weak_params: bool = False) -> None:
    """InvalidProof or Refused unless a receipt is its station's, of this registry, and fits into its log.

    For that the log is enough. Whether copies of rounds are those that were sent is on the operator's lists.
    """
    said = receipt.delivery
    if said.setup != record_digest(ledger.setup):
        raise InvalidProof(check="receipt", reason="it is for another registry")
    check_extends(ledger.leaves, Head.from_text(said.head))
    public = PublicKey.from_bytes(ledger.station(said.station).enrolment.public_key)
    receipt.verify(public, allow_weak_params=allow_weak_params)
    ledger.check(receipt.record())


def receipt_path(home: Home, station: str, digest: bytes) -> Path:
    """Where a receipt is kept."""
    return home.root / "receipts" / f"{check_name(station, 'station')}-{digest.hex()[:_SHORT]}.json"


def kept(home: Home, station: str, release: str) -> tuple[tuple[int, Path | None], ...]:
    """Receipts of a station for a release: the places of their records, and the files, if they are there."""
    found = []
    for place, each in home.registry.ledger().received(station=station, release=release):
        path = receipt_path(home, station, each.receipt)
        whole = path.is_file() and Receipt.from_bytes(read_bounded(path, limit=FILE_LIMIT)).digest()
        found.append((place, path if whole == each.receipt else None))
    return tuple(found)


def _copies(
    ledger: Ledger, station: str, release: str, done: set[bytes | int]
) -> list[tuple[int | None, bytes]]:
    """Copies that were dispatched, each once."""
    ledger.release(release)
    found = {each.copy: None for _, each in ledger.dispatched(station=station, release=release)}
    return [(None, copy) for copy in found if copy not in done]


def _rounds(
    home: Home, ledger: Ledger, station: str, release: str, done: set[bytes | int]
) -> list[tuple[int | None, bytes]]:
    """Rounds that a station was sent a copy of, and these."""
    opened = OpenRelease.of(home, release)
    found: list[tuple[int | None, bytes]] = []
    for number in range(len(ledger.broadcasts(release))):
        copy = handed_copy(opened, number, station)
        if number not in done and copy is not None:  # it may have been absent
            found.append((number, copy))
    return found


def handed_copy(release: OpenRelease, number: int, station: str) -> bytes | None:
    """The copy of a broadcast that a station was sent, if it was."""
    copies = {each.station: each.copy for each in handed_out(release, number).copies}
    return copies.get(station)


def _check_rounds(home: Home, said: Delivery) -> None:
    """InvalidProof unless the copies are those on the operator's lists of broadcasts."""
    opened = OpenRelease.of(home, said.release) if said.rounds else None
    for number, copy in zip(said.rounds, said.copies, strict=False):
        if opened is not None and handed_copy(opened, number, said.station) != copy:
            reason = f"the copy of broadcast {number} is not the one that {said.station} was sent"
            raise InvalidProof(check="receipt", reason=reason)
