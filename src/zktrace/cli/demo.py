"""`zktrace demo`: the whole life cycle on simulated stations, from enrolment to a judge."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.output import Json, emit, say
from zktrace.cli.terminal import tell
from zktrace.errors import Refused, Rejected

_MARKER = "zktrace-demo.txt"  # stands in a folder that a demo may clear


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
    from zktrace.cli.story import Story

    _clear(out)
    story = Story(out, seed=seed, say=(lambda _: None) if as_json else _step)
    story.tell()
    wrong = [each for each in story.outcomes if not each.ok]
    facts = {
        "ok": not wrong,
        "cases": [
            {"case": each.case, "expected": each.expected, "happened": each.happened, "ok": each.ok}
            for each in story.outcomes
        ],
        "report": str(story.report),
    }
    if as_json:
        emit(facts, as_json=True, text="")
    else:
        total = len(story.outcomes)
        ended = (
            f"{len(wrong)} of {total} cases ended otherwise." if wrong else "Everything happened as expected."
        )
        tell(f"\n{story.table()}\n")
        tell(ended, strong=True)
        say(f"report  {story.report}")
    if wrong:
        raise Rejected(f"{len(wrong)} of {len(story.outcomes)} cases ended other than expected")


def _step(line: str) -> None:
    """What a step of the demo says."""
    tell(line, hanging=11)


def _clear(folder: Path) -> None:
    """Make the folder empty and ours; somebody else's is left alone."""
    import shutil

    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARKER).is_file():
            raise Refused(f"{folder}: is not empty and not of a demo; name another folder with --out")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARKER).write_text("Everything in this folder was made by zktrace demo, which may clear it.\n")
