"""The records that an accusation stands on, picked from the entries of an evidence file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from zktrace.derivation.promises import Promise
from zktrace.errors import InputError
from zktrace.evidence import Evidence
from zktrace.registry.offers import promised
from zktrace.registry.records import (
    PLACE,
    RELEASE,
    EnrolmentRecord,
    Entry,
    InvestigationRecord,
    Record,
    ReleaseRecord,
    ReservationRecord,
    SetupRecord,
    VerdictRecord,
    offer_digest,
)

T = TypeVar("T", bound=Record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """One record of each kind, an enrolment for each accused, and the places of all in the log."""

    setup: SetupRecord
    release: ReleaseRecord
    investigation: InvestigationRecord
    verdict: VerdictRecord
    enrolments: dict[str, EnrolmentRecord]
    reservations: tuple[ReservationRecord, ...]
    places: dict[str, int]  # of setup, release, investigation, verdict; "enrolment <name>"; "reservation <n>"

    def promise_of_place(self, place: int) -> tuple[Promise, bytes]:
        """The seed tree that a station's place is in, and the digest of the offer that it asked for."""
        record = self._promising(PLACE, place)
        return promised(record, PLACE, self._carriers), offer_digest(self.setup, record)

    def promise_of_release(self) -> Promise:
        """The seed tree that the release's directions come from."""
        return promised(self._promising(RELEASE, self.release.number), RELEASE, self._carriers)

    def promised_at(self, kind: str, place: int) -> int:
        """Which entry promised a seed."""
        record = self._promising(kind, place)
        if isinstance(record, SetupRecord):
            return self.places[SetupRecord.kind]
        return self.places[f"reservation {self.reservations.index(record)}"]

    @property
    def _carriers(self) -> tuple[str, ...]:
        return tuple(each.carrier for each in self.setup.carriers)

    def _promising(self, kind: str, place: int) -> SetupRecord | ReservationRecord:
        first = self.setup.places if kind == PLACE else self.setup.releases
        if place < first.count:
            return self.setup
        for each in self.reservations:
            if each.of == kind and each.first <= place < each.first + each.seeds.count:
                return each
        raise InputError(f"no entry of the file promises a seed for {kind} {place}")


def open_dossier(evidence: Evidence) -> Dossier:
    """The records of the entries: all that are needed, each once, and no other."""
    found = [(each.index, Entry.from_bytes(each.entry).record) for each in evidence.entries]
    single = {
        kind.kind: _the_one(found, kind)
        for kind in (SetupRecord, ReleaseRecord, InvestigationRecord, VerdictRecord)
    }
    enrolments = {record.station: (at, record) for at, record in found if isinstance(record, EnrolmentRecord)}
    reservations = [(at, record) for at, record in found if isinstance(record, ReservationRecord)]
    wanted = {each.station for each in evidence.accused}
    if set(enrolments) != wanted or len(found) != len(single) + len(wanted) + len(reservations):
        raise InputError(
            f"the entries are {', '.join(record.kind for _, record in found)}; needed are a setup, "
            "a release, an investigation, a verdict and the enrolments of "
            f"{', '.join(sorted(wanted)) or 'nobody'}"
        )
    return Dossier(
        setup=_the_one(found, SetupRecord)[1],
        release=_the_one(found, ReleaseRecord)[1],
        investigation=_the_one(found, InvestigationRecord)[1],
        verdict=_the_one(found, VerdictRecord)[1],
        enrolments={name: record for name, (_, record) in enrolments.items()},
        reservations=tuple(record for _, record in reservations),
        places={kind: at for kind, (at, _) in single.items()}
        | {f"enrolment {name}": at for name, (at, _) in enrolments.items()}
        | {f"reservation {number}": at for number, (at, _) in enumerate(reservations)},
    )


def _the_one(found: Sequence[tuple[int, Record]], kind: type[T]) -> tuple[int, T]:
    matching = [(at, record) for at, record in found if isinstance(record, kind)]
    if len(matching) != 1:
        raise InputError(f"{len(matching)} entries are of the kind {kind.kind}, 1 is needed")
    return matching[0]
