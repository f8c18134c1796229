"""The console: pages that show what the API says, for people. They work without JavaScript."""

from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from zktrace.errors import Denied
from zktrace.registry.ledger import Ledger
from zktrace.report.page import POLICY as REPORT_POLICY
from zktrace.service import asking, facts
from zktrace.service.access import COOKIE, Anybody, AtDesk, Fields, Member, OwnFields, Reader
from zktrace.service.api import evidence_file, proven
from zktrace.service.counted import Counted
from zktrace.service.desk import FrontDesk
from zktrace.service.job import OPEN, JobRow
from zktrace.service.pages import page, part, static
from zktrace.service.problems import not_there
from zktrace.service.visitors import PUBLIC, SECONDS, Visitor
from zktrace.service.work import report_path

router = APIRouter(include_in_schema=False)
LATEST: Final = 5  # cases on the overview
From = Annotated[int, Query(alias="from", ge=0, le=1 << 40)]
Start = Annotated[int | None, Query(alias="from", ge=0, le=1 << 40)]


@router.get("/static/{name}")
def static_file(name: str, _: Anybody) -> Response:
    """Style and script of the pages."""
    data, kind = static(name)
    return Response(data, media_type=kind, headers={"cache-control": "public, max-age=3600"})


@router.get("/")
def overview(request: Request, desk: AtDesk, visitor: Anybody, start: From = 0) -> Response:
    """The registry in numbers; for a station what it was given, for strangers the way on."""
    ledger = desk.home.registry.ledger()
    if visitor.role == "station":
        return page(
            request,
            "station.html",
            station=facts.station_facts(ledger, visitor.name, start, facts.PAGE),
            own=True,
            start=start,
        )
    if visitor is PUBLIC:
        return page(request, "welcome.html", head=facts.head_facts(ledger))
    whole: Counted[Markup] = request.app.state.overview
    return page(request, "overview.html", whole=whole.of(ledger))


def overview_of(desk: FrontDesk) -> Counted[Markup]:
    """What the overview says: the same for all who may read it."""

    def made(ledger: Ledger) -> Markup:
        cases = facts.case_list(ledger, 0, LATEST)
        return part("_overview.html", found=desk.overview.of(ledger), cases=cases)

    return Counted(made)


@router.get("/sign-in")
def sign_in_form(request: Request, _: Anybody, next: str = "/") -> HTMLResponse:
    """Name, password, and a code for whoever needs one."""
    return page(request, "sign_in.html", next=_inside(next), wrong="")


@router.post("/sign-in")
async def sign_in(request: Request, desk: AtDesk, _: Anybody, fields: Fields) -> Response:
    """A session for an operator or an auditor."""
    place = _inside(fields.get("next", "/"))
    name, password, code = (fields.get(each, "") for each in ("name", "password", "code"))
    try:
        found = await desk.passwords.signed_in(desk.accounts, name, password, code)
    except Denied as error:
        wrong = str(error)
        return await run_in_threadpool(
            lambda: page(request, "sign_in.html", status=401, next=place, wrong=wrong)
        )
    return await run_in_threadpool(_entered, desk, found, place)


@router.get("/enter/{token}")
def enter_form(request: Request, token: str, _: Anybody) -> HTMLResponse:
    """A one-time link asks first: programs that look at links would use it up."""
    return page(request, "enter.html", token=token)


@router.post("/enter/{token}")
def enter(token: str, desk: AtDesk, _: Anybody) -> Response:
    """A session for whoever got the link."""
    return _entered(desk, desk.tokens.take("link", token), "/")


@router.post("/sign-out")
def sign_out(desk: AtDesk, visitor: Member, _: OwnFields) -> Response:
    """End the session."""
    desk.tokens.end(visitor.token)
    answer = RedirectResponse("/", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/stations")
def stations(request: Request, desk: AtDesk, _: Reader, start: From = 0) -> HTMLResponse:
    """Stations in the order of their places."""
    ledger = desk.home.registry.ledger()
    rows = facts.station_list(ledger, start, facts.PAGE)
    return page(request, "stations.html", rows=rows, start=start, count=len(ledger.by_row))


@router.get("/stations/{name}")
def station(request: Request, name: str, desk: AtDesk, _: Reader, start: From = 0) -> HTMLResponse:
    """A station and what it was given."""
    found = facts.station_facts(desk.home.registry.ledger(), name, start, facts.PAGE)
    return page(request, "station.html", station=found, own=False, start=start)


@router.get("/releases")
def releases(request: Request, desk: AtDesk, _: Reader) -> HTMLResponse:
    """Releases in the order they were made, and a form for the next."""
    ledger = desk.home.registry.ledger()
    taken = set(ledger.release_names)
    free = next(f"r{at}" for at in range(1, len(taken) + 2) if f"r{at}" not in taken)
    return page(request, "releases.html", rows=desk.overview.of(ledger)["releases"], free=free)


@router.get("/releases/{name}")
def release(request: Request, name: str, desk: AtDesk, _: Reader, start: From = 0) -> HTMLResponse:
    """A release and who has copies of it."""
    ledger = desk.home.registry.ledger()
    found = facts.release_facts(ledger, name, start, facts.PAGE)
    waiting = len(ledger.holding(name).waiting)
    return page(request, "release.html", release=found, waiting=waiting, start=start)


@router.get("/cases")
def cases(request: Request, desk: AtDesk, visitor: Reader, start: From = 0) -> HTMLResponse:
    """Investigations, and those that wait for somebody."""
    ledger = desk.home.registry.ledger()
    asked = visitor.role == "operator"
    shown = desk.jobs.listed(kinds=("trace",), states=OPEN, limit=facts.PAGE) if asked else []
    return page(
        request,
        "cases.html",
        rows=facts.case_list(ledger, start, facts.PAGE),
        count=len(ledger.investigations),
        start=start,
        jobs=shown,
        job_count=desk.jobs.count(kinds=("trace",), states=OPEN) if asked else 0,
        budget=facts.budget_facts(ledger),
    )


@router.get("/cases/{place:int}")
def case(request: Request, place: int, desk: AtDesk, visitor: Reader) -> HTMLResponse:
    """An investigation from its plan to its verdict."""
    ledger = desk.home.registry.ledger()
    found = facts.case_facts_of(desk.home, ledger, place)
    asked = found["verdict"] is None and visitor.role == "operator"
    at_it = asking.carrying(desk, facts.case_line(ledger, place)) if asked else None
    return page(
        request,
        "case.html",
        case=found,
        report=report_path(desk.home, place).is_file(),
        job=at_it if isinstance(at_it, JobRow) else None,
        kept=isinstance(at_it, Path),
        head=facts.head_facts(ledger)["head"],
    )


@router.get("/cases/{place:int}/report")
def case_report(place: int, desk: AtDesk, _: Reader) -> FileResponse:
    """The report of a case: one file that loads nothing and runs nothing."""
    path = report_path(desk.home, place)
    facts.case_line(desk.home.registry.ledger(), place)
    if not path.is_file():
        raise not_there(f"no report of entry {place} was drawn here")
    headers = {"content-security-policy": f"{REPORT_POLICY}; frame-ancestors 'none'"}
    return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/cases/{place:int}/evidence")
def case_evidence(place: int, desk: AtDesk, _: Reader) -> FileResponse:
    """The evidence file, for a judge."""
    return evidence_file(desk, place)


@router.get("/log")
def log(request: Request, desk: AtDesk, _: Anybody, start: Start = None) -> HTMLResponse:
    """Head and entries, the youngest page first."""
    registry = desk.home.registry
    ledger = registry.ledger()
    first = max(ledger.size - facts.PAGE, 0) if start is None else start
    rows = [_told(each) for each in facts.entry_list(registry, first, facts.PAGE)]
    return page(
        request,
        "log.html",
        head=facts.head_facts(ledger),
        rows=rows,
        start=first,
        step=facts.PAGE,
        seen=facts.witness_facts(desk.home),
    )


@router.get("/log/{index:int}")
def log_entry(request: Request, index: int, desk: AtDesk, _: Anybody) -> HTMLResponse:
    """An entry, and the path that shows it under the head."""
    found = proven(desk, index)
    return page(
        request,
        "entry.html",
        found=facts.entry_facts(index, found.entry),
        text=found.entry.to_bytes().decode(),
        path=[each.hex() for each in found.inclusion.path],
        head=facts.head_facts(desk.home.registry.ledger()),
        signed=index < facts.signed_size(desk.home),
    )


def _told(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry in a line: its kind, and whom or what it is about."""
    body = entry["entry"]["body"]
    about = next((body[key] for key in ("station", "name", "title", "release", "of") if key in body), "")
    if "investigation" in body:
        about = f"entry {body['investigation']}: {body['verdict']}"
    return {
        "index": entry["index"],
        "at": entry["entry"]["at"],
        "kind": entry["entry"]["kind"],
        "about": about,
        "leaf": entry["leaf"],
    }


def _entered(desk: FrontDesk, visitor: Visitor, place: str) -> RedirectResponse:
    answer = RedirectResponse(place, status_code=303)
    answer.set_cookie(
        COOKIE,
        desk.tokens.issue("session", visitor),
        max_age=SECONDS["session"],
        httponly=True,
        secure=desk.settings.secure,
        samesite="lax",
    )
    return answer


def _inside(place: str) -> str:
    """An address of this service, and no other's."""
    parts = urlsplit(place)
    plain = place.startswith("/") and not place.startswith("//") and "\\" not in place and place.isprintable()
    return place if plain and not parts.netloc and not parts.scheme else "/"
