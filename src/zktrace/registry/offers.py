"""Promised seeds as the log has them: who promised which place."""

from dataclasses import dataclass

from zktrace.derivation.promises import Promise
from zktrace.registry.records import PLACE, ReservationRecord, SetupRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Seeds that an entry promised: what a station asks for a place of, and a release is made from."""

    promise: Promise
    index: int  # of the entry in the log
    digest: bytes  # of its record and, if that is a reservation, of the setup

    def has(self, place: int) -> bool:
        """Whether the seed of this place is among them."""
        return self.promise.first <= place < self.promise.first + self.promise.count


def promised(record: SetupRecord | ReservationRecord, kind: str, carriers: tuple[str, ...]) -> Promise:
    """The seed tree of a record."""
    if isinstance(record, SetupRecord):
        first, tree = 0, record.places if kind == PLACE else record.releases
    else:
        first, tree = record.first, record.seeds
    return Promise(kind=kind, first=first, count=tree.count, root=tree.root, carriers=carriers)
