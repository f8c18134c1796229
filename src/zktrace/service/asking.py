"""Asking for work: what is checked before a job is made, the same for programs and for people."""

from collections.abc import Sequence
from pathlib import Path

from zktrace.dispatch.dispatching import recipients
from zktrace.errors import Error, Refused
from zktrace.primitives.text import one_line
from zktrace.registry.ledger import Ledger, check_name
from zktrace.service import facts
from zktrace.service.desk import FrontDesk
from zktrace.service.jobs import JobRow
from zktrace.service.problems import not_there
from zktrace.service.work import check_budget


def investigation(
    desk: FrontDesk, path: Path, *, release: str | None, budget: str, name: str, by: str
) -> JobRow:
    """A suspect that was uploaded is read, and a plan made. Nothing is spent."""
    try:
        ledger = desk.home.registry.ledger()
        if release is None or not release:
            if len(ledger.releases) != 1:
                raise Refused("which release leaked? Name one")
            release = next(iter(ledger.releases))
        facts.release_of(ledger, release)
        price = check_budget(budget)
        check_affordable(ledger, str(price))
    except Error:
        path.unlink(missing_ok=True)
        raise
    return desk.jobs.add(
        "trace",
        {"file": str(path), "release": release, "budget": str(price), "name": one_line(name, limit=200)},
        subject=f"trace:{path.name}",
        by=by,
    )


def check_affordable(ledger: Ledger, budget: str) -> None:
    """Refused now where the log would refuse it later."""
    price = check_budget(budget)
    if ledger.unpaid:
        raise Refused(f"nothing can be certified any more: entry {ledger.unpaid[0]} looked without a budget")
    if price > ledger.remaining:
        raise Refused(f"it costs {price}, and {ledger.remaining} is left of the budget")


def confirm(desk: FrontDesk, id: str, *, by: str) -> JobRow:
    """Let a planned investigation begin."""
    ledger = desk.home.registry.ledger()
    job = desk.jobs.find(id)
    if job.state == "waiting":
        check_affordable(ledger, job.arguments["budget"])
    return desk.jobs.confirm(id, by=by, began=ledger.size)


def cancel(desk: FrontDesk, id: str) -> JobRow:
    """End a job; what was uploaded for it goes, unless a worker has it."""
    job = desk.jobs.cancel(id)
    if job.state == "cancelled" and "file" in job.arguments:
        Path(job.arguments["file"]).unlink(missing_ok=True)
    return job


def new_release(desk: FrontDesk, path: Path, *, name: str, by: str) -> JobRow:
    """A shared model that was uploaded goes on record."""
    try:
        check_name(name, "release")
        if name in desk.home.registry.ledger().releases:
            raise Refused(f"a release {name} exists already")
    except Error:
        path.unlink(missing_ok=True)
        raise
    job = desk.jobs.add("release", {"file": str(path), "name": name}, subject=f"release:{name}", by=by)
    if job.arguments["file"] != str(path):
        path.unlink(missing_ok=True)
        raise Refused(f"a release {name} is just being made")
    return job


def dispatches(desk: FrontDesk, release: str, stations: Sequence[str] | None, *, by: str) -> JobRow:
    """Copies go on record, for some stations or for everybody."""
    ledger = desk.home.registry.ledger()
    facts.release_of(ledger, release)
    if not recipients(ledger, stations):
        raise Refused("nobody is enrolled, or everybody is revoked: there is nobody to make copies for")
    given = None if stations is None else list(stations)
    job = desk.jobs.add(
        "dispatch", {"release": release, "stations": given}, subject=f"dispatch:{release}", by=by
    )
    if job.arguments["stations"] != given:
        raise Refused(f"copies of {release} are just being made: try again when that is done")
    return job


def copy(desk: FrontDesk, release: str, station: str) -> JobRow:
    """A station's own copy is made ready."""
    ledger = desk.home.registry.ledger()
    facts.release_of(ledger, release)
    if ledger.station(station).revoked is not None:
        raise Refused("you are revoked: you get no further copies")
    if not ledger.dispatched(station=station, release=release):
        raise not_there(f"no copy of {release} is on record for you: ask your operator")
    found = desk.jobs.latest(_subject(release, station))
    if found is not None and found.state == "done" and Path(found.result["file"]).is_file():
        return found
    return desk.jobs.add(
        "copy", {"release": release, "station": station}, subject=_subject(release, station), by=station
    )


def ready(desk: FrontDesk, release: str, station: str) -> JobRow:
    """The job that makes or made a station's own copy; a revoked station has none."""
    if desk.home.registry.ledger().station(station).revoked is not None:
        raise Refused("you are revoked: you get no further copies")
    found = desk.jobs.latest(_subject(release, station))
    if found is None:
        raise not_there(f"your copy of {release[:64]} is not ready: ask for it first")
    return found


def _subject(release: str, station: str) -> str:
    return f"copy:{release}:{station}"
