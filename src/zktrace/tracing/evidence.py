"""The evidence of a case: entries with their proofs, and openings as far as an accusation rests on them."""

from collections.abc import Callable, Sequence

from zktrace.evidence import (
    Accused,
    CarrierOpening,
    Evidence,
    Findings,
    LoggedEntry,
    RowOpening,
    SeedOpening,
)
from zktrace.readouts.readout import Readout
from zktrace.registry.custody import Custody
from zktrace.registry.ledger import Ledger
from zktrace.registry.readouts import readout_bytes
from zktrace.registry.records import PLACE, RELEASE, ReleaseRecord
from zktrace.registry.registry import Snapshot
from zktrace.registry.requests import Request

Requests = Callable[[str], Request | None]  # the request that a station enrolled with, if it was kept


def assemble(
    log: Snapshot,
    custody: Custody,
    *,
    release: str,
    readouts: Sequence[Readout],
    findings: Findings,
    places: Sequence[int],
    requests: Requests,
) -> Evidence:
    """The evidence under the head of a log; `places` are those of the investigation and its verdict."""
    ledger = log.ledger
    found, at = ledger.release(release), ledger.releases[release][0]
    rows = {name: ledger.stations[name].enrolment.row for name in findings.stations}
    used = findings.naming_carriers
    wanted = {0, at, *places, *(ledger.stations[name].index for name in findings.stations)}
    wanted |= {ledger.offer(PLACE, row).index for row in rows.values()}
    if used:
        wanted.add(ledger.offer(RELEASE, found.number).index)
    return Evidence(
        head=log.head.to_text(),
        entries=_logged(log, sorted(wanted)),
        past=log.consistency(at),
        carriers=tuple(_carrier(custody, ledger, each, found) for each in readouts if each.carrier in used),
        accused=tuple(
            Accused(station=name, request=_proof(requests(name)), rows=_rows(custody, ledger, row, used))
            for name, row in rows.items()
        ),
        findings=findings,
    )


def _logged(log: Snapshot, places: Sequence[int]) -> tuple[LoggedEntry, ...]:
    return tuple(
        LoggedEntry(index=index, entry=entry.to_bytes(), path=log.inclusion(index))
        for index, entry in zip(places, log.entries(places), strict=True)
    )


def _opening(custody: Custody, ledger: Ledger, kind: str, carrier: str, place: int) -> SeedOpening:
    found = custody.opened(ledger.offer(kind, place).promise, carrier, place)
    return SeedOpening(seed=found.seed, others=found.others, path=found.path)


def _carrier(custody: Custody, ledger: Ledger, readout: Readout, release: ReleaseRecord) -> CarrierOpening:
    carrier = readout.carrier
    return CarrierOpening(
        carrier=carrier,
        biases=custody.bias_seed(carrier),
        directions=_opening(custody, ledger, RELEASE, carrier, release.number),
        readout=readout_bytes(readout.values),
        reference=b"" if readout.reference is None else readout_bytes(readout.reference),
    )


def _rows(custody: Custody, ledger: Ledger, place: int, carriers: Sequence[str]) -> tuple[RowOpening, ...]:
    return tuple(
        RowOpening(carrier=each, opening=_opening(custody, ledger, PLACE, each, place)) for each in carriers
    )


def _proof(request: Request | None) -> bytes:
    return b"" if request is None else request.proof
