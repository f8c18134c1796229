"""What the registry says, as plain values: the API hands them out, and the console shows them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from zktrace.errors import Refused
from zktrace.front.case import kept_evidence
from zktrace.front.workspace import Workspace
from zktrace.primitives import merkle
from zktrace.primitives.canonical import from_json
from zktrace.registry.ledger import Ledger, signed_for
from zktrace.registry.log import Extension, Head
from zktrace.registry.overview import CaseLine, case_line_at, ended_by, overview
from zktrace.registry.records import Entry, ReleaseRecord
from zktrace.registry.registry import Registry
from zktrace.registry.signing import ReceiptRecord
from zktrace.registry.witnessing import PublicLog
from zktrace.service.problems import not_there
from zktrace.transparency.checkpoint import LogCheckpoint

PAGE: Final = 100  # things of a list at a time
MOST: Final = 500
Facts = dict[str, Any]
T = TypeVar("T")


def head_facts(ledger: Ledger) -> Facts:
    """The head of the log."""
    head = ledger.head
    return {"head": head.to_text(), "size": head.size, "root": head.root.hex()}


def overview_facts(ledger: Ledger) -> Facts:
    """The registry in numbers. With cases and budget it is the page that is looked at most."""
    found = overview(ledger)
    return {
        "title": found.title,
        "stations": found.stations,
        "revoked": found.revoked,
        "copies": found.copies,
        "cases": found.cases,
        "certified": found.certified,
        "open": found.open,
        "broadcasts": sum(len(ledger.broadcasts(name)) for name in ledger.release_names),
        "releases": [
            {
                "name": each.name,
                "carriers": list(each.carriers),
                "copies": each.copies,
                "stations": each.stations,
                "signed": each.signed,
            }
            for each in found.releases
        ],
        "budget": budget_facts(ledger),
        **head_facts(ledger),
    }


def budget_facts(ledger: Ledger) -> Facts:
    """What may be spent, and was; `ended_by` is the entry after which nothing can be certified."""
    budget, spent = ledger.setup.budget, ledger.spent
    return {
        "budget": str(budget),
        "spent": str(spent),
        "left": str(ledger.remaining),
        "share_spent": float(spent / budget),
        "ended_by": ended_by(ledger),
    }


def station_list(ledger: Ledger, start: int, limit: int) -> list[Facts]:
    """Stations in the order of their places."""
    copies = ledger.copies()
    return [
        {
            "station": name,
            "place": start + at,
            "enrolled": ledger.stations[name].at,
            "revoked": ledger.stations[name].revoked,
            "copies": copies.get(name, 0),
        }
        for at, name in enumerate(ledger.by_row[start : start + limit])
    ]


def station_facts(ledger: Ledger, name: str, start: int = 0, limit: int = MOST) -> Facts:
    """A station and a part of what it was given, the youngest first. Nothing of its row is known here."""
    if name not in ledger.stations:
        raise not_there(f"no station {name[:64]} is enrolled")
    found, given = ledger.station(name), ledger.dispatched(station=name)
    signed = _signed(ledger.received(station=name))
    copies = _youngest(given, start, limit)
    return {
        "station": name,
        "place": found.enrolment.row,
        "entry": found.index,
        "enrolled": found.at,
        "revoked": found.revoked,
        "public_key": found.enrolment.public_key.hex(),
        "request": found.enrolment.request.hex(),
        "copies": [
            {
                "entry": place,
                "release": each.release,
                "digest": each.copy.hex(),
                "signed": signed.get((name, each.release, each.copy)),
            }
            for place, each in copies
        ],
        "copies_in_all": len(given),
        "receipts": _round_receipts(ledger, name, limit),
        "guarded": [
            each
            for each, (_, record) in ledger.releases.items()
            if is_guarded(record) and ledger.broadcasts(each)
        ],
    }


def _round_receipts(ledger: Ledger, station: str, limit: int) -> list[Facts]:
    """What a station signed for of guarded releases, the youngest receipt first."""
    found = [(place, each) for place, each in ledger.received(station=station) if each.rounds]
    return [
        {"entry": place, "release": each.release, "rounds": list(each.rounds), "said": spans(each.rounds)}
        for place, each in _youngest(found, 0, limit)
    ]


def spans(numbers: Sequence[int]) -> str:
    """Numbers in their order, for people: 0 to 3, 7."""
    parts: list[tuple[int, int]] = []
    for each in numbers:
        if parts and parts[-1][1] == each - 1:
            parts[-1] = (parts[-1][0], each)
        else:
            parts.append((each, each))
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in parts)


def _signed(receipts: Iterable[tuple[int, ReceiptRecord]]) -> dict[tuple[str, str, bytes | int], int]:
    """By station, release, and copy or round: the entry of the receipt."""
    return {part: place for place, each in receipts for part in signed_for(each)}


def release_of(ledger: Ledger, name: str) -> tuple[int, ReleaseRecord]:
    """Place and record of a release, or that it is not there."""
    if name not in ledger.releases:
        raise not_there(f"there is no release {name[:64]}")
    return ledger.releases[name]


def is_guarded(record: ReleaseRecord) -> bool:
    """Whether copies of a release are made in the rounds of a federation."""
    return any(each.frozen for each in record.layouts)


def release_facts(ledger: Ledger, name: str, start: int = 0, limit: int = MOST) -> Facts:
    """A release and a part of its copies, in the order of the log."""
    place, record = release_of(ledger, name)
    given = ledger.dispatched(release=name)
    signed = _signed(ledger.received(release=name))
    return {
        "release": name,
        "number": record.number,
        "entry": place,
        "model": record.model.hex(),
        "layouts": [
            {"carrier": each.carrier, "profile": each.profile, "length": each.length, "law": each.law}
            for each in record.layouts
        ],
        "guarded": is_guarded(record),
        "copies": [
            {
                "entry": at,
                "station": each.station,
                "digest": each.copy.hex(),
                "signed": signed.get((each.station, name, each.copy)),
            }
            for at, each in given[start : start + limit]
        ],
        "copies_in_all": len(given),
        "broadcasts": broadcast_list(ledger, name, 0, limit),
        "broadcasts_in_all": len(ledger.broadcasts(name)),
    }


def broadcast_list(ledger: Ledger, name: str, start: int, limit: int) -> list[Facts]:
    """What was sent of a guarded release, the youngest round first, and who signed for it."""
    release_of(ledger, name)
    signed: dict[int, list[Facts]] = {}
    for place, receipt in ledger.received(release=name):
        for number in receipt.rounds:
            signed.setdefault(number, []).append({"station": receipt.station, "entry": place})
    return [
        {
            "entry": place,
            "number": each.number,
            "label": each.label,
            "copies": each.copies,
            "model": each.model.hex(),
            "root": each.root.hex(),
            "signed": len(signed.get(each.number, ())),
            "signers": signed.get(each.number, [])[:MOST],
        }
        for place, each in _youngest(ledger.broadcasts(name), start, limit)
    ]


def _youngest(items: Sequence[T], start: int, limit: int) -> Sequence[T]:
    """A part of a list, from its end on."""
    end = max(len(items) - start, 0)
    return items[max(end - limit, 0) : end][::-1]


def case_list(ledger: Ledger, start: int, limit: int) -> list[Facts]:
    """Investigations, the youngest first."""
    places = _youngest(tuple(ledger.investigations), start, limit)
    return [case_line_at(ledger, place).as_json() for place in places]


def case_line(ledger: Ledger, place: int) -> CaseLine:
    """An investigation, or that it is not there."""
    if place not in ledger.investigations:
        raise not_there(f"entry {place} is no investigation")
    return case_line_at(ledger, place)


def case_facts_of(home: Workspace, ledger: Ledger, place: int) -> Facts:
    """An investigation, its plan, and whether its evidence is there."""
    line = case_line(ledger, place)
    return {
        **line.as_json(),
        "recipients": line.investigation.recipients,
        "rule": line.investigation.rule,
        "looks": [each.as_json() for each in line.investigation.looks],
        "findings": None if line.verdict is None else line.verdict.findings.hex(),
        "evidence": kept_evidence(home, line) is not None,
    }


def entry_facts(index: int, entry: Entry) -> Facts:
    """An entry of the log as its canonical text says it, and its leaf."""
    data = entry.to_bytes()
    return {"index": index, "leaf": merkle.leaf_hash(data).hex(), "entry": from_json(data, what="an entry")}


def entry_list(registry: Registry, start: int, limit: int) -> list[Facts]:
    """Entries in their order."""
    log = registry.snapshot()
    places: Sequence[int] = range(start, min(start + limit, log.ledger.size))
    return [entry_facts(at, each) for at, each in zip(places, log.entries(places), strict=True)]


def extension(registry: Registry, old: int, new: int | None = None) -> Extension:
    """The proof that the log with `new` entries begins with its first `old` ones."""
    leaves = registry.leaves()
    size = len(leaves) if new is None else new
    if not 0 < old <= size <= len(leaves):
        raise not_there(f"the log has {len(leaves)} entries: sizes are 1 <= old <= new <= {len(leaves)}")
    return Extension(old=old, new=size, path=tuple(merkle.consistency_proof(leaves[:size], old)))


def known_head(registry: Registry, head: Head) -> bool:
    """Whether a head is one that this log had."""
    leaves = registry.leaves()
    return 0 < head.size <= len(leaves) and merkle.root(leaves[: head.size]) == head.root


def checkpoint(home: Workspace) -> bytes:
    """The last checkpoint of the log with its cosignatures, as its file says it; or that there is none."""
    note = PublicLog(home).last()
    if note is None:
        raise not_there("this log has signed no checkpoint yet (zktrace log checkpoint)")
    return note.to_bytes()


def signed_size(home: Workspace) -> int:
    """How many entries are under the last checkpoint that was signed."""
    note = PublicLog(home).last()
    return 0 if note is None else LogCheckpoint.from_text(note.text).size


def log_proof(home: Workspace, index: int) -> bytes:
    """An entry under the last checkpoint that was signed, for offline use; or that it is not there."""
    try:
        return PublicLog(home).proof(index).to_bytes()
    except Refused as error:
        raise not_there(str(error)) from error


def witness_facts(home: Workspace) -> Facts:
    """Who is asked to watch the log, and what of it is signed. No signature is verified here."""
    log = PublicLog(home)
    note, asked = log.last(), log.witnesses()
    signed = None if note is None else LogCheckpoint.from_text(note.text)
    by = set() if note is None else {(each.name, each.key) for each in note.signatures}
    return {
        "checkpoint": None
        if signed is None
        else {"origin": signed.origin, "size": signed.size, "root": signed.root.hex()},
        "witnesses": [
            {
                "name": each.key.name,
                "key": each.key.to_text(),
                "cosigned": (each.key.name, each.key.key_id) in by,
            }
            for each in asked
        ],
    }
