"""`zktrace study paper` and `figure`: everything the paper shows, run, continued, and drawn as one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.options import Cifar10, Datasets, Force, Json, PresetName, RowsFile, Seeds
from zktrace.cli.output import check_free, emit
from zktrace.cli.study_attacks import AttackGrid
from zktrace.cli.studying import DryRun, StudyWorkers, told
from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zktrace.studies.paper import Experiment
    from zktrace.studies.rows import Row, Rows

_HOUR = 3600


def paper(
    out: RowsFile,
    work: Annotated[
        Path | None, typer.Option("--work", help="Folder for models and checkpoints of the runs.")
    ] = None,
    preset: PresetName = "study",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42, 137, 271, 314, 1729, 2718, 3141, 5772, 6561, 9999],  # noqa: B006
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="federation, attacks, insiders, ...; repeat it. Default: all."),
    ] = None,
    grid: Annotated[
        AttackGrid | None,
        typer.Option("--grid", help="The paper's, or short: a try. Default: short with the preset smoke."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Run nothing; write a page of the rows to this file.")
    ] = None,
    also: Annotated[
        list[Path] | None, typer.Option("--also", help="With --report: another file of rows; repeat it.")
    ] = None,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run or continue all experiments of the paper; or show their tables and figures as one HTML page.

    Seeds take their turn: after the first there is something of everything. Costly experiments take the first
    seeds only; `--dry-run` says how many trials each has left, and about how long they take.
    """
    if report is not None:
        _page(report, [out, *(also or ())], force=force, as_json=as_json)
        return
    if work is None:
        raise InputError("--work is missing: a folder for models and checkpoints (or --report, to draw only)")
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.studies.paper import GRIDS, PaperSetting, experiments
    from zktrace.studies.rows import Rows

    setting = PaperSetting(
        preset=load_preset(preset),
        datasets=tuple(dataset),
        seeds=tuple(dict.fromkeys(seed)),
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
        grid=GRIDS[grid or (AttackGrid.SHORT if preset == "smoke" else AttackGrid.PAPER)],
    )
    plan = experiments(setting, only or ())
    if dry_run:
        _estimated(plan, Rows(out), workers=workers, as_json=as_json)
    else:
        _run(plan, Rows(out), workers=workers, as_json=as_json)


def _run(plan: "Sequence[Experiment]", rows: "Rows", *, workers: int, as_json: bool) -> None:
    from zktrace.cli.progress import counted_progress
    from zktrace.studies.paper import stages
    from zktrace.studies.runner import Ran, run_study

    ran = Ran()
    with counted_progress() as progress:
        for _, batches in stages(plan):
            part = run_study(batches, rows, workers=workers, progress=progress)
            ran.made += part.made
            ran.there += part.there
            ran.failures += part.failures
    told(ran, rows.path, as_json=as_json)


def _estimated(plan: "Sequence[Experiment]", rows: "Rows", *, workers: int, as_json: bool) -> None:
    from zktrace.studies.paper import estimates

    left = estimates(plan, rows)
    seeds = {each.name: len(each.parts) for each in plan}
    lines = [
        f"{name:<16}{seeds[name]:>3} seeds {each.trials:>6} trials {each.seconds / _HOUR:>7.1f} core-hours"
        for name, each in left.items()
    ]
    trials, seconds = (sum(getattr(each, name) for each in left.values()) for name in ("trials", "seconds"))
    hours = seconds / _HOUR
    lines.append(
        f"{trials} trials are left: about {hours:.1f} core-hours, {hours / workers:.1f} hours with "
        f"{workers} idle processors"
    )
    facts = {
        name: {"seeds": seeds[name], "trials": each.trials, "seconds": round(each.seconds)}
        for name, each in left.items()
    }
    emit(
        {"ok": True, "trials": trials, "seconds": round(seconds), "experiments": facts},
        as_json=as_json,
        text="\n".join(lines),
    )


def _page(path: Path, files: "list[Path]", *, force: bool, as_json: bool) -> None:
    from zktrace.report.paper import write_paper_report

    check_free(path, force=force)
    write_paper_report(_rows(files), path, replace=force)
    emit({"ok": True, "report": str(path)}, as_json=as_json, text=str(path))


def _rows(files: "list[Path]") -> "list[Row]":
    """Of all files; one that is not there is an error."""
    from zktrace.studies.rows import Rows

    for each in files:
        if not each.exists():
            raise Refused(f"{each}: no such file")
    return [row for each in files for row in Rows(each).read()]


def figure(
    name: Annotated[str, typer.Argument(help="survival, tracing, tradeoff or channel-price.")],
    out: Annotated[Path, typer.Option("--out", help="File to write (SVG).")],
    rows: Annotated[
        list[Path] | None, typer.Argument(help="Files of rows; channel-price is computed and needs none.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a figure of the paper from saved rows, with the paper's points beside ours."""
    from zktrace.primitives.files import write_atomic
    from zktrace.report.drawing import svg_file
    from zktrace.studies.exhibits import figure_named

    exhibit = figure_named(name)
    check_free(out, force=force)
    found = exhibit.figure(_rows(rows or []))
    if found is None:
        raise InputError(f"no rows for the figure {name}; they are made by: {exhibit.command}")
    write_atomic(out, svg_file(found).encode(), replace=force)
    emit({"ok": True, "figure": str(out)}, as_json=as_json, text=str(out))
