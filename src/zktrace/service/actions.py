"""The API, version 1: signing in, jobs, and the copies of the station that asks."""

import base64
import binascii
from enum import Enum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from zktrace.credentials.proof import FILE_LIMIT as PROOF_LIMIT
from zktrace.errors import MalformedProof
from zktrace.registry.requests import FILE_LIMIT as REQUEST_LIMIT
from zktrace.service import asking, facts, joining, receiving
from zktrace.service.access import Anybody, AtDesk, Member, Operator, Station
from zktrace.service.api import Limit, Start
from zktrace.service.job import JobRow
from zktrace.service.problems import PROBLEMS, not_there
from zktrace.service.store import folder
from zktrace.service.totp import CODE_LIMIT
from zktrace.service.uploads import saved
from zktrace.service.visitors import PUBLIC, station_signed_in

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
Facts = dict[str, Any]
Tags = list[str | Enum]
SIGN_IN: Tags = ["signing in"]
JOIN: Tags = ["enrolling"]
JOBS: Tags = ["jobs, for operators"]
COPIES: Tags = ["a station's own copies"]
A_MODEL: Final[dict[str, Any]] = {  # what a body is that is not read here
    "requestBody": {
        "required": True,
        "description": "The file as it is.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
A_RECEIPT: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The file of a receipt.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
Text = Annotated[str, Field(max_length=200)]


class PasswordGiven(BaseModel):
    """An account and its password; a code too, where the account has a second factor."""

    name: Text
    password: Annotated[str, Field(max_length=2000)]
    code: Annotated[str, Field(max_length=CODE_LIMIT)] = ""


class ProofGiven(BaseModel):
    """A station's signature of a challenge."""

    station: Text
    challenge: Text
    proof: Annotated[str, Field(max_length=2 * PROOF_LIMIT)]  # base64


class InvitationAsked(BaseModel):
    """Whom an invitation is for."""

    station: Text


class EnrolmentAsked(BaseModel):
    """An invitation, and the request of whoever has it."""

    invitation: Text
    request: Annotated[str, Field(max_length=REQUEST_LIMIT)]


class DispatchAsked(BaseModel):
    """Copies of a release that are wanted; without stations, everybody's."""

    release: Text
    stations: Annotated[list[Text], Field(max_length=1 << 16)] | None = None


@router.post("/login", tags=SIGN_IN)
async def login(given: PasswordGiven, desk: AtDesk, _: Anybody) -> Facts:
    """A token for an operator or an auditor."""
    found = await desk.passwords.signed_in(desk.accounts, given.name, given.password, given.code)
    return {"token": await run_in_threadpool(desk.tokens.issue, "session", found), "role": found.role}


@router.post("/challenges", tags=SIGN_IN)
def challenge(desk: AtDesk, _: Anybody) -> Facts:
    """Something for a station to sign, within two minutes, for this address."""
    return {"challenge": desk.tokens.issue("challenge", PUBLIC), "url": desk.settings.url}


@router.post("/login/station", tags=SIGN_IN)
def station_login(given: ProofGiven, desk: AtDesk, _: Anybody) -> Facts:
    """A token for the station that signed a challenge."""
    try:
        proof = base64.b64decode(given.proof, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedProof("a proof is sent in base64") from None
    found = station_signed_in(
        desk.home.registry.ledger(),
        desk.tokens,
        url=desk.settings.url,
        station=given.station,
        challenge=given.challenge,
        proof=proof,
        weak=desk.settings.allow_weak_params,
    )
    return {"token": desk.tokens.issue("session", found), "role": found.role}


@router.post("/links", tags=SIGN_IN)
def link(desk: AtDesk, visitor: Member) -> Facts:
    """An address that signs a browser in, once, within ten minutes."""
    return {"link": f"{desk.settings.url}/enter/{desk.tokens.issue('link', visitor)}"}


@router.post("/logout", tags=SIGN_IN)
def logout(desk: AtDesk, visitor: Member) -> Facts:
    """End this session."""
    desk.tokens.end(visitor.token)
    return {"signed_out": True}


@router.post("/invitations", tags=JOIN, status_code=201)
def invite(given: InvitationAsked, desk: AtDesk, _: Operator) -> Facts:
    """Let somebody enrol by a name: hand the invitation to whom the name belongs to."""
    return joining.invite(desk, given.station)


@router.get("/offer", tags=JOIN)
def offer(desk: AtDesk, _: Anybody) -> Facts:
    """What the next station's request has to answer, as `zktrace offer` prints it."""
    return joining.offer(desk)


@router.post("/enrolments", tags=JOIN, status_code=201)
def join(given: EnrolmentAsked, desk: AtDesk, _: Anybody) -> Facts:
    """Enrol by an invitation; the request is what `zktrace credential request` makes."""
    return joining.join(desk, given.invitation, given.request.encode("utf-8", "surrogatepass"))


@router.get("/jobs", tags=JOBS)
def jobs(desk: AtDesk, _: Operator, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """What waits for somebody, what runs, what is queued, and what has ended; of each, the youngest first."""
    return {"jobs": [shown(each) for each in desk.jobs.listed(start=start, limit=limit)]}


@router.get("/jobs/{id}", tags=JOBS)
def job(id: str, desk: AtDesk, _: Operator) -> Facts:
    """A job: how far it is, the plan that waits for a confirmation, or what came of it.

    It says what was asked for: the `name` of a suspect or a release, the `release`, the `station`; and the
    `budget` of an investigation, which is its price: confirming spends it. `created` and `changed` are
    seconds of the epoch. Of one that failed `open` is the investigation that it had paid for, if that still
    has no verdict.
    """
    found = desk.jobs.find(id)
    line = asking.unfinished(desk, found)
    return shown(found) | {"open": None if line is None or line.verdict is not None else line.place}


@router.post("/jobs/{id}/confirm", tags=JOBS)
def confirm(id: str, desk: AtDesk, visitor: Operator) -> Facts:
    """Spend what an investigation costs (the job's `budget`), and let it begin. Who is second is refused."""
    return shown(asking.confirm(desk, id, by=visitor.name))


@router.post("/jobs/{id}/cancel", tags=JOBS)
def cancel(id: str, desk: AtDesk, _: Operator) -> Facts:
    """End a job, or ask one that runs to stop."""
    return shown(asking.cancel(desk, id))


@router.post("/cases/{place}/carry-on", tags=JOBS, status_code=202)
def carry_on(place: int, desk: AtDesk, visitor: Operator) -> Facts:
    """Carry an investigation that was paid for and has no verdict to its verdict. Nothing is spent."""
    return shown(asking.carry_on(desk, place, by=visitor.name))


@router.post("/investigations", tags=JOBS, status_code=202, openapi_extra=A_MODEL)
async def investigate(  # noqa: PLR0917
    request: Request,
    desk: AtDesk,
    visitor: Operator,
    release: Annotated[str | None, Query(max_length=64)] = None,
    budget: Annotated[str, Query(max_length=64)] = "1e-3",
    name: Annotated[str, Query(max_length=200)] = "suspect",
) -> Facts:
    """Upload a suspect (the body). Its plan is made; nothing is spent before it is confirmed."""
    place = folder(desk.home, "uploads")
    path, _ = await saved(request.stream(), place, limit=desk.settings.upload_limit)
    return shown(asking.investigation(desk, path, release=release, budget=budget, name=name, by=visitor.name))


@router.post("/releases", tags=JOBS, status_code=202, openapi_extra=A_MODEL)
async def release(
    request: Request, desk: AtDesk, visitor: Operator, name: Annotated[str, Query(max_length=64)]
) -> Facts:
    """Upload a shared model (the body), and put it on record."""
    place = folder(desk.home, "uploads")
    path, _ = await saved(request.stream(), place, limit=desk.settings.upload_limit)
    return shown(asking.new_release(desk, path, name=name, by=visitor.name))


@router.post("/dispatches", tags=JOBS, status_code=202)
def dispatch(given: DispatchAsked, desk: AtDesk, visitor: Operator) -> Facts:
    """Put copies on record, which stations fetch."""
    return shown(asking.dispatches(desk, given.release, given.stations, by=visitor.name))


@router.post("/copies/{release}", tags=COPIES, status_code=202)
def ask_for_copy(release: str, desk: AtDesk, visitor: Station) -> Facts:
    """Have your own copy made ready, if it is not."""
    return own(asking.copy(desk, release, visitor.name))


@router.get("/copies/{release}", tags=COPIES)
def copy_state(release: str, desk: AtDesk, visitor: Station) -> Facts:
    """Whether your own copy is ready; its digest and size."""
    return own(asking.ready(desk, release, visitor.name))


@router.get("/copies/{release}/delivery", tags=COPIES)
def asked_to_sign(release: str, desk: AtDesk, visitor: Station, rounds: bool = False) -> Response:
    """What you were handed of a release and have not signed for: sign it, and send the receipt.

    With `rounds`, the rounds of a guarded release, once they are listed; until then how far that is (202).
    """
    if not rounds:
        return Response(receiving.asked(desk, release, visitor.name), media_type="application/json")
    job = receiving.rounds_asked(desk, release, visitor.name)
    if job.state != "done":
        return JSONResponse(own(job), status_code=202)
    return Response(job.result["delivery"], media_type="application/json")


@router.post("/copies/{release}/delivery", tags=COPIES, status_code=202)
def ask_for_rounds(release: str, desk: AtDesk, visitor: Station) -> Facts:
    """Have the rounds of a guarded release listed that you were sent and have not signed for."""
    return own(receiving.ask_for_rounds(desk, release, visitor.name))


@router.post("/receipts", tags=COPIES, status_code=201, openapi_extra=A_RECEIPT)
async def receive(request: Request, response: Response, desk: AtDesk, visitor: Station) -> Facts:
    """Your receipt (the body), as `zktrace credential receipt` or `zktrace sign` makes it.

    One for rounds of a guarded release is taken by a job (202), which `/receipts/{job}` tells of; one of
    these at a time. Its signature is verified before, and one that is on record already is not taken again.
    """
    found = await run_in_threadpool(receiving.taken, desk, await request.body(), visitor.name)
    if not isinstance(found, JobRow):
        return found
    response.status_code = 202
    return own_receipt(found)


@router.get("/receipts/{id}", tags=COPIES)
def receipt_state(id: str, desk: AtDesk, visitor: Station) -> Facts:
    """Whether your own receipt is on record, and where."""
    return own_receipt(receiving.state_of(desk, id, visitor.name))


@router.get("/copies/{release}/file", tags=COPIES, response_class=FileResponse)
def copy_file(release: str, desk: AtDesk, visitor: Station) -> FileResponse:
    """Your own copy. An interrupted download goes on by Range; If-Range is the digest."""
    job = asking.ready(desk, release, visitor.name)
    found = asking.file_of(desk, job)
    if found is None:
        raise not_there(f"your copy of {release} is not ready: ask for it first")
    path, stat = found
    return FileResponse(
        path,
        stat_result=stat,
        media_type="application/octet-stream",
        filename=f"{release}-{visitor.name}.safetensors",
        headers={"etag": f'"{job.result["digest"]}"'},
    )


def shown(job: JobRow) -> Facts:
    """A job, for operators."""
    return job.as_json()


def own_receipt(job: JobRow) -> Facts:
    """What a station may know of the job that takes its receipt."""
    found = {key: job.result.get(key) for key in ("entry", "copies")} if job.state == "done" else {}
    return {"job": job.id, "state": job.state, "share": job.share, "error": job.error, **found}


def own(job: JobRow) -> Facts:
    """What a station may know of the job that makes its copy."""
    found = {key: job.result.get(key) for key in ("digest", "bytes")} if job.state == "done" else {}
    return {"state": job.state, "share": job.share, "error": job.error, **found}
