"""One investigation, from readouts to evidence.

(1) The plan of all looks is put on record, and paid for, before anything is scored; the ledger refuses to
    overdraw.
(2) Every enrolled row is scored, revoked stations included: first the suspect as it is, then, while nobody is
    certified, one alignment after the other. A look has its share of the budget, whether it takes place or
    not, so all together keep to the budget, however the suspect came to be aligned.
(3) The findings are made of what the certificates allow.
(4) The verdict is put on record with the digest of the findings.
(5) The evidence is put together under the head of the log.

Killed between any two of them, the log stays whole: an investigation without a verdict has spent its budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zktrace.codes import Code
from zktrace.derivation.promises import Claim
from zktrace.errors import InputError, InvalidLog, Refused
from zktrace.evidence import Findings
from zktrace.evidence.file import LENGTH_LIMIT
from zktrace.readouts.readout import Attempt, Readout
from zktrace.registry.custody import Custody
from zktrace.registry.ledger import Ledger
from zktrace.registry.readouts import readout_bytes, readout_digest
from zktrace.registry.records import RULE_OF, InvestigationRecord, Layout, ReleaseRecord, VerdictRecord
from zktrace.registry.registry import Registry, Snapshot
from zktrace.tracing.case import Case
from zktrace.tracing.evidence import Requests, assemble
from zktrace.tracing.investigation import Investigation, Plan, Steps, investigate, silent
from zktrace.tracing.score import leads, named, tables

NOMINAL_LEVEL: Final = Fraction(1, 1000)  # of an investigation that has no budget


def trace(
    registry: Registry,
    custody: Custody,
    *,
    suspect: bytes,
    release: str,
    readouts: Sequence[Readout],
    budget: Fraction,
    level: Fraction = NOMINAL_LEVEL,
    further: Sequence[Attempt] = (),
    requests: Requests,
    once_after: int | None = None,
    steps: Steps = silent,
) -> Case:
    """Investigate a suspect (the digest of its state or scores) that was read on one carrier or more.

    `budget` is the false-accusation probability that this investigation may spend. With a budget of 0 it
    can only give leads, beyond thresholds that are made for `level`. `further` are readings through
    alignments, which take place only if `readouts` certify nobody. `requests` finds what stations enrolled
    with. With `once_after` it is Refused if the log has an investigation of this suspect at that place or
    later: whoever is not sure whether a first attempt was paid for does not pay twice (`resume` goes on).
    `steps` is told what is done next, from here to the evidence.
    """
    ledger = registry.known().ledger
    if not 0 <= budget < 1:
        raise InputError(f"a budget must lie in [0, 1), not be {budget}")
    plan = _plan(ledger.release(release), readouts, further)

    def record(now: Ledger) -> InvestigationRecord:
        """With everybody who is enrolled at the moment it is added."""
        if not now.by_row:
            raise Refused("nobody is enrolled: there is no row to score")
        if once_after is not None and (known := begun(now, suspect, release, once_after)) is not None:
            raise Refused(f"entry {known} investigates this suspect already")
        return InvestigationRecord(
            suspect=suspect,
            release=release,
            carriers=plan.carriers,
            rule=plan.rule,
            budget=budget,
            recipients=len(now.by_row),
            looks=plan.looks,
        )

    place = registry.add(record)  # (1)
    return _concluded(registry, custody, plan, place, level=level, requests=requests, steps=steps)


def _concluded(
    registry: Registry,
    custody: Custody,
    plan: Plan,
    place: int,
    *,
    level: Fraction,
    requests: Requests,
    steps: Steps,
) -> Case:
    """An investigation on record, carried to its end."""
    looked = _look(registry.known(), custody, plan, place, level=level, steps=steps)  # (2), (3)
    steps("verdict and evidence", 1.0)
    verdict = VerdictRecord(
        investigation=place,
        verdict=str(looked.claims.verdict),
        named=looked.claims.stations,
        findings=looked.claims.digest(),
    )
    _confirm(registry.known(), looked.claims.stations)
    verdict_place = registry.add(verdict)  # (4)
    return _case(registry.known(), custody, looked, verdict_place, requests)  # (5)


def begun(ledger: Ledger, suspect: bytes, release: str, start: int) -> int | None:
    """The first investigation of a suspect at place `start` of the log or later, if there is one."""
    for place, case in ledger.investigations.items():
        if place >= start and case.suspect == suspect and case.release == release:
            return place
    return None


def resume(
    registry: Registry,
    custody: Custody,
    *,
    place: int,
    suspect: bytes,
    readouts: Sequence[Readout],
    level: Fraction = NOMINAL_LEVEL,
    further: Sequence[Attempt] = (),
    requests: Requests,
    steps: Steps = silent,
) -> Case:
    """Go on with an investigation that is on record, and paid for, and was interrupted before its verdict.

    The looks are those on record, over everybody who was enrolled then, so the verdict is the one that the
    first attempt would have come to. Nothing is spent. Where there is a verdict, it is a `rebuild`.
    """
    ledger = registry.ledger()
    if place not in ledger.investigations:
        raise Refused(f"entry {place} is no investigation (zktrace cases lists them)")
    if place in ledger.verdicts:
        return rebuild(
            registry,
            custody,
            place=place,
            suspect=suspect,
            readouts=readouts,
            level=level,
            further=further,
            requests=requests,
            steps=steps,
        )
    plan = _planned_then(ledger, place, suspect, readouts, further)
    return _concluded(registry, custody, plan, place, level=level, requests=requests, steps=steps)


def _planned_then(
    ledger: Ledger, place: int, suspect: bytes, readouts: Sequence[Readout], further: Sequence[Attempt]
) -> Plan:
    """The plan of an investigation on record, from its suspect once more; Refused if it is another."""
    case = ledger.investigations[place]
    if case.suspect != suspect:
        raise Refused(f"entry {place} investigated {case.suspect.hex()}, this suspect is {suspect.hex()}")
    plan = _plan(ledger.release(case.release), readouts, further)
    if plan.looks != case.looks:
        raise Refused(f"entry {place} planned other looks: read the suspect on {', '.join(case.carriers)}")
    return plan


def _confirm(log: Snapshot, stations: Sequence[str]) -> None:
    """Whoever is about to be named stands in the log at the row that was scored, not only in a cache."""
    enrolled = [log.ledger.stations[name] for name in stations]
    found = log.entries([each.index for each in enrolled])
    for name, known, entry in zip(stations, enrolled, found, strict=True):
        if entry.record != known.enrolment:
            raise InvalidLog(f"{name} is enrolled otherwise than the workspace's cache says: remove cache/")


def rebuild(
    registry: Registry,
    custody: Custody,
    *,
    place: int,
    suspect: bytes,
    readouts: Sequence[Readout],
    level: Fraction = NOMINAL_LEVEL,
    further: Sequence[Attempt] = (),
    requests: Requests,
    steps: Steps = silent,
) -> Case:
    """The case of an investigation whose verdict is on record, from the suspect once more.

    For an evidence file that was lost. Nothing is put on record and nothing is spent: the readings must lead
    to the very findings whose digest the log has, or it is Refused. `level` is that of `trace`, which the log
    does not have of an investigation without a budget.
    """
    log = registry.snapshot()
    case, (verdict_place, verdict) = decided(log.ledger, place)
    plan = _planned_then(log.ledger, place, suspect, readouts, further)
    looked = _look(log, custody, plan, place, level=level, steps=steps)
    if looked.claims.digest() != verdict.findings:
        same = "the same files and program" if case.budget else "the same files, program and level"
        raise Refused(
            f"the suspect now reads otherwise than entry {verdict_place} has on record: the evidence of "
            f"entry {place} can only be rebuilt with {same}"
        )
    return _case(log, custody, looked, verdict_place, requests)


def decided(ledger: Ledger, place: int) -> tuple[InvestigationRecord, tuple[int, VerdictRecord]]:
    """The investigation at a place of the log, and its verdict with its own place; Refused without one."""
    case, known = ledger.investigations.get(place), ledger.verdicts.get(place)
    if case is None:
        raise Refused(f"entry {place} is no investigation (zktrace cases lists them)")
    if known is None:
        raise Refused(
            f"the investigation of entry {place} has no verdict: there is no evidence to rebuild "
            "(zktrace cases resume carries on to it)"
        )
    return case, known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Looked:
    """An investigation that was carried out, before its verdict is on record."""

    place: int
    case: InvestigationRecord
    stations: tuple[str, ...]
    found: Investigation
    claims: Findings


def _look(
    log: Snapshot, custody: Custody, plan: Plan, place: int, *, level: Fraction, steps: Steps
) -> _Looked:
    """(2) the looks, (3) what they allow to claim."""
    case = log.ledger.investigations[place]
    stations = tuple(log.ledger.by_row[: case.recipients])
    claims = tuple(log.ledger.claims[: case.recipients])
    release = log.ledger.release(case.release)
    found = investigate(
        plan,
        lambda carrier: _code(custody, claims, _carried(release, carrier)),
        recipients=case.recipients,
        level=case.budget or level,
        certify=case.budget > 0,
        check=lambda readout: _layout(release, readout),
        steps=steps,
    )
    return _Looked(place=place, case=case, stations=stations, found=found, claims=found.findings(stations))


def _case(log: Snapshot, custody: Custody, looked: _Looked, verdict_place: int, requests: Requests) -> Case:
    """(5) the evidence, and all that was found."""
    chosen, scored = looked.found.chosen, looked.found.scored
    evidence = assemble(
        log,
        custody,
        release=looked.case.release,
        readouts=chosen.readouts,
        findings=looked.claims,
        places=(looked.place, verdict_place),
        requests=requests,
    )
    return Case(
        verdict=scored.verdict,
        named=named(scored, looked.stations, chosen.look.alignment),
        leads=leads(scored, looked.stations),
        tables=tables(scored, chosen.readouts),
        look=chosen.look,
        failed=tuple(
            (each.look.alignment, each.reason) for each in looked.found.taken if each.scored is None
        ),
        stations=looked.stations,
        investigation=looked.case,
        level=looked.found.level,
        place=looked.place,
        verdict_place=verdict_place,
        evidence=evidence,
    )


def _plan(release: ReleaseRecord, readouts: Sequence[Readout], further: Sequence[Attempt]) -> Plan:
    """Everything that can be wrong is found before the budget is spent."""
    layouts = [_layout(release, each) for each in readouts]
    layouts += [_carried(release, each.carrier) for each in further]
    rules = {RULE_OF[each.profile] for each in layouts}
    if len(rules) > 1:
        raise Refused(f"the carriers of {release.name} have different profiles: trace them one by one")
    return Plan(readouts=tuple(readouts), further=tuple(further), rule=next(iter(rules), "certified"))


def _layout(release: ReleaseRecord, readout: Readout) -> Layout:
    layout = _carried(release, readout.carrier)
    readout_bytes(readout.values)  # finite float64
    if len(readout.values) != layout.length or layout.length > LENGTH_LIMIT:
        raise InputError(
            f"{readout.carrier}: {len(readout.values)} values for a code of {layout.length} positions"
        )
    if layout.referred != (readout.reference is not None):
        raise InputError(f"{readout.carrier}: the profile {layout.profile} does not go with this readout")
    if readout.reference is not None and readout_digest(readout.reference) != layout.reference:
        raise Refused(f"{readout.carrier}: the reference readout is not the one that {release.name} recorded")
    return layout


def _code(custody: Custody, claims: Sequence[Claim], layout: Layout) -> Code:
    return custody.code(layout.carrier, claims, length=layout.length, law=layout.law)


def _carried(release: ReleaseRecord, carrier: str) -> Layout:
    layout = release.layout(carrier)
    if layout is None:
        raise Refused(f"copies of {release.name} do not carry {carrier}")
    return layout
