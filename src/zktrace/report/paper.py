"""The page of `zktrace study paper`: every table and figure of the paper beside ours, with a word on each."""

from collections.abc import Sequence
from pathlib import Path

from zktrace.primitives.files import write_atomic
from zktrace.report.drawing import svg_panels
from zktrace.report.html import Child, Html, code, join, section, tag
from zktrace.report.markdown import blocks
from zktrace.report.page import page
from zktrace.studies.exhibits import EXHIBITS, Exhibit
from zktrace.studies.provenance import provenance
from zktrace.studies.rows import Row

_SUBTITLE = (
    "Every table and figure of the paper, drawn again from saved rows, with the paper's values beside ours."
)
_READING = (
    "Where the head of a column says (paper), a value in parentheses is the paper's; columns that are the "
    "paper's alone say so. Other parentheses are what their head says. GNSS data may be simulated; "
    "the paper's "
    "were recorded. What was run stands below each exhibit: where networks are smaller or trained "
    "for less than the paper's, compare differences and counts, not accuracies."
)


def write_paper_report(rows: Sequence[Row], out: Path, *, replace: bool) -> None:
    """The page, as one file."""
    write_atomic(out, paper_html(rows).encode(), replace=replace)


def paper_html(rows: Sequence[Row]) -> str:
    """A whole document."""
    body = join(
        (
            section("How to read it", tag("p", _READING), _contents(rows), anchor="contents"),
            *(_shown(each, rows) for each in EXHIBITS),
        )
    )
    return page(title="The paper's tables and figures", subtitle=_SUBTITLE, body=body)


def _contents(rows: Sequence[Row]) -> Html:
    """A list of what follows; what has no rows says so."""
    items = []
    for each in EXHIBITS:
        missing = each.studies and not each.rows(rows)
        note = tag("span", "no rows yet", class_="tag") if missing else None
        items.append(tag("li", tag("a", _title(each), href=f"#{each.anchor}"), note))
    return tag("nav", tag("ol", *items), aria_label="Contents")


def _title(exhibit: Exhibit) -> str:
    return f"{exhibit.title} ({exhibit.kind})"


def _shown(exhibit: Exhibit, rows: Sequence[Row]) -> Html:
    drawn = _drawn(exhibit, rows)
    label = tag("p", "In the paper: ", code(exhibit.label), class_="source")
    if drawn is None:
        how = tag("p", "There are no rows for it yet. They are made by:")
        return section(_title(exhibit), label, how, tag("pre", code(exhibit.command)), anchor=exhibit.anchor)
    words, ran = exhibit.words(rows), provenance(exhibit.rows(rows))
    return section(
        _title(exhibit),
        label,
        tag("p", words) if words else None,
        drawn,
        tag("p", f"What was run: {ran}" if ran else "Computed; no rows are needed.", class_="ran"),
        anchor=exhibit.anchor,
    )


def _drawn(exhibit: Exhibit, rows: Sequence[Row]) -> Child:
    if exhibit.kind == "figure":
        found = exhibit.figure(rows)
        if found is None:
            return None
        caption = tag("figcaption", f"{found.description} Filled marks are ours, open marks the paper's.")
        return tag("figure", tag("div", *svg_panels(found), class_="plots"), caption)
    table = exhibit.table(rows)
    return None if table is None else tag("div", blocks(table, caption=exhibit.title), class_="dense")
