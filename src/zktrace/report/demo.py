"""The page of a demo: what was expected of each case, what happened, and where its report is."""

from collections.abc import Sequence
from dataclasses import dataclass

from zktrace.report.html import code, section, table, tag
from zktrace.report.page import page


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCase:
    """One line of the table."""

    case: str
    expected: str
    happened: str
    ok: bool
    page: str = ""  # relative address of the case's own report


def demo_html(cases: Sequence[DemoCase], *, head: str) -> str:
    """The whole document."""
    wrong = sum(not each.ok for each in cases)
    rows = [
        (
            tag("a", each.case, href=each.page) if each.page else each.case,
            each.expected,
            each.happened,
            "as expected" if each.ok else "MISMATCH",
        )
        for each in cases
    ]
    verdict = "Everything happened as expected." if not wrong else f"{wrong} cases ended other than expected."
    body = section(
        "Cases",
        tag("p", verdict),
        table(("case", "expected", "happened", ""), rows, caption="Expected and happened"),
        tag("p", "Head of the registry's log:"),
        tag("pre", code(head)),
    )
    subtitle = "Ten simulated GNSS stations: enrolment, training, copies, leaks, a judge"
    return page(title="ZK-Trace demo", subtitle=subtitle, body=body)
