"""The page of a demo: what was expected of each case, what happened, a picture of it, and where to go on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zktrace.demo.folder import REPORT
from zktrace.demo.outcomes import Agreement, Examined, Losses, Shown, Told, Traced
from zktrace.primitives.files import write_atomic
from zktrace.registry.ledger import Ledger
from zktrace.report.attribution import agreement_figure
from zktrace.report.case import case_html
from zktrace.report.case_scores import case_figure
from zktrace.report.case_values import CaseReport
from zktrace.report.html import Child, Html, code, digest, join, section, table, tag, with_digests
from zktrace.report.page import page
from zktrace.report.plots import Dot, Limit, dot_plot, steps_plot
from zktrace.report.svg import figure
from zktrace.report.tracing import report_of

TICK: Final = "\N{CHECK MARK}"
CROSS: Final = "\N{BALLOT X}"
NEXT: Final = (
    ("Make a workspace: registry, budget and the secret code key.", "zktrace init operator"),
    ("Each station makes a credential and keeps its key.", "zktrace credential new NAME"),
    ("Enrol every station; each gets a secret row.", "zktrace enrol --help"),
    (
        "Put your model on record: a file of weights, safetensors, npz or torch.",
        "zktrace release MODEL --workspace operator",
    ),
    ("Make one marked copy a station, and hand out those.", "zktrace dispatch --all --workspace operator"),
    (
        "When a copy turns up, ask whose it is.",
        "zktrace trace SUSPECT --workspace operator --report case.html",
    ),
    ("Let somebody check the answer who trusts nobody.", "zktrace judge --help"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCase:
    """One line of the table, and its picture."""

    case: str
    expected: str
    happened: str
    ok: bool
    figure: Html
    page: str = ""  # relative address of the case's own report


def write_demo_pages(told: Told, *, training: str, export: str) -> Path:
    """The report of each suspect that was traced, and the page that leads to them, which is returned.

    `training` and `export`: addresses of the run's report and of the exported log in the folder.
    """
    evidence = {}
    cases = []
    for each in told.outcomes:
        page = ""
        if isinstance(each.shown, Traced):
            path = each.shown.evidence.with_name(each.shown.evidence.name.replace(".zkt.json", ".html"))
            write_atomic(path, case_html(_report(each.shown, told.ledger)).encode(), secret=True)
            page = path.relative_to(told.folder).as_posix()
            evidence[each.case] = each.shown.evidence.relative_to(told.folder).as_posix()
        cases.append(
            DemoCase(
                case=each.case,
                expected=each.expected,
                happened=each.happened,
                ok=each.ok,
                figure=_figure(each.shown, told.ledger),
                page=page,
            )
        )
    out = told.folder / REPORT
    document = demo_html(
        cases,
        head=told.head,
        reports={"the training run": training},
        evidence=evidence | {"the exported log": export},
    )
    write_atomic(out, document.encode())
    return out


def demo_html(
    cases: Sequence[DemoCase], *, head: str, reports: Mapping[str, str], evidence: Mapping[str, str]
) -> str:
    """The whole document. `reports` and `evidence`: further files, address by title."""
    wrong = sum(not each.ok for each in cases)
    verdict = (
        "Everything happened as expected." if not wrong else f"{wrong} of {len(cases)} cases ended otherwise."
    )
    rows = [
        (join((_sign(each.ok), " ", _title(each))), each.expected, with_digests(each.happened))
        for each in cases
    ]
    links = {each.case: each.page for each in cases if each.page}
    body = join(
        (
            section(
                "Cases",
                tag("p", verdict),
                table(("case", "expected", "happened"), rows, caption="Expected and happened"),
            ),
            section("Pictures", tag("div", *(_picture(each) for each in cases), class_="plots")),
            section(
                "Reports",
                _links({**reports, **links}),
                tag("p", "For a judge: evidence, and the exported log."),
                _links(evidence),
                tag("p", "Head of the registry's log: ", digest(head)),
            ),
            _next(),
        )
    )
    subtitle = "Ten simulated GNSS stations: enrolment, training, copies, leaks, a judge"
    return page(title="ZK-Trace demo", subtitle=subtitle, body=body)


def _report(traced: Traced, ledger: Ledger) -> CaseReport:
    return report_of(
        traced.case,
        ledger,
        suspect=traced.suspect,
        evidence=traced.evidence,
        note="Simulated stations and simulated GNSS interference.",
    )


def _figure(shown: Shown, ledger: Ledger) -> Html:
    """The picture of a case."""
    match shown:
        case Agreement():
            return agreement_figure(shown.matrix, shown.stations)
        case Losses():
            return _losses(shown)
        case Traced():
            return case_figure(_report(shown, ledger))
        case Examined():
            return _steps(shown)


def _steps(shown: Examined) -> Html:
    """How far an examination came."""
    failed = shown.failed
    said = "All steps passed." if failed is None else f"It ended at step {failed}, {shown.steps[failed - 1]}."
    drawing = steps_plot(shown.steps, failed=failed, title=shown.title, description=said)
    return figure(drawing, caption=said)


def _losses(shown: Losses) -> Html:
    """What each copy lost, station by station."""
    drawing = dot_plot(
        [Dot(label=name, value=value) for name, value in shown.by_station.items()],
        title="Accuracy that a copy loses",
        description=f"{len(shown.by_station)} copies, {shown.mean:+.2f} points on average.",
        x_label="percentage points",
        limits=[Limit(label="allowed on average", value=shown.allowed)],
    )
    return figure(drawing, caption="Shared model and copies answer the same few-shot episodes.")


def _sign(ok: bool) -> Html:
    """A tick or a cross, and the word for whoever does not see it."""
    said = "as expected" if ok else "not as expected"
    return tag("span", TICK if ok else CROSS, class_="good" if ok else "bad", role="img", aria_label=said)


def _title(each: DemoCase) -> Child:
    return tag("a", each.case, href=each.page) if each.page else each.case


def _picture(each: DemoCase) -> Html:
    return tag(
        "article",
        tag("h3", _sign(each.ok), " ", _title(each)),
        tag("p", with_digests(each.happened)),
        each.figure,
    )


def _links(files: Mapping[str, str]) -> Html:
    return tag("ul", *(tag("li", tag("a", title, href=address)) for title, address in files.items()))


def _next() -> Html:
    steps = (tag("li", tag("p", words), tag("pre", code(command))) for words, command in NEXT)
    return section(
        "Next: your own model",
        tag("p", "The demo's workspace is a real one. The same commands do it with a model of yours:"),
        tag("ol", *steps),
        anchor="next",
    )
