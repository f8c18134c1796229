"""Progress of long work: a bar on a terminal, silence elsewhere."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zktrace.federation.run import Progress
    from zktrace.learning.presets import Preset


@contextmanager
def training_progress(preset: "Preset") -> Iterator["Progress"]:
    """Bars for epochs and rounds, with the loss and accuracy of the last one."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from zktrace.federation.server import RoundReport

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(file=sys.stderr), disable=not sys.stderr.isatty()) as bars:
        epochs = bars.add_task("pre-training", total=preset.pretraining.epochs, note="")
        rounds = bars.add_task("rounds", total=preset.federation.rounds, note="")

        def show(report: object) -> None:
            if isinstance(report, RoundReport):
                left_out = len(report.absent) + len(report.excluded)
                note = f"loss {report.loss:.3f}, accuracy {report.accuracy:.3f}"
                note += f", {left_out} left out" if left_out else ""
                bars.update(rounds, completed=report.round + 1, note=note)
            else:
                loss = getattr(report, "loss", math.nan)
                bars.update(epochs, completed=getattr(report, "epoch", 0), note=f"loss {loss:.3f}")

        yield show
