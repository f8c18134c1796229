"""What a ledger tells, and the same from a plain loop over all entries: slow, and plain to see."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from zktrace.primitives import merkle
from zktrace.registry.ledger import Ledger, claim_of
from zktrace.registry.records import (
    PLACE,
    RELEASE,
    DispatchRecord,
    EnrolmentRecord,
    Entry,
    InvestigationRecord,
    ReleaseRecord,
    ReservationRecord,
    RevocationRecord,
    SetupRecord,
    VerdictRecord,
    offer_digest,
)
from zktrace.registry.signing import ReceiptRecord
from zktrace.registry.state import CERTIFIED

Facts = dict[str, object]


def facts(ledger: Ledger) -> Facts:
    """Everything that a ledger tells."""
    return {
        "size": ledger.size,
        "root": ledger.root,
        "leaves": list(ledger.leaves),
        "setup": ledger.first,
        "by_row": list(ledger.by_row),
        "claims": list(ledger.claims),
        "stations": {
            name: (each.enrolment, each.index, each.at, each.revoked)
            for name, each in ledger.stations.items()
        },
        "revoked": ledger.revoked,
        "releases": ledger.releases,
        "dispatches": list(ledger.dispatches),
        "copies": ledger.copies(),
        "given": ledger.given(),
        "held": {name: held(ledger, name) for name in ledger.release_names},
        "investigations": dict(ledger.investigations),
        "times": {place: ledger.at(place) for place in ledger.investigations},
        "unpaid": list(ledger.unpaid),
        "verdicts": dict(ledger.verdicts),
        "certified": list(ledger.certified),
        "spent": ledger.spent,
        "offers": {
            kind: [(each.promise.first, each.promise.root, each.index, each.digest) for each in offers]
            for kind, offers in ledger.offers.items()
        },
    }


def held(ledger: Ledger, name: str) -> tuple[object, ...]:
    """Who has a copy of a release, who signed for one, who did not, and who waits."""
    found = ledger.holding(name)
    return set(found.holders), set(found.signers), list(found.unsigned), list(found.waiting)


def replayed(entries: Sequence[Entry]) -> Facts:
    """The same of entries that keep the rules."""
    stations: dict[str, tuple[EnrolmentRecord, int, str, str | None]] = {}
    releases: dict[str, tuple[int, ReleaseRecord]] = {}
    dispatches: list[tuple[int, DispatchRecord]] = []
    cases: dict[int, InvestigationRecord] = {}
    verdicts: dict[int, tuple[int, VerdictRecord]] = {}
    signed: set[tuple[str, str]] = set()
    offers: dict[str, list[object]] = {PLACE: [], RELEASE: []}
    setup = entries[0].record if entries else None
    for place, entry in enumerate(entries):
        match entry.record:
            case SetupRecord() as it:
                offers[PLACE].append((0, it.places.root, place, offer_digest(it, it)))
                offers[RELEASE].append((0, it.releases.root, place, offer_digest(it, it)))
            case ReservationRecord() as it:
                assert isinstance(setup, SetupRecord)
                offers[it.of].append((it.first, it.seeds.root, place, offer_digest(setup, it)))
            case EnrolmentRecord() as it:
                stations[it.station] = (it, place, entry.at, None)
            case RevocationRecord() as it:
                stations[it.station] = (*stations[it.station][:3], entry.at)
            case ReleaseRecord() as it:
                releases[it.name] = (place, it)
            case DispatchRecord() as it:
                dispatches.append((place, it))
            case ReceiptRecord() as it:
                signed.add((it.release, it.station))
            case InvestigationRecord() as it:
                cases[place] = it
            case VerdictRecord() as it:
                verdicts[it.investigation] = (place, it)
    leaves = [merkle.leaf_hash(each.to_bytes()) for each in entries]
    holders = {(each.release, each.station) for _, each in dispatches}
    return {
        "size": len(entries),
        "root": merkle.root(leaves),
        "leaves": leaves,
        "setup": setup,
        "by_row": list(stations),
        "claims": [claim_of(each[0]) for each in stations.values()],
        "stations": stations,
        "revoked": sum(each[3] is not None for each in stations.values()),
        "releases": releases,
        "dispatches": dispatches,
        "copies": dict(Counter(each.station for _, each in dispatches)),
        "given": {
            name: (sum(each.release == name for _, each in dispatches), sum(of == name for of, _ in holders))
            for name in releases
        },
        "held": {
            name: (
                {station for of, station in holders if of == name},
                {station for of, station in signed if of == name},
                [each for each in stations if (name, each) in holders and (name, each) not in signed],
                [key for key, each in stations.items() if each[3] is None and (name, key) not in holders],
            )
            for name in releases
        },
        "investigations": cases,
        "times": {place: entries[place].at for place in cases},
        "unpaid": [place for place, each in cases.items() if not each.budget],
        "verdicts": verdicts,
        "certified": [place for place, each in verdicts.values() if each.verdict in CERTIFIED],
        "spent": sum((each.budget for each in cases.values()), Fraction(0)),
        "offers": offers,
    }
