"""The page around a report: policy, style for light, dark and paper, header and footer."""

from importlib.resources import files

import zktrace
from zktrace.report.html import Child, Html, tag

# Nothing may be loaded or run, not even from this file; styles and pictures only if they stand in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def style() -> str:
    """The style sheet of every report."""
    return files("zktrace.report").joinpath("style.css").read_text(encoding="utf-8")


def page(*, title: str, subtitle: Child, body: Child) -> str:
    """A whole document."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"zktrace {zktrace.__version__}"),
        tag("title", title),
        tag("style", Html(style())),
    )
    header = tag("header", tag("h1", title), tag("p", subtitle))
    footer = tag(
        "footer", f"Drawn by zktrace {zktrace.__version__}. This file loads nothing and runs nothing."
    )
    main = tag("main", header, body, footer)
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", main), lang="en") + "\n"
