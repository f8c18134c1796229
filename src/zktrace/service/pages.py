"""Templates and what they are given: text from outside is escaped, as in the reports."""

from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import zktrace
from zktrace.errors import Denied, Error
from zktrace.primitives.rounding import chance
from zktrace.report import html
from zktrace.report.page import style
from zktrace.service.access import visitor_of
from zktrace.service.desk import desk_of
from zktrace.service.facts import PAGE
from zktrace.service.visitors import PUBLIC

# address -> what it says, and who sees it; the order is that of the page
MENU: Final = (
    ("/", "Overview", ("operator", "auditor", "station")),
    ("/stations", "Stations", ("operator", "auditor")),
    ("/releases", "Releases", ("operator", "auditor")),
    ("/cases", "Cases", ("operator", "auditor")),
    ("/jobs", "Jobs", ("operator",)),
    ("/log", "Transparency", ("public", "operator", "auditor", "station")),
    ("/judge", "Judge", ("public", "operator", "auditor", "station")),
)
STATIC: Final = {"console.css": "text/css", "htmx-2.0.11.min.js": "text/javascript"}


@cache
def environment() -> Environment:
    """The templates of this room."""
    made = Environment(
        loader=PackageLoader("zktrace.service"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "name": lambda value: Markup(html.name(str(value))),  # noqa: S704
        "digest": lambda value: Markup(html.digest(str(value))),  # noqa: S704
        "text": lambda value: Markup(html.text(str(value))),  # noqa: S704
        "chance": lambda value: chance(_fraction(value)),
    }
    made.globals |= {"table": _table, "version": zktrace.__version__, "link": _link, "page_size": PAGE}
    return made


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:  # noqa: ANN401
    """A page of the console for whoever asks."""
    try:
        visitor = visitor_of(request)
    except Error:
        visitor = PUBLIC
    desk = desk_of(request)
    here = request.url.path
    menu = [
        (address, label, here == address or (address != "/" and here.startswith(f"{address}/")))
        for address, label, roles in MENU
        if visitor.role in roles
    ]
    text = (
        environment()
        .get_template(template)
        .render(visitor=visitor, menu=menu, title_of=desk.home.registry.known().ledger.setup.title, **values)
    )
    return HTMLResponse(text, status_code=status)


def part(template: str, **values: Any) -> Markup:  # noqa: ANN401
    """A piece of a page that is the same for all who may see it."""
    return Markup(environment().get_template(template).render(**values))  # noqa: S704


def error_page(request: Request, problem: dict[str, object], *, headers: dict[str, str]) -> HTMLResponse:
    """What went wrong, for a person."""
    status = int(str(problem["status"]))
    found = page(request, "error.html", status=status, problem=problem)
    found.headers.update(headers)
    return found


def static(name: str) -> tuple[bytes, str]:
    """A file that pages load, and its type."""
    if name not in STATIC:
        raise Denied("there is no such file", status=404)
    folder = files("zktrace.service").joinpath("static")
    data = folder.joinpath(name).read_bytes()
    return (style().encode() + data if name == "console.css" else data), STATIC[name]


def _fraction(value: object) -> Any:  # noqa: ANN401
    return Fraction(str(value))


def _link(address: str, label: object) -> Markup:
    return Markup(html.tag("a", html.name(str(label)), href=address))  # noqa: S704


def _table(head: list[str], rows: list[list[Any]], *, caption: str, numeric: tuple[int, ...] = ()) -> Markup:
    """A table of the reports; cells that are markup already stay as they are."""
    cells = [[html.Html(each) if isinstance(each, Markup) else each for each in row] for row in rows]
    return Markup(html.table(head, cells, caption=caption, numeric=numeric))  # noqa: S704
