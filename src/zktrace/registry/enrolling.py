"""Enrolling a station: the next row, under the lock."""

from zktrace.credentials.keys import PublicKey
from zktrace.registry.custody import Custody
from zktrace.registry.ledger import Ledger, check_name
from zktrace.registry.records import Record
from zktrace.registry.registry import Registry


def enrol(registry: Registry, custody: Custody, *, station: str, public: PublicKey) -> int:
    """Put a station on record with the row that is next; the index of its entry."""
    check_name(station, "station")

    def next_row(ledger: Ledger) -> Record:
        return custody.enrolment(ledger.setup, station=station, row=len(ledger.by_row), public=public)

    return registry.add(next_row)
