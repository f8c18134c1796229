"""Statements that the operator's log makes about a copy or a suspect, for tools of others."""

from collections.abc import Sequence
from pathlib import Path

from zktrace.attestations.predicates import (
    DispatchPredicate,
    LogPlace,
    Predicate,
    ReceiptPredicate,
    VerdictPredicate,
)
from zktrace.attestations.statement import Statement, attest, check_attestation
from zktrace.errors import Refused
from zktrace.models import model_digest, open_model
from zktrace.registry.ledger import Ledger
from zktrace.registry.witnessing import PublicLog
from zktrace.registry.workspace import Home


def attest_dispatch(home: Home, station: str, release: str, model: Path | None = None) -> bytes:
    """That a copy was made for a station: the one in `model`, or in the workspace."""
    ledger, path, state = _handed(home, station, release, model)
    given = ledger.dispatched(station=station, release=release)
    places = [place for place, each in given if each.copy == state]
    place = _last(places, f"{path}: is no copy of {release} that was dispatched to {station}")
    return _attested(home, path, DispatchPredicate.of(_place(home, place)))


def attest_receipt(home: Home, station: str, release: str, model: Path | None = None) -> bytes:
    """That a station signed for a copy: the one in `model`, or in the workspace."""
    ledger, path, state = _handed(home, station, release, model)
    signed = ledger.received(station=station, release=release)
    places = [place for place, each in signed if state in each.copies]
    place = _last(places, f"{path}: {station} signed for no such copy of {release}")
    return _attested(home, path, ReceiptPredicate.of(_place(home, place), state))


def attest_verdict(home: Home, investigation: int, suspect: Path) -> bytes:
    """How an investigation of a suspect ended, by its place in the log."""
    ledger = home.registry.ledger()
    if investigation not in ledger.investigations:
        raise Refused(f"entry {investigation} is no investigation (zktrace cases lists them)")
    if investigation not in ledger.verdicts:
        raise Refused(f"the investigation {investigation} has no verdict")
    if model_digest(open_model(suspect)) != ledger.investigations[investigation].suspect:
        raise Refused(
            f"{suspect}: is not the suspect of the investigation {investigation}; of one that was only asked "
            "there is no file to make a statement about"
        )
    place, _ = ledger.verdicts[investigation]
    said = VerdictPredicate.of(_place(home, place), _place(home, investigation))
    return _attested(home, suspect, said)


def _handed(home: Home, station: str, release: str, model: Path | None) -> tuple[Ledger, Path, bytes]:
    """What is on record, the file of a station's copy, and the digest of its state."""
    ledger = home.registry.ledger()
    ledger.station(station)
    ledger.release(release)
    path = home.copy_path(release, station) if model is None else model
    if model is None and not path.exists():
        raise Refused(f"the workspace keeps no copy of {release} for {station}: give the file (--model)")
    return ledger, path, model_digest(open_model(path))


def _last(places: Sequence[int], otherwise: str) -> int:
    if not places:
        raise Refused(otherwise)
    return places[-1]


def _place(home: Home, index: int) -> LogPlace:
    return LogPlace.of(PublicLog(home).proof(index))


def _attested(home: Home, model: Path, predicate: Predicate) -> bytes:
    """In an envelope of the log's keys, checked as anybody will check it."""
    signers = PublicLog(home).signers()
    data = attest(Statement.about(model, predicate), signers)
    check_attestation(data, keys=[each.verifier for each in signers])
    return data
