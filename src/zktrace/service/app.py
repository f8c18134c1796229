"""The application: routes, what every request passes first, and how errors are told."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

import zktrace
from zktrace.errors import Denied, Error, InputError
from zktrace.evidence.file import FILE_LIMIT as EVIDENCE_LIMIT
from zktrace.front.workspace import Workspace
from zktrace.primitives.text import one_line
from zktrace.service import actions, api, console, console_work, pages
from zktrace.service.bodies import Body
from zktrace.service.desk import FrontDesk, Settings, desk_of
from zktrace.service.limits import (
    BODY_LIMIT,
    UNSAFE,
    Rates,
    Receive,
    Scope,
    Send,
    check_size,
    dressed,
    headers_of,
    kind_of,
    sender_of,
)
from zktrace.service.problems import NOT_SIGNED_IN, TOO_SLOW, problem, status_of

UPLOADS = ("/releases", "/cases", "/api/v1/releases", "/api/v1/investigations")
THREADS = 12  # at 50 visitors at once, 40 of them made the slowest twentieth wait half as long again
_SLACK = 1 << 16  # bytes of a form around its file


def make_app(home: Workspace, settings: Settings, *, rates: Rates | None = None) -> FastAPI:
    """The application of a workspace."""
    app = FastAPI(
        title="zktrace",
        version=zktrace.__version__,
        description="Whose copy of a federated model leaked: the service of one operator.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=_few_threads,
    )
    desk = FrontDesk.of(home, settings, rates=rates)
    app.state.desk = desk
    app.state.overview = console.overview_of(desk)
    for each in (api.health, api.router, actions.router, console.router, console_work.router):
        app.include_router(each)
    app.add_exception_handler(Error, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _fault)
    app.add_middleware(Gate, desk=desk)
    return app


@asynccontextmanager
async def _few_threads(_: FastAPI) -> AsyncIterator[None]:
    """Requests are answered by few threads: more of them only wait for each other, and longer."""
    current_default_thread_limiter().total_tokens = THREADS
    yield


class Gate:
    """Host, sender, size and rate of a request are looked at before anything else of it."""

    def __init__(self, app: Any, desk: FrontDesk) -> None:  # noqa: ANN401
        self._app, self._desk = app, desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the beginning and the end of the service."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = dressed(send, secure=self._desk.settings.secure)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            kind = _kind(scope)
            limit = self._limit(kind, scope["path"])
            self._check(scope, headers, limit)
        except Error as error:
            answer = _answer(Request(scope, receive), error)
            await answer(scope, receive, send)
            return
        with ExitStack() as held:
            body = Body(receive, limit=limit, held=held, places=self._desk.places, kind=kind)
            await self._app(scope, body.take, body.answered_by(send))

    def _check(self, scope: Scope, headers: dict[str, str], limit: int) -> None:
        settings, path = self._desk.settings, scope["path"]
        if headers.get("host", "").lower() != settings.host and path != "/healthz":
            raise Denied(f"this service is called {settings.host} (zktrace serve --url)", status=400)
        self._desk.rates.take(sender_of(scope), kind_of(scope["method"], path))
        check_size(headers, limit)
        if scope["method"] in UNSAFE:
            elsewhere = headers.get("origin", settings.url) != settings.url
            if elsewhere or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
                raise Denied("this was sent from another site", status=403)

    def _limit(self, kind: str, path: str) -> int:
        if kind:
            return _SLACK + (self._desk.settings.upload_limit if kind == "model" else EVIDENCE_LIMIT)
        return max(BODY_LIMIT, 1 << 21) if path.startswith("/api/") else BODY_LIMIT


def _kind(scope: Scope) -> str:
    """What is uploaded by a request, if anything is."""
    if scope["method"] not in UNSAFE:
        return ""
    return "evidence" if scope["path"] == "/judge" else "model" if scope["path"] in UPLOADS else ""


def _answer(request: Request, error: Error) -> Response:
    """An error for a program, or for a person."""
    desk = desk_of(request)
    error = desk.complaints.instead_of(error, desk.home.database.place)
    status = status_of(error)
    headers = {"retry-after": "10"} if status in (429, 503) else {}
    if status == TOO_SLOW:
        headers = {"connection": "close"}  # what is left of the body is not waited for
    path, facts = request.url.path, problem(error, places={str(desk.home.root): "the workspace"})
    if path.startswith("/api/") or path == "/healthz":
        return JSONResponse(facts, status_code=status, headers=headers, media_type="application/problem+json")
    if status == NOT_SIGNED_IN and request.method == "GET":
        return RedirectResponse(f"/sign-in?next={quote(path)}", status_code=303)
    return pages.error_page(request, facts, headers=headers)


async def _told(request: Request, error: Exception) -> Response:
    return _answer(request, error if isinstance(error, Error) else InputError(str(error)))


async def _invalid(request: Request, error: Exception) -> Response:
    said = "; ".join(
        f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
        for each in (error.errors() if isinstance(error, RequestValidationError) else ())
    )
    return _answer(request, InputError(one_line(said, limit=500)))


async def _http(request: Request, error: Exception) -> Response:
    if isinstance(error.__cause__, Error):  # of ours, on the way through the body
        return _answer(request, error.__cause__)
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = "there is nothing at this address" if status == 404 else str(getattr(error, "detail", ""))
    return _answer(request, Denied(said, status=status))


async def _gone(request: Request, error: Exception) -> Response:
    """Whoever leaves in the middle of a body is no fault of ours; nobody reads this answer."""
    return Response(status_code=400)


async def _fault(request: Request, error: Exception) -> Response:
    """A fault is answered outside of the gate: its headers are put on here."""
    answer = _answer(request, Denied(f"{type(error).__name__}; the log of the service has more", status=500))
    for name, value in headers_of(secure=desk_of(request).settings.secure).items():
        answer.headers.setdefault(name, value)
    return answer
