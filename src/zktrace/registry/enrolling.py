"""Enrolling a station: the next place, under the lock, for whoever holds the key that asks."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from zktrace.errors import Error, Refused
from zktrace.primitives.files import write_atomic
from zktrace.registry.ledger import Ledger, check_name
from zktrace.registry.records import PLACE, EnrolmentRecord, Record
from zktrace.registry.registry import Registry
from zktrace.registry.requests import Request


def enrol(
    registry: Registry,
    *,
    station: str,
    request: Request,
    allow_weak_params: bool = False,
    path: Path | None = None,
) -> int:
    """Put a station on record at the place that is next; the index of its entry. Its request goes to `path`.

    The file is there before the record is: an accusation without it could not be judged. It has its name when
    the station is on record: two that want to be one station do not take each other's files away.
    """
    check_name(station, "station")
    if station in registry.ledger().stations:
        raise Refused(f"a station {station} is enrolled already")
    entry = _next_place(registry, station, request, allow_weak_params=allow_weak_params)
    if path is None:
        return registry.add(entry)
    waiting = _waiting(path, request.digest())
    write_atomic(waiting, request.to_bytes() + b"\n", secret=True, replace=True)
    try:
        index = registry.add(entry)
    except Error:
        known = registry.ledger().stations  # it may be on record all the same
        if station not in known or known[station].enrolment.request != request.digest():
            waiting.unlink(missing_ok=True)
        raise
    _named(waiting, path)
    return index


def name_request(ledger: Ledger, station: str, path: Path) -> None:
    """Give the request of an enrolled station its name, if whoever put it on record died before."""
    if station in ledger.stations:
        _named(_waiting(path, ledger.station(station).enrolment.request), path)


def _waiting(path: Path, digest: bytes) -> Path:
    """Where a request lies while its station is put on record."""
    return path.with_name(f".{path.stem}.{digest.hex()[:32]}.waiting")


def _named(waiting: Path, path: Path) -> None:
    with suppress(FileNotFoundError):
        os.replace(waiting, path)


def _next_place(
    registry: Registry, station: str, request: Request, *, allow_weak_params: bool
) -> Callable[[Ledger], Record]:
    """What puts it there. All that takes a while is done now, before the lock that everybody waits for."""
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
