"""The evidence of a case: entries with their proofs, and openings as far as an accusation rests on them."""

from collections.abc import Sequence

from zktrace.evidence import Accused, CarrierOpening, Evidence, Findings, LoggedEntry, RowOpening
from zktrace.registry.bindings import readout_bytes
from zktrace.registry.custody import Custody
from zktrace.registry.registry import Registry
from zktrace.tracing.readout import Readout


def assemble(
    registry: Registry,
    custody: Custody,
    *,
    release: str,
    readouts: Sequence[Readout],
    findings: Findings,
    places: Sequence[int],
) -> Evidence:
    """The evidence under the present head. `places` are those of the investigation and its verdict."""
    ledger, head = registry.ledger(), registry.head()
    enrolments = [ledger.stations[name].index for name in findings.stations]
    wanted = sorted({0, ledger.releases[release][0], *enrolments, *places})
    used = findings.naming_carriers
    return Evidence(
        head=head.to_text(),
        entries=tuple(_logged(registry, index, head.size) for index in wanted),
        carriers=tuple(_carrier(custody, each, release) for each in readouts if each.carrier in used),
        accused=tuple(
            _accused(custody, name, ledger.stations[name].enrolment.row, used) for name in findings.stations
        ),
        findings=findings,
    )


def _logged(registry: Registry, index: int, size: int) -> LoggedEntry:
    path = registry.inclusion(index, size).path
    return LoggedEntry(index=index, entry=registry.entry(index).to_bytes(), path=path)


def _carrier(custody: Custody, readout: Readout, release: str) -> CarrierOpening:
    carrier = readout.carrier
    return CarrierOpening(
        carrier=carrier,
        thresholds=custody.code(carrier).biases.thresholds.astype(">u4").tobytes(),
        bias_opening=custody.bias_opening(carrier),
        direction_seed=custody.direction_seed(carrier, release),
        readout=readout_bytes(readout.values),
        reference=b"" if readout.reference is None else readout_bytes(readout.reference),
    )


def _accused(custody: Custody, station: str, row: int, carriers: Sequence[str]) -> Accused:
    rows = tuple(
        RowOpening(carrier=each, row=custody.row(each, row), opening=custody.row_opening(each, row))
        for each in carriers
    )
    return Accused(station=station, rows=rows)
