"""The console's forms: uploads, plans that are confirmed, jobs as they go on, and the judge's page."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from zktrace.errors import InputError
from zktrace.evidence.file import FILE_LIMIT
from zktrace.report.judgement import Hearing, judgement_body, outcome_word
from zktrace.service import asking, facts, joining
from zktrace.service.access import Anybody, AtDesk, Operator, OwnFields
from zktrace.service.console import From
from zktrace.service.desk import FrontDesk
from zktrace.service.job import JobRow
from zktrace.service.limits import sender_of
from zktrace.service.pages import page
from zktrace.service.store import folder
from zktrace.service.uploads import Sent, received
from zktrace.service.visitors import Visitor

router = APIRouter(include_in_schema=False)


@router.get("/cases/new")
def new_case(request: Request, desk: AtDesk, _: Operator) -> HTMLResponse:
    """A suspect, the release it is said to come from, and what the look may spend."""
    ledger = desk.home.registry.ledger()
    return page(
        request, "new_case.html", releases=list(ledger.release_names), budget=facts.budget_facts(ledger)
    )


@router.post("/cases")
async def upload_suspect(request: Request, desk: AtDesk, visitor: Operator) -> Response:
    """The suspect goes to the disk, and its plan is made."""
    place, limit = folder(desk.home, "uploads"), desk.settings.upload_limit
    sent = await received(request, visitor, place, limit=limit)
    job = await run_in_threadpool(_investigate, desk, sent, visitor.name)
    return _to(job)


def _investigate(desk: FrontDesk, sent: Sent, by: str) -> JobRow:
    path, fields = sent.path, sent.fields
    if path is None:
        raise InputError("choose the suspect's file")
    return asking.investigation(
        desk,
        path,
        release=fields.get("release"),
        budget=fields.get("budget", "1e-3").strip(),
        name=sent.name,
        by=by,
    )


@router.post("/cases/{place:int}/carry-on")
def carry_on(place: int, desk: AtDesk, visitor: Operator, _: OwnFields) -> Response:
    """What was paid for and has no verdict goes on."""
    return _to(asking.carry_on(desk, place, by=visitor.name))


@router.post("/stations/invite")
def invite(request: Request, desk: AtDesk, _: Operator, fields: OwnFields) -> HTMLResponse:
    """An invitation, shown once."""
    found = joining.invite(desk, fields.get("station", "").strip())
    return page(request, "invited.html", found=found, url=desk.settings.url)


@router.post("/releases")
async def upload_model(request: Request, desk: AtDesk, visitor: Operator) -> Response:
    """A shared model goes to the disk, and on record by a job."""
    place, limit = folder(desk.home, "uploads"), desk.settings.upload_limit
    sent = await received(request, visitor, place, limit=limit)
    if sent.path is None:
        raise InputError("choose the model's file")
    name = sent.fields.get("name", "").strip()
    job = await run_in_threadpool(asking.new_release, desk, sent.path, name=name, by=visitor.name)
    return _to(job)


@router.post("/releases/{name}/dispatch")
def dispatch(name: str, desk: AtDesk, visitor: Operator, _: OwnFields) -> Response:
    """Copies for everybody who has none."""
    return _to(asking.dispatches(desk, name, None, by=visitor.name))


@router.get("/jobs")
def jobs(request: Request, desk: AtDesk, _: Operator, start: From = 0) -> HTMLResponse:
    """What waits or runs, and then the youngest."""
    found = desk.jobs.listed(start=start, limit=facts.PAGE)
    return page(request, "jobs.html", jobs=found, start=start, count=desk.jobs.count())


@router.get("/jobs/{id}")
def job(request: Request, id: str, desk: AtDesk, _: Operator) -> HTMLResponse:
    """A job as it stands."""
    return page(request, "job.html", **_shown(desk, id))


@router.get("/jobs/{id}/progress")
def progress(request: Request, id: str, desk: AtDesk, _: Operator) -> Response:
    """The part of the page that changes; when nothing more will, the whole page is asked for."""
    values = _shown(desk, id)
    answer = page(request, "_progress.html", **values)
    if values["job"].state not in ("queued", "running"):
        answer.headers["hx-refresh"] = "true"
    return answer


@router.post("/jobs/{id}/confirm")
def confirm(id: str, desk: AtDesk, visitor: Operator, _: OwnFields) -> Response:
    """Spend what it costs."""
    return _to(asking.confirm(desk, id, by=visitor.name))


@router.post("/jobs/{id}/cancel")
def cancel(id: str, desk: AtDesk, _visitor: Operator, _: OwnFields) -> Response:
    """End it."""
    return _to(asking.cancel(desk, id))


@router.get("/judge")
def judge_form(request: Request, _: Anybody) -> HTMLResponse:
    """An evidence file, and a head from somebody else."""
    return page(request, "judge.html", body=None, outcome="", head="")


@router.post("/judge")
async def judge(request: Request, desk: AtDesk, visitor: Anybody) -> Response:
    """The nine steps, for anybody. Nothing of it is kept."""
    with desk.hearings.turn(sender_of(request.scope)):
        hearing = await _heard(request, desk, visitor)
    body = Markup(judgement_body(hearing))  # noqa: S704
    return page(request, "judge.html", body=body, outcome=outcome_word(hearing.outcome), head=hearing.head)


async def _heard(request: Request, desk: FrontDesk, visitor: Visitor) -> Hearing:
    sent = await received(request, visitor, folder(desk.home, "judged"), limit=FILE_LIMIT, csrf=False)
    try:
        if sent.path is None or not sent.size:
            raise InputError("choose the evidence file")
        head = sent.fields.get("head", "").strip()
        return await desk.hearings.hear(desk.home, sent.path, name=sent.name, head=head)
    finally:
        if sent.path is not None:
            sent.path.unlink(missing_ok=True)


def _shown(desk: FrontDesk, id: str) -> dict[str, Any]:
    job, ledger = desk.jobs.find(id), desk.home.registry.ledger()
    return {"job": job, "budget": facts.budget_facts(ledger), "unfinished": asking.unfinished(desk, job)}


def _to(job: JobRow) -> RedirectResponse:
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)
