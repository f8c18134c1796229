"""Evidence by a forger who writes the log too: whatever is claimed is under a head, its digest matches."""

from collections.abc import Sequence
from dataclasses import replace

from tracing.small import Federation
from zktrace.evidence import Evidence, LoggedEntry
from zktrace.primitives import merkle
from zktrace.registry.log import Head
from zktrace.registry.records import Entry, Record, Verdict
from zktrace.tracing import Case

AT = "2026-01-31T12:00:00Z"


def records_of(own: Federation) -> list[Record]:
    return [each.record for each in own.registry.entries()]


def head_of(records: Sequence[Record]) -> Head:
    return Head.of_leaves([merkle.leaf_hash(_data(each)) for each in records])


def export_of(records: Sequence[Record]) -> list[bytes]:
    return [_data(each) for each in records]


def _data(record: Record) -> bytes:
    return Entry(at=AT, record=record).to_bytes()


def sealed(
    evidence: Evidence, records: Sequence[Record], places: Sequence[int], *, restate: bool = True
) -> tuple[bytes, Head, list[Record]]:
    """The file with the entries at `places` of a log of `records`, all proofs right.

    Unless told otherwise the last of the places is the verdict, restated to be about these very findings.
    """
    log = list(records)
    if restate:
        verdict = log[places[-1]]
        assert isinstance(verdict, Verdict)
        log[places[-1]] = replace(
            verdict,
            verdict=str(evidence.findings.verdict),
            named=evidence.findings.stations,
            findings=evidence.findings.digest(),
        )
    leaves = [merkle.leaf_hash(_data(each)) for each in log]
    head = head_of(log)
    entries = tuple(
        LoggedEntry(index=at, entry=_data(log[at]), path=tuple(merkle.inclusion_proof(leaves, at)))
        for at in sorted(places)
    )
    return replace(evidence, head=head.to_text(), entries=entries).to_bytes(), head, log


def places_of(case: Case) -> list[int]:
    """Where the entries of a case are; the verdict last."""
    return [each.index for each in case.evidence.entries]
