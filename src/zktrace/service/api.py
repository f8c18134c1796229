"""The API, version 1: what everybody may read, and what readers and operators may."""

from enum import Enum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, PlainTextResponse, Response, StreamingResponse

from zktrace.front.case import kept_evidence
from zktrace.registry.export import export_of
from zktrace.service import facts
from zktrace.service.access import Anybody, AtDesk, Member, Reader
from zktrace.service.problems import PROBLEMS, not_there

router = APIRouter(prefix="/api/v1", responses=PROBLEMS)

Start = Annotated[int, Query(ge=0, le=1 << 40)]
Limit = Annotated[int, Query(ge=1, le=facts.MOST)]
Facts = dict[str, Any]
Tags = list[str | Enum]
PUBLIC_TAG: Tags = ["public"]
READER_TAG: Tags = ["for operators and auditors"]


@router.get("/head", tags=PUBLIC_TAG)
def head(desk: AtDesk, _: Anybody) -> Facts:
    """The head of the log."""
    return facts.head_facts(desk.home.registry.ledger())


@router.get("/log/entries", tags=PUBLIC_TAG)
def entries(desk: AtDesk, _: Anybody, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """Entries of the log in their order."""
    return {"entries": facts.entry_list(desk.home.registry, start, limit)}


@router.get("/log/entries/{index}", tags=PUBLIC_TAG)
def entry(index: int, desk: AtDesk, _: Anybody) -> Facts:
    """An entry, with the path that shows it under the present head."""
    return facts.entry_facts(index, proven(desk, index).entry)


@router.get("/log/entries/{index}/proof", tags=PUBLIC_TAG)
def proof(index: int, desk: AtDesk, _: Anybody) -> Response:
    """The same as a file, as `zktrace log prove` writes it."""
    return Response(proven(desk, index).to_bytes() + b"\n", media_type="application/json")


@router.get("/log/entries/{index}/tlog-proof", tags=PUBLIC_TAG, response_class=PlainTextResponse)
def log_proof(index: int, desk: AtDesk, _: Anybody) -> PlainTextResponse:
    """The entry with its proof under the last checkpoint and its cosignatures, in one file of C2SP."""
    named = {"content-disposition": f"attachment; filename=entry-{index}.tlog-proof"}
    return PlainTextResponse(facts.log_proof(desk.home, index), headers=named)


@router.get("/log/consistency", tags=PUBLIC_TAG)
def consistency(
    desk: AtDesk,
    _: Anybody,
    old: Annotated[int, Query(ge=1, le=1 << 40)],
    new: Annotated[int | None, Query(ge=1, le=1 << 40)] = None,
) -> Response:
    """The proof that the log with `new` entries (all of them by default) begins with its first `old`."""
    found = facts.extension(desk.home.registry, old, new)
    return Response(found.to_bytes() + b"\n", media_type="application/json")


@router.get("/log/export", tags=PUBLIC_TAG)
def export(desk: AtDesk, _: Anybody) -> StreamingResponse:
    """The public part of the registry in one file, as `zktrace registry export` writes it.

    It ends with the head of the log as it was when it was asked for. A file without it is not whole: if
    another log, as a backup, takes the place of this one meanwhile, the connection is broken off.
    """
    return StreamingResponse(
        export_of(desk.home.registry.snapshot()),
        media_type="application/octet-stream",
        headers={"content-disposition": "attachment; filename=registry.zkt"},
    )


@router.get("/log/checkpoint", tags=PUBLIC_TAG, response_class=PlainTextResponse)
def checkpoint(desk: AtDesk, _: Anybody) -> PlainTextResponse:
    """The last head that the log signed, with what witnesses signed of it: a note of C2SP."""
    return PlainTextResponse(facts.checkpoint(desk.home))


@router.get("/log/witnesses", tags=PUBLIC_TAG)
def witnesses(desk: AtDesk, _: Anybody) -> Facts:
    """Who is asked to watch the log, with their public keys."""
    return facts.witness_facts(desk.home)


@router.get("/me", tags=["for everybody with an account or a credential"])
def me(desk: AtDesk, visitor: Member) -> Facts:
    """Who you are; of a station, what it was given."""
    found: Facts = {"role": visitor.role, "name": visitor.name, "csrf": visitor.csrf}
    if visitor.role == "station":
        found |= facts.station_facts(desk.home.registry.ledger(), visitor.name)
    return found


@router.get("/overview", tags=READER_TAG)
def overview(desk: AtDesk, _: Reader) -> Facts:
    """The registry in numbers."""
    return desk.overview.of(desk.home.registry.ledger())


@router.get("/budget", tags=READER_TAG)
def budget(desk: AtDesk, _: Reader) -> Facts:
    """What investigations may spend together, and have."""
    return facts.budget_facts(desk.home.registry.ledger())


@router.get("/stations", tags=READER_TAG)
def stations(desk: AtDesk, _: Reader, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """Stations in the order of their places."""
    return {"stations": facts.station_list(desk.home.registry.ledger(), start, limit)}


@router.get("/stations/{name}", tags=READER_TAG)
def station(name: str, desk: AtDesk, _: Reader, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """A station and what it was given, the youngest first."""
    return facts.station_facts(desk.home.registry.ledger(), name, start, limit)


@router.get("/releases", tags=READER_TAG)
def releases(desk: AtDesk, _: Reader) -> Facts:
    """Releases in the order they were made."""
    return {"releases": desk.overview.of(desk.home.registry.ledger())["releases"]}


@router.get("/releases/{name}", tags=READER_TAG)
def release(name: str, desk: AtDesk, _: Reader, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """A release and who has copies of it, a part of them at a time."""
    return facts.release_facts(desk.home.registry.ledger(), name, start, limit)


@router.get("/releases/{name}/broadcasts", tags=READER_TAG)
def broadcasts(name: str, desk: AtDesk, _: Reader, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """What was sent of a guarded release, the youngest round first."""
    return {"broadcasts": facts.broadcast_list(desk.home.registry.ledger(), name, start, limit)}


@router.get("/cases", tags=READER_TAG)
def cases(desk: AtDesk, _: Reader, start: Start = 0, limit: Limit = facts.PAGE) -> Facts:
    """Investigations, the youngest first."""
    return {"cases": facts.case_list(desk.home.registry.ledger(), start, limit)}


@router.get("/cases/{place}", tags=READER_TAG)
def case(place: int, desk: AtDesk, _: Reader) -> Facts:
    """An investigation by its place in the log."""
    return facts.case_facts_of(desk.home, desk.home.registry.ledger(), place)


@router.get("/cases/{place}/evidence", tags=READER_TAG)
def evidence(place: int, desk: AtDesk, _: Reader) -> FileResponse:
    """The evidence file, for a judge. It holds the row of whoever it names, and nobody else's."""
    return evidence_file(desk, place)


def evidence_file(desk: AtDesk, place: int) -> FileResponse:
    """The evidence of an investigation as a download."""
    path = kept_evidence(desk.home, facts.case_line(desk.home.registry.ledger(), place))
    if path is None:
        raise not_there(f"there is no evidence of entry {place}: it has no verdict, or its file was lost")
    return FileResponse(path, media_type="application/json", filename=f"case-{place}.zkt.json")


def proven(desk: AtDesk, index: int) -> Any:  # noqa: ANN401
    """An entry and its inclusion, or that it is not there."""
    if not 0 <= index < desk.home.registry.ledger().size:
        raise not_there(f"there is no entry {index}")
    return desk.home.registry.prove(index)


health = APIRouter()


@health.get("/healthz", include_in_schema=False)
def healthz(request: Request, desk: AtDesk, _: Anybody) -> PlainTextResponse:
    """Ready: the log can be read."""
    del request
    return PlainTextResponse(f"ok {desk.home.registry.ledger().size}\n")
