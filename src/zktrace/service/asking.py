"""Asking for work: what is checked before a job is made, the same for programs and for people."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from zktrace.dispatch.dispatching import recipients
from zktrace.errors import InputError, Refused
from zktrace.primitives.text import one_line
from zktrace.registry.ledger import Ledger, check_name
from zktrace.registry.overview import CaseLine
from zktrace.service import facts
from zktrace.service.desk import FrontDesk
from zktrace.service.fetched import wanted
from zktrace.service.job import JobRow
from zktrace.service.problems import not_there
from zktrace.service.work import check_budget, drop_upload, paid_for


def investigation(
    desk: FrontDesk, path: Path, *, release: str | None, budget: str, name: str, by: str
) -> JobRow:
    """A suspect that was uploaded is read, and a plan made. Nothing is spent."""
    with _taken(path):
        ledger = desk.home.registry.ledger()
        if release is None or not release:
            if len(ledger.releases) != 1:
                raise Refused("which release leaked? Name one")
            release = next(iter(ledger.releases))
        facts.release_of(ledger, release)
        price = check_budget(budget)
        check_affordable(ledger, str(price))
        return desk.jobs.add(
            "trace",
            {"file": str(path), "release": release, "budget": str(price), "name": one_line(name, limit=200)},
            subject=f"trace:{path.name}",
            by=by,
        )


@contextmanager
def _taken(path: Path) -> Iterator[None]:
    """What was uploaded, until there is a job that is about it: if there is none, it goes."""
    try:
        if not path.stat().st_size:
            raise InputError("choose a file: what came is empty")
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def check_affordable(ledger: Ledger, budget: str) -> None:
    """Refused now where the log would refuse it later."""
    price = check_budget(budget)
    if ledger.unpaid:
        raise Refused(f"nothing can be certified any more: entry {ledger.unpaid[0]} looked without a budget")
    if price > ledger.remaining:
        raise Refused(f"it costs {price}, and {ledger.remaining} is left of the budget")


def confirm(desk: FrontDesk, id: str, *, by: str) -> JobRow:
    """Let a planned investigation begin, unless somebody had this suspect investigated meanwhile."""
    ledger = desk.home.registry.ledger()
    job = desk.jobs.find(id)
    if job.state == "waiting":
        check_affordable(ledger, job.arguments["budget"])
        _check_still_new(ledger, job)
    return desk.jobs.confirm(id, by=by, began=ledger.size)


def _check_still_new(ledger: Ledger, job: JobRow) -> None:
    """Refused if the log has an investigation of this suspect that the plan did not show."""
    suspect, shown = bytes.fromhex(job.result["suspect"]), job.result["known"]
    for place, case in ledger.investigations.items():
        if case.suspect == suspect and case.release == job.arguments["release"] and place not in shown:
            raise Refused(
                f"entry {place} investigated this suspect since this plan was made: look there first; "
                "who still wants to pay for another look uploads it again"
            )


def carry_on(desk: FrontDesk, place: int, *, by: str) -> JobRow:
    """An investigation that was paid for and has no verdict goes on, with the suspect that was uploaded."""
    line = facts.case_line(desk.home.registry.ledger(), place)
    if line.verdict is not None:
        raise Refused(f"the investigation of entry {place} has its verdict already")
    found = carrying(desk, line)
    if isinstance(found, JobRow):
        return found
    if found is None:
        raise Refused(
            f"the suspect of entry {place} is not kept here: zktrace cases resume {place} SUSPECT "
            "carries on with its file"
        )
    case = line.investigation
    told = {"file": str(found), "release": case.release, "budget": str(case.budget), "place": place}
    name = f"the suspect of entry {place}"
    return desk.jobs.add("trace", {**told, "name": name}, subject=_case(place), by=by, confirmed=True)


def carrying(desk: FrontDesk, line: CaseLine) -> JobRow | Path | None:
    """Who is at an investigation without a verdict; else the file of its suspect, if that is kept."""
    ledger = desk.home.registry.ledger()
    about = desk.jobs.about(line.investigation.suspect.hex())
    again = desk.jobs.latest(_case(line.place))
    jobs: list[JobRow] = [*about, *(() if again is None else (again,))]
    for job in jobs:
        if not job.ended and paid_for(ledger, job) == line.place:
            return job
    files = (Path(job.arguments["file"]) for job in about)
    return next((each for each in files if each.is_file()), None)


def unfinished(desk: FrontDesk, job: JobRow) -> CaseLine | None:
    """What a job that failed had put on record before: it was paid for, and is not lost."""
    ledger = desk.home.registry.ledger()
    place = paid_for(ledger, job) if job.state == "failed" else None
    return None if place is None else facts.case_line(ledger, place)


def cancel(desk: FrontDesk, id: str) -> JobRow:
    """End a job; what was uploaded for it goes, unless a worker has it."""
    job = desk.jobs.cancel(id)
    if job.state == "cancelled":
        drop_upload(job)
    return job


def new_release(desk: FrontDesk, path: Path, *, name: str, by: str) -> JobRow:
    """A shared model that was uploaded goes on record."""
    with _taken(path):
        check_name(name, "release")
        if name in desk.home.registry.ledger().releases:
            raise Refused(f"a release {name} exists already")
        job = desk.jobs.add("release", {"file": str(path), "name": name}, subject=f"release:{name}", by=by)
        if job.arguments["file"] != str(path):
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
    if found is not None and file_of(desk, found) is not None and desk.jobs.keep(found):
        return found
    return desk.jobs.add(
        "copy", {"release": release, "station": station}, subject=_subject(release, station), by=station
    )


def file_of(desk: FrontDesk, job: JobRow) -> tuple[Path, os.stat_result] | None:
    """The copy that a job has made, which somebody wants just now; None if it is not there."""
    path = Path(job.result["file"]) if job.state == "done" else None
    found = None if path is None else wanted(desk.home, path)
    return None if path is None or found is None else (path, found)


def ready(desk: FrontDesk, release: str, station: str) -> JobRow:
    """The job that makes or made a station's own copy; a revoked station has none."""
    if desk.home.registry.ledger().station(station).revoked is not None:
        raise Refused("you are revoked: you get no further copies")
    found = desk.jobs.latest(_subject(release, station))
    if found is None:
        raise not_there(f"your copy of {release[:64]} is not ready: ask for it first")
    return found


def _case(place: int) -> str:
    return f"case:{place}"


def _subject(release: str, station: str) -> str:
    return f"copy:{release}:{station}"
