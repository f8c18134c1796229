"""`zktrace study baselines`: six published systems beside each other."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import Cifar10, Datasets, Json, PresetName, Seeds
from zktrace.cli.output import emit
from zktrace.cli.study_attacks import AttackGrid
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out
from zktrace.errors import InputError


def baselines(
    out: Annotated[
        Path | None, typer.Option("--out", help="File of rows (JSON lines) that the study appends to.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="Folder for models and checkpoints of the runs.")
    ] = None,
    system: Annotated[
        list[str] | None, typer.Option("--system", help="Only these; repeat it. Default: all of --list.")
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part", help="marks, innocents, attacks, coalitions or distillation; repeat it. Default: all."
        ),
    ] = None,
    preset: PresetName = "study",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42],  # noqa: B006
    grid: Annotated[AttackGrid, typer.Option("--grid", help="The paper's, or one for tests.")] = (
        AttackGrid.PAPER
    ),
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Of a student; the paper's: 80.")
    ] = None,
    samples: Annotated[int | None, typer.Option("--samples", min=2, help="Images of whoever trains.")] = None,
    names: Annotated[bool, typer.Option("--list", help="Say which systems there are; stop.")] = False,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Train, attack and read published systems on one pipeline; see whom they name, and who is innocent."""
    from dataclasses import replace

    from zktrace.baselines.table import SYSTEMS, system_named
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.studies.baselines import GRIDS, batches

    if names:
        emit({"ok": True, "systems": list(SYSTEMS)}, as_json=as_json, text="\n".join(SYSTEMS))
        return
    if out is None or work is None:
        raise InputError("name a file of rows with --out, and a folder with --work")
    chosen = GRIDS[grid]
    wanted = batches(
        load_preset(preset),
        [system_named(each) for each in system or SYSTEMS],
        dataset,
        seed,
        replace(
            chosen,
            epochs=epochs or chosen.epochs,
            samples=samples or chosen.samples,
            parts=tuple(part or chosen.parts),
        ),
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
    )
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)
