"""What a worker does for each kind of job: one call of the front door, and what it says of it.

Every kind can be done again after its worker was killed, and leaves what one that was not killed leaves: a
release and a dispatch are found on record, and an investigation that was paid for goes on where it ended.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from zktrace.carriers import needs_training
from zktrace.dispatch.dispatching import kept, recipients, remake
from zktrace.errors import InputError, Refused, Unavailable
from zktrace.front.case import TracedCase, tried
from zktrace.front.given import as_budget
from zktrace.front.receipts import delivery, take
from zktrace.front.suspects import ReadSuspect, read_suspect
from zktrace.front.workspace import Workspace
from zktrace.models import ModelState, model_digest, open_confined
from zktrace.primitives.files import read_bounded, sweep
from zktrace.registry.ledger import Ledger
from zktrace.registry.signing import FILE_LIMIT, Receipt
from zktrace.releases import OpenRelease
from zktrace.service.fetched import make_room, place_of, wanted
from zktrace.service.job import JobRow, Kind
from zktrace.service.jobs import Jobs
from zktrace.service.store import folder
from zktrace.tracing import Plan, Steps, begun

Result = dict[str, Any]


def carry_out(home: Workspace, jobs: Jobs, job: JobRow) -> None:
    """Do a job and settle it. Its errors are the caller's."""
    if job.kind == "trace" and job.confirmed_by is None:
        jobs.report(job, share=0.0, note="reading the suspect")
        jobs.settle(job, "waiting", result=_planned(home, job))
        return
    jobs.settle(job, "done", result=_WORK[job.kind](home, jobs, job))
    if job.kind != "trace":  # not before: whoever takes the job up again needs it
        drop_upload(job)


def drop_upload(job: JobRow) -> None:
    """What was uploaded for a job goes; a suspect that another job is about as well stays."""
    if "file" in job.arguments and "place" not in job.arguments:
        Path(job.arguments["file"]).unlink(missing_ok=True)


def said(home: Workspace, job: JobRow, error: str) -> str:
    """What went wrong, without the places of files on this machine."""
    file = str(job.arguments.get("file") or home.root)
    return error.replace(file, "the uploaded file").replace(str(home.root), "the workspace")


def _read(home: Workspace, job: JobRow) -> tuple[OpenRelease, ReadSuspect]:
    opened = home.leaked(job.arguments["release"])
    return opened, read_suspect(opened, uploaded(job), None, None, align=True)


def uploaded(job: JobRow) -> ModelState:
    """The model that was uploaded for a job. Its bytes are looked at by a child process alone."""
    return open_confined(Path(job.arguments["file"]))


def _planned(home: Workspace, job: JobRow) -> Result:
    """What would be looked at, in which order and for which part of the price. Nothing is scored."""
    opened, read = _read(home, job)
    plan = Plan.of(read.reading, opened.rule)
    known = (place for place, case in opened.ledger.investigations.items() if case.suspect == read.digest)
    return {
        "suspect": read.digest.hex(),
        "release": opened.name,
        "recipients": len(opened.ledger.by_row),
        "looks": [
            {"carriers": list(each.carriers), "alignment": each.alignment, "share": str(each.share)}
            for each in plan.looks
        ],
        "unread": dict(read.reading.left),
        "known": list(known),
    }


def _trace(home: Workspace, jobs: Jobs, job: JobRow) -> Result:
    """The investigation. A first attempt that was killed may have paid for it: then that one goes on."""
    ledger = home.registry.ledger()
    jobs.report(job, share=0.05, note="reading the suspect")
    state, steps, place = uploaded(job), _steps(jobs, job), paid_for(ledger, job)
    if place is not None:
        return _told(home, job, home.resume(place, state, steps=steps), *_other_price(ledger, job, place))
    suspect, began = bytes.fromhex(job.result["suspect"]), int(job.result["began"])
    if model_digest(state) != suspect:
        raise Refused("the uploaded file is no longer the one that was planned for")
    budget, release = Fraction(job.arguments["budget"]), job.arguments["release"]
    case = home.trace(state, budget=budget, release=release, once_after=began, steps=steps)
    return _told(home, job, case)


def _steps(jobs: Jobs, job: JobRow) -> Steps:
    """The bar of an investigation moves. That it cannot be moved just now stops nothing that is paid for."""

    def show(what: str, share: float) -> None:
        with suppress(Unavailable):
            jobs.report(job, share=0.1 + 0.8 * share, note=what)

    return show


def paid_for(ledger: Ledger, job: JobRow) -> int | None:
    """The investigation on record that a job carries to its verdict, if there is one."""
    if "place" in job.arguments:
        return int(job.arguments["place"])
    if job.kind != "trace" or "began" not in job.result:
        return None
    suspect = bytes.fromhex(job.result["suspect"])
    return begun(ledger, suspect, job.arguments["release"], int(job.result["began"]))


def _other_price(ledger: Ledger, job: JobRow, place: int) -> tuple[str, ...]:
    """That an investigation is somebody else's: it was begun after this one was confirmed."""
    price, asked = str(ledger.investigations[place].budget), job.arguments["budget"]
    if price == asked:
        return ()
    return (
        f"entry {place} investigated this suspect already, at the price of {price}: {asked} was not spent",
    )


def _told(home: Workspace, job: JobRow, case: TracedCase, *warnings: str) -> Result:
    """What came of it. The verdict is on record: what cannot be kept beside it is said, and fails nothing."""
    named = replace(case, source=Path(Path(job.arguments["name"]).name or "suspect"))  # as its sender has it
    failed = tried(lambda: named.report(report_path(home, case.case.place), replace=True))
    found = (*warnings, *case.warnings, *(f"no report could be written: {each}" for each in failed))
    return {
        "place": case.case.place,
        "verdict": str(case.verdict),
        "named": list(case.named),
        "evidence": None if case.path is None else case.path.name,
        "report": not failed,
        "warnings": [said(home, job, each) for each in found],
    }


def report_path(home: Workspace, place: int) -> Path:
    """Where the report of a case is kept, beside the service's other files."""
    return folder(home, "reports") / f"case-{place}.html"


def _dispatch(home: Workspace, jobs: Jobs, job: JobRow) -> Result:
    """Copies on record. Those that are computed are not kept: a station's is made again when it asks."""
    opened = home.opened(job.arguments["release"])
    given = {each.station for _, each in opened.ledger.dispatched(release=opened.name)}
    asked = recipients(opened.ledger, job.arguments["stations"])
    missing = [name for name in asked if name not in given]
    there = len(asked) - len(missing)
    trained = needs_training(opened.carriers, opened.profile)
    out = None if trained else folder(home, "making") / opened.name
    made: list[str] = []

    if missing:
        jobs.report(job, share=there / len(asked), note=f"{len(missing)} of {len(asked)} are missing")

    def show(station: str, share: float) -> None:
        done = (there + len(made) + share * (share < 1)) / len(asked)
        jobs.report(job, share=done, note=f"{station}, {there + len(made) + 1} of {len(asked)}")

    for copy in home.dispatch_all(missing, opened, out=out, progress=show) if missing else ():
        made.append(copy.station)
        if out is not None:
            copy.path.unlink(missing_ok=True)
    return {"release": opened.name, "made": len(made), "were_there": len(given)}


def _release(home: Workspace, jobs: Jobs, job: JobRow) -> Result:
    """A shared model on record; one that this very job put there before it was killed is found."""
    name = job.arguments["name"]
    jobs.report(job, share=0.1, note="reading the model")
    state, ledger = uploaded(job), home.registry.ledger()
    if name in ledger.releases and ledger.release(name).model == model_digest(state):
        opened = home.opened(name)
    else:
        opened = home.release(state, name=name)
    return {"release": opened.name, "carriers": list(opened.carriers), "model": opened.record.model.hex()}


def _copy(home: Workspace, jobs: Jobs, job: JobRow) -> Result:
    """A station's copy as a file: the one that is kept, or the same made again."""
    station, opened = job.arguments["station"], home.opened(job.arguments["release"])
    if opened.ledger.station(station).revoked is not None:
        raise Refused(f"the station {station} is revoked: it gets no further copies")
    path = home.copy_path(opened.name, station)
    digest, early = kept(opened, station, path), 0
    if digest is None:
        place = place_of(home)
        path = place / f"{opened.record.number}-{station}.safetensors"
        wanted(home, path)
        early = make_room(place)
        sweep(path)
        jobs.report(job, share=0.1, note="making the copy")
        digest = kept(opened, station, path) or remake(opened, station, path)
    found: Result = {"file": str(path), "digest": digest.hex(), "bytes": path.stat().st_size}
    said = f"the disk is nearly full: copies that others were about to fetch are to be made again ({early})"
    return found | ({"warnings": [said]} if early else {})


def _receipt(home: Workspace, jobs: Jobs, job: JobRow) -> Result:
    """The rounds that a station is asked to sign for; or what it signed, checked and put on record."""
    station, release = job.arguments["station"], job.arguments["release"]
    jobs.report(job, share=0.1, note="reading the lists of rounds")
    if "file" not in job.arguments:
        made = delivery(home, station, release, rounds=True)
        return {"delivery": made.to_bytes().decode(), "copies": len(made.copies)}
    receipt = Receipt.from_bytes(read_bounded(Path(job.arguments["file"]), limit=FILE_LIMIT))
    copies = len(receipt.delivery.copies)
    for place, each in home.registry.ledger().received(station=station, release=release):
        if each.receipt == receipt.digest():  # by a worker that was killed, or sent twice
            return {"entry": place, "copies": copies}
    entry = take(home, receipt, allow_weak_params=bool(job.arguments["weak"]))
    return {"entry": entry, "copies": copies}


_WORK: Final[Mapping[Kind, Callable[[Workspace, Jobs, JobRow], Result]]] = {
    "trace": _trace,
    "dispatch": _dispatch,
    "release": _release,
    "copy": _copy,
    "receipt": _receipt,
}


def check_budget(text: str) -> Fraction:
    """The price of an investigation, as people write it."""
    budget = as_budget(text)
    if not 0 < budget < 1:
        raise InputError(f"a budget must lie between 0 and 1, not be {text}")
    return budget
