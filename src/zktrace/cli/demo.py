"""`zktrace demo`: the whole life cycle on simulated stations, from enrolment to a judge."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zktrace.cli.options import Json
from zktrace.cli.output import emit, say
from zktrace.cli.terminal import sign, tell
from zktrace.errors import Rejected

if TYPE_CHECKING:
    from zktrace.demo.outcomes import Outcome

_DIGEST: Final = re.compile("([0-9a-f]{8})[0-9a-f]{32,}")  # the report has the whole of it


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the demo; one of an earlier demo is cleared.")
    ] = Path("out/demo"),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides data, training and attacks.")] = 42,
    as_json: Json = False,
) -> None:
    """Ten simulated stations enrol, train and receive copies; copies leak; a judge checks the evidence.

    Exit 1 if anything turns out other than expected.
    """
    from zktrace.cli.progress import training_progress
    from zktrace.demo.pages import write_demo_pages
    from zktrace.demo.story import EXPORT, RUN, Story
    from zktrace.report.training import write_training_report

    told = Story(out, seed=seed, say=(lambda _: None) if as_json else _step, watch=training_progress).tell()
    write_training_report(out / RUN, out / RUN / "report.html")
    page = write_demo_pages(told, training=f"{RUN}/report.html", export=EXPORT)
    total, wrong = len(told.outcomes), told.wrong
    if as_json:
        cases = [each.facts for each in told.outcomes]
        emit({"ok": not wrong, "cases": cases, "report": str(page)}, as_json=True, text="")
    else:
        ended = f"{wrong} of {total} cases ended otherwise." if wrong else "Everything happened as expected."
        tell(f"\n{outcome_table(told.outcomes)}\n")
        tell(ended, strong=True)
        say(f"report  {page}")
    if wrong:
        raise Rejected(f"{wrong} of {total} cases ended other than expected")


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
