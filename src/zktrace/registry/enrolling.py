"""Enrolling a station: the next place, under the lock, for whoever holds the key that asks."""

from collections.abc import Callable
from dataclasses import replace

from zktrace.registry.ledger import Ledger, check_name
from zktrace.registry.records import PLACE, EnrolmentRecord, Record
from zktrace.registry.registry import Registry
from zktrace.registry.requests import Request


def enrol(registry: Registry, *, station: str, request: Request, allow_weak_params: bool = False) -> int:
    """Put a station on record at the place that is next; the index of its entry."""
    return registry.add(
        enrolling(registry, station=station, request=request, allow_weak_params=allow_weak_params)
    )


def enrolling(
    registry: Registry, *, station: str, request: Request, allow_weak_params: bool = False
) -> Callable[[Ledger], Record]:
    """What puts it there. All that takes a while is done now, before the lock that everybody waits for."""
    check_name(station, "station")
    request.verify(request.offer, allow_weak_params=allow_weak_params)
    asked = enrolment(station, 0, request, bits=registry.known().ledger.setup.identity_bits)

    def next_place(ledger: Ledger) -> Record:
        place = len(ledger.by_row)
        request.check_offer(ledger.offer(PLACE, place).digest)
        return replace(asked, row=place)

    return next_place


def enrolment(station: str, place: int, request: Request, *, bits: int) -> EnrolmentRecord:
    """The record of a station at a place."""
    return EnrolmentRecord(
        station=station,
        row=place,
        public_key=request.public_key,
        codeword=request.public.codeword(bits),
        nonce=request.nonce,
        request=request.digest(),
    )
