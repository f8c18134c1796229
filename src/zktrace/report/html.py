"""HTML as values: what is not `Html` already is escaped, so text from outside cannot become markup."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from zktrace.primitives.text import one_line

NAME_LIMIT = 120  # characters shown of a name
TEXT_LIMIT = 4000  # characters shown of a sentence


class Html(str):
    """Markup that may be written as it is."""

    __slots__ = ()


Child: TypeAlias = str | int | float | None

_VOID = frozenset({"meta", "br", "hr", "col", "link", "img"})


def text(value: str, *, limit: int = TEXT_LIMIT) -> Html:
    """Text from anywhere: cut, escaped; what is unprintable (bidirectional controls too) is spelled out."""
    return Html(html.escape(one_line(value, limit=limit), quote=True))


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. `class_` and `aria_label` give the attributes class and aria-label; None leaves one out."""
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = key.rstrip("_").replace("_", "-")
        given = value if isinstance(value, Html) else text(_plain(value))
        words.append(spelled if value is True else f'{spelled}="{given}"')
    start = f"<{' '.join(words)}>"
    return Html(start) if name in _VOID else Html(f"{start}{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Children after each other; None is nothing."""
    return Html(
        "".join(
            each if isinstance(each, Html) else text(_plain(each)) for each in children if each is not None
        )
    )


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.10g}"


def name(value: str, *, limit: int = NAME_LIMIT) -> Html:
    """A name from outside, kept from turning its neighbours around whatever script it is written in."""
    return tag("bdi", text(value, limit=limit))


def code(value: str) -> Html:
    """Digests, heads, commands."""
    return tag("code", text(value))


def digest(value: str, *, keep: int = 8) -> Html:
    """A digest, or a head that ends in one: the first and last characters, the whole of it on hover."""
    before, colon, rest = value.rpartition(":")
    if len(rest) <= 2 * keep + 1:
        return code(value)
    return tag("code", f"{before}{colon}{rest[:keep]}…{rest[-keep:]}", title=value, class_="short")


def with_digests(value: str) -> Html:
    """A sentence whose digests are shortened, each with the whole of it on hover."""
    parts = re.split(r"([0-9a-f]{40,})", value)
    return join(digest(part) if number % 2 else part for number, part in enumerate(parts))


def table(
    head: Sequence[str], rows: Iterable[Sequence[Child]], *, caption: str, numeric: Sequence[int] = ()
) -> Html:
    """A table with a caption; columns in `numeric` are aligned right.

    On a narrow screen every row becomes a list of its own, so that nothing is cut off: each cell carries the
    head of its column for that.
    """
    kinds = ["number" if column in numeric else None for column in range(len(head))]
    top = tag(
        "tr", *(tag("th", each, scope="col", class_=kind) for each, kind in zip(head, kinds, strict=True))
    )
    body = [
        tag(
            "tr",
            *(
                tag("td", tag("span", each), class_=kind, data_head=title or None)
                for each, kind, title in zip(row, kinds, head, strict=True)
            ),
        )
        for row in rows
    ]
    inner = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *body))
    return tag("div", inner, class_="wide", role="region", aria_label=caption, tabindex=0)


def facts(rows: Iterable[tuple[str, Child]]) -> Html:
    """Names and values under each other."""
    return tag("dl", *(tag("div", tag("dt", key), tag("dd", value)) for key, value in rows), class_="facts")


def section(title: str, *children: Child, anchor: str | None = None) -> Html:
    """A part of the page with its heading."""
    return tag("section", tag("h2", title), *children, id=anchor)


def paragraphs(sentences: Iterable[str]) -> Html:
    """One paragraph each."""
    return join(tag("p", each) for each in sentences)


def bullets(items: Iterable[Child]) -> Html:
    """An unordered list."""
    return tag("ul", *(tag("li", each) for each in items))
