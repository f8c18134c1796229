"""What all commands of `zktrace study` share: how their batches are run, or only counted."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.output import emit
from zktrace.errors import TrialsFailed

if TYPE_CHECKING:
    from zktrace.studies.runner import Batch, Ran

StudyWorkers = Annotated[int, typer.Option("--workers", min=1, help="Processes that do trials.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many trials are left and about how long they take; stop.")
]
_TOLD = 5  # failures in the last line


def carry_out(batches: "Sequence[Batch]", out: Path, *, workers: int, dry_run: bool, as_json: bool) -> None:
    """Run what has no row yet; or say what that would be."""
    from zktrace.cli.progress import counted_progress
    from zktrace.studies.rows import Rows
    from zktrace.studies.runner import estimate, run_study

    rows = Rows(out)
    if dry_run:
        left = estimate(batches, rows)
        minutes = left.seconds / 60 / max(1, min(workers, len(batches)))
        emit(
            {"ok": True, "trials": left.trials, "seconds": round(left.seconds)},
            as_json=as_json,
            text=f"{left.trials} trials are left: about {minutes:.0f} minutes on idle processors",
        )
        return
    with counted_progress() as progress:
        ran = run_study(batches, rows, workers=workers, progress=progress)
    told(ran, out, as_json=as_json)


def told(ran: "Ran", out: Path, *, as_json: bool) -> None:
    """Say what a run came to; what failed is an error."""
    summary = f"{len(ran.made)} new rows in {out}, {ran.there} were there"
    if ran.failures:
        for each in ran.failures:
            sys.stderr.write(each.trace)
        some = "; ".join(f"{each.name}: {each.message}" for each in ran.failures[:_TOLD])
        more = f"; and {len(ran.failures) - _TOLD} more" if len(ran.failures) > _TOLD else ""
        raise TrialsFailed(f"{len(ran.failures)} failed ({summary}): {some}{more}")
    emit({"ok": True, "new": len(ran.made), "there": ran.there}, as_json=as_json, text=summary)
