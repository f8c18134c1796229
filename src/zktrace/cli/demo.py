"""`zktrace demo`: the whole life cycle on simulated stations, from enrolment to a judge."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zktrace.cli.interrupt import SERVICE, patience
from zktrace.cli.options import Json, workspace_at
from zktrace.cli.output import emit, say
from zktrace.cli.terminal import sign, tell
from zktrace.errors import InputError, Rejected

if TYPE_CHECKING:
    from socket import socket

    from zktrace.demo.outcomes import Outcome
    from zktrace.service.serving import Listening

PORT: Final = 8443  # of the console
ACCOUNT: Final = "demo"  # who signs in there
_DIGEST: Final = re.compile("([0-9a-f]{8})[0-9a-f]{32,}")  # the report has the whole of it


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the demo; one of an earlier demo is cleared.")
    ] = Path("out/demo"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides data, training and attacks.")] = 42,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Then show it in a console, until Ctrl-C. A demo that has ended is shown at once."
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="Port of the console.", show_default="8443"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ten simulated stations enrol, train and receive copies; copies leak; a judge checks the evidence.

    Exit 1 if anything turns out other than expected.
    """
    from zktrace.demo.folder import REPORT, ended

    if port is not None and not serve:
        raise InputError("--port is that of the console: --serve")
    if not serve:
        facts = _told(out, seed, as_json=as_json)
        if as_json:
            emit(facts, as_json=True, text="")
        return
    listening = _listening(PORT if port is None else port)
    with listening.opened() as sockets:  # a port that is taken is said before the story, and not after it
        known = {"ok": True, "report": str(out / REPORT)}
        facts = known if ended(out, seed=seed) else _told(out, seed, as_json=as_json)
        _serve(out, listening, sockets, facts, as_json=as_json)


def _told(out: Path, seed: int, *, as_json: bool) -> dict[str, object]:
    """The story, told anew."""
    from zktrace.cli.progress import training_progress
    from zktrace.demo.folder import EXPORT, RUN
    from zktrace.demo.pages import write_demo_pages
    from zktrace.demo.story import Story
    from zktrace.report.training import write_training_report

    told = Story(out, seed=seed, say=(lambda _: None) if as_json else _step, watch=training_progress).tell()
    write_training_report(out / RUN, out / RUN / "report.html")
    page = write_demo_pages(told, training=f"{RUN}/report.html", export=EXPORT)
    total, wrong = len(told.outcomes), told.wrong
    facts = {"ok": not wrong, "cases": [each.facts for each in told.outcomes], "report": str(page)}
    if not as_json:
        result = f"{wrong} of {total} cases ended otherwise." if wrong else "Everything happened as expected."
        tell(f"\n{outcome_table(told.outcomes)}\n")
        tell(result, strong=True)
        say(f"report  {page}")
    if wrong:
        if as_json:
            emit(facts, as_json=True, text="")
        raise Rejected(f"{wrong} of {total} cases ended other than expected")
    return facts


def _listening(port: int) -> "Listening":
    """Where the console will be; an extra that is missing is said before the story, and not after it."""
    from zktrace.service.serving import Listening

    return Listening(host="127.0.0.1", port=port)


def _serve(
    out: Path,
    listening: "Listening",
    sockets: "Sequence[socket]",
    facts: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """The demo's federation in a console; its operator has another password every time."""
    from zktrace.demo.folder import WORKSPACE
    from zktrace.service.desk import Settings
    from zktrace.service.serving import serve
    from zktrace.service.store import prepared
    from zktrace.service.visitors import Accounts

    home, password = workspace_at(out / WORKSPACE), token_urlsafe(12)
    Accounts(prepared(home)).add(ACCOUNT, "operator", password, replace=True)
    given = {"url": listening.url, "account": ACCOUNT, "password": password}
    shown = "\n".join(f"{name:<9} {value}" for name, value in given.items())
    text = f"\nThe demo's federation in a console, until Ctrl-C:\n{shown}"

    def ready() -> None:
        emit({**facts, **given}, as_json=as_json, text=text)
        sys.stdout.flush()

    with patience(SERVICE):
        serve(home, listening, Settings(url=listening.url), sockets, workers=1, ready=ready)


def _step(line: str) -> None:
    """What a step of the demo says."""
    tell(line, hanging=11)


def outcome_table(outcomes: "Sequence[Outcome]") -> str:
    """Expected and happened, line by line."""
    lines = []
    for each in outcomes:
        lines.append(f"{sign(each.ok):<2} {each.case}")
        lines.append(f"     expected: {each.expected}")
        lines.append("     happened: " + _DIGEST.sub(r"\1...", each.happened))
    return "\n".join(lines)
