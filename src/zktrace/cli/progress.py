"""Progress of long work: a bar on a terminal, silence elsewhere."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from zktrace.federation.run import Progress
    from zktrace.federation.server import RoundReport
    from zktrace.learning.presets import Preset


@contextmanager
def training_progress(preset: "Preset", *, console: "Console | None" = None) -> Iterator["Progress"]:
    """Bars for epochs and rounds; above them, a line for every round that ends."""
    from rich.console import Console

    from zktrace.federation.server import RoundReport

    shown = console or Console(file=sys.stderr)
    with _bars(noted=True, width=24, console=shown) as bars:
        epochs = bars.add_task("pre-training", total=preset.pretraining.epochs, note="")
        rounds = bars.add_task("rounds", total=preset.federation.rounds, note="")

        def show(report: object) -> None:
            if isinstance(report, RoundReport):
                bars.update(epochs, completed=preset.pretraining.epochs)
                bars.update(rounds, completed=report.round + 1)
                if shown.is_terminal:
                    shown.print(round_line(report), markup=False, highlight=False)
            else:
                loss, right = (getattr(report, name, math.nan) for name in ("loss", "accuracy"))
                note = f"loss {loss:.3f}, accuracy {right:.1%}"
                bars.update(epochs, completed=getattr(report, "epoch", 0), note=note)

        yield show


def round_line(report: "RoundReport") -> str:
    """A round in one line."""
    parts = [f"round {report.round + 1:>3}"]
    if report.trained:
        parts += [f"loss {report.loss:.4f}", f"accuracy {report.accuracy:.1%}"]
    if report.held_out is not None:
        parts.append(f"held out {report.held_out:.1%}")
    if report.attribution is not None:
        parts.append(f"attributed {report.attribution:.0%}")
    left_out = len(report.absent) + len(report.excluded)
    if left_out:
        parts.append(f"{left_out} left out")
    return "  ".join(parts)


@contextmanager
def named_progress(what: str, total: int) -> Iterator[Callable[[str, float], None]]:
    """One bar over `total` named things; each reports the share of its own work that is done."""
    with _bars(noted=True) as bars:
        task = bars.add_task(what, total=total, note="")
        done: set[str] = set()

        def show(name: str, share: float) -> None:
            if share >= 1.0:
                done.add(name)
            bars.update(task, completed=len(done), note=name if share >= 1.0 else f"{name} {share:.0%}")

        yield show


@contextmanager
def counted_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for every kind of thing that is counted: what, how many are done, of how many."""
    with _bars() as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield show


def _bars(*, noted: bool = False, width: int = 40, console: "Console | None" = None) -> "Bars":
    """Bars on a console, by default the error stream, with a note behind each or not.

    Nothing where nobody watches: colours that are forced on do not make a file a terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    watched = sys.stderr.isatty() if console is None else console.is_terminal
    notes = (TextColumn("{task.fields[note]}"),) if noted else ()
    bar = BarColumn(bar_width=width)
    columns = (TextColumn("{task.description}"), bar, MofNCompleteColumn(), TimeRemainingColumn(), *notes)
    return Bars(*columns, console=console or Console(file=sys.stderr), disable=not watched)
