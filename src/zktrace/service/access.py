"""Who may ask what: every endpoint says it by one of these types, and there is no endpoint without."""

from collections.abc import Callable
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from zktrace.errors import Denied
from zktrace.service.desk import FrontDesk, desk_of
from zktrace.service.limits import UNSAFE
from zktrace.service.problems import NOT_ALLOWED, NOT_SIGNED_IN
from zktrace.service.uploads import FIELD_LIMIT, FIELDS_LIMIT
from zktrace.service.visitors import PUBLIC, Role, Visitor

COOKIE: Final = "zkt_session"
CSRF_HEADER: Final = "x-csrf-token"
_BEARER: Final = HTTPBearer(
    auto_error=False,  # it is looked at here
    scheme_name="token",
    description="What /api/v1/login, or for a station /api/v1/login/station, answers with.",
)


def visitor_of(request: Request) -> Visitor:
    """Who asks, looked up once a request."""
    found: Visitor | None = getattr(request.state, "visitor", None)
    if found is None:
        found = request.state.visitor = _visitor_of(request)
    return found


def _visitor_of(request: Request) -> Visitor:
    """By a bearer token, or by the cookie of a session."""
    desk, given = desk_of(request), _authorization(request)
    if not given:
        return desk.tokens.visitor(request.cookies.get(COOKIE, ""))
    kind, _, token = given.partition(" ")
    found = desk.tokens.visitor(token.strip()) if kind.lower() == "bearer" else PUBLIC
    if found is PUBLIC:
        raise Denied("this token is of no session: sign in again", status=NOT_SIGNED_IN)
    return found


def _authorization(request: Request) -> str:
    """What a program says of itself; nothing where the cookie says who asks."""
    return request.headers.get("authorization", "").strip()


def needs(*roles: Role) -> Callable[..., Visitor]:
    """The visitor, if it has one of these roles; a program with a cookie also shows that it read a page."""

    def check(request: Request) -> Visitor:
        found = visitor_of(request)
        if found.role not in roles:
            if found is PUBLIC:
                raise Denied("sign in to see this", status=NOT_SIGNED_IN)
            raise Denied(f"this is not for {found.role}s", status=NOT_ALLOWED)
        by_cookie = found.token and not _authorization(request)
        if request.method in UNSAFE and by_cookie and request.url.path.startswith("/api/"):
            found.check_csrf(request.headers.get(CSRF_HEADER, ""))
        return found

    def check_signed_in(request: Request, _: Annotated[object, Security(_BEARER)]) -> Visitor:
        """The same, and the document of the API says that a token is asked for."""
        return check(request)

    return check if "public" in roles else check_signed_in


Anybody = Annotated[Visitor, Depends(needs("public", "station", "auditor", "operator"))]
Member = Annotated[Visitor, Depends(needs("station", "auditor", "operator"))]
Station = Annotated[Visitor, Depends(needs("station"))]
Reader = Annotated[Visitor, Depends(needs("auditor", "operator"))]
Operator = Annotated[Visitor, Depends(needs("operator"))]
AtDesk = Annotated[FrontDesk, Depends(desk_of)]


async def posted(request: Request) -> dict[str, str]:
    """The fields of a small form of the visitor's own session."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Denied("a form is expected", status=415)
    body = (await request.body())[: 2 * FIELD_LIMIT]
    try:
        pairs = parse_qsl(
            body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=FIELDS_LIMIT
        )
    except ValueError:
        raise Denied(f"a form of more than {FIELDS_LIMIT} fields", status=413) from None
    return dict(pairs)


async def owned(request: Request) -> dict[str, str]:
    """The same, of the session that sends it."""
    fields = await posted(request)
    visitor = visitor_of(request)
    if visitor is PUBLIC:
        raise Denied("sign in to do this", status=NOT_SIGNED_IN)
    visitor.check_csrf(fields.get("csrf", ""))
    return fields


Fields = Annotated[dict[str, str], Depends(posted)]
OwnFields = Annotated[dict[str, str], Depends(owned)]
