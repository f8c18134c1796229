"""Evidence by a forger who writes the log too: whatever is claimed is under a head, its digest matches."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tracing.small import Federation
from zktrace.certificates.certificate import Certificate
from zktrace.evidence import CertifiedScore, Evidence, LoggedEntry
from zktrace.primitives import merkle
from zktrace.registry.log import Head
from zktrace.registry.records import Entry, Record, ReleaseRecord, VerdictRecord
from zktrace.tracing import Case

AT = "2026-01-31T12:00:00Z"


def certified_score(certificate: Certificate) -> CertifiedScore:
    """A certificate of the weight carrier's soft score."""
    return CertifiedScore(carrier="weight", by="soft", certificate=certificate)


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
        assert isinstance(verdict, VerdictRecord)
        log[places[-1]] = replace(
            verdict,
            verdict=str(evidence.findings.verdict),
            named=evidence.findings.stations,
            findings=evidence.findings.digest(),
        )
    log = rerooted(log)
    leaves = [merkle.leaf_hash(_data(each)) for each in log]
    head = head_of(log)
    past = next((at for at in sorted(places) if isinstance(log[at], ReleaseRecord)), 0)
    entries = tuple(
        LoggedEntry(index=at, entry=_data(log[at]), path=tuple(merkle.inclusion_proof(leaves, at)))
        for at in sorted(places)
    )
    forged = replace(
        evidence,
        head=head.to_text(),
        entries=entries,
        past=tuple(merkle.consistency_proof(leaves, past)),
    )
    return forged.to_bytes(), head, log


def rerooted(records: Sequence[Record]) -> list[Record]:
    """The same log, every release with the root of what stands before it."""
    log: list[Record] = []
    for each in records:
        log.append(replace(each, root=head_of(log).root) if isinstance(each, ReleaseRecord) else each)
    return log


def places_of(case: Case) -> list[int]:
    """Where the entries of a case are; the verdict last."""
    return [each.index for each in case.evidence.entries]


def renamed(case: Case, names: Mapping[str, str]) -> Evidence:
    """The same accusation of stations with other names."""
    evidence = case.evidence
    accused = tuple(replace(each, station=names[each.station]) for each in evidence.accused)
    stages = tuple(
        replace(stage, named=tuple(replace(each, station=names[each.station]) for each in stage.named))
        for stage in evidence.findings.stages
    )
    return replace(evidence, accused=accused, findings=replace(evidence.findings, stages=stages))


def relogged(
    own: Federation, case: Case, *changes: Record, evidence: Evidence | None = None
) -> tuple[bytes, Head, list[Record]]:
    """The file under a log in which the case's record of each of these kinds is another."""
    log, places = records_of(own)[: case.verdict_place + 1], places_of(case)
    for record in changes:
        (at,) = (each for each in places if type(log[each]) is type(record))
        log[at] = record
    return sealed(evidence or case.evidence, log, places)


T = TypeVar("T", bound=Record)


def the(own: Federation, case: Case, kind: type[T]) -> T:
    """The case's record of a kind."""
    (found,) = (
        each for at, each in enumerate(records_of(own)) if at in places_of(case) and type(each) is kind
    )
    assert isinstance(found, kind)
    return found
