"""`zktrace study attacks`: the paper's grids of attacks on shared models and copies."""

from enum import StrEnum
from typing import Annotated

import typer

from zktrace.cli.options import (
    Cifar10,
    Datasets,
    Json,
    Marks,
    PresetName,
    RowsFile,
    Seeds,
    WorkFolder,
    mark_settings,
)
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out


class AttackGrid(StrEnum):
    """How many points there are."""

    PAPER = "paper"
    SHORT = "short"


def attacks(
    out: RowsFile,
    work: WorkFolder,
    preset: PresetName = "study",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42],  # noqa: B006
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="identity, informed or paper; repeat it. Default: all of them."),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option("--family", help="Only these attacks: prune, noise, pgd, ... Default: all."),
    ] = None,
    grid: Annotated[AttackGrid, typer.Option("--grid", help="The paper's, or a point a family.")] = (
        AttackGrid.PAPER
    ),
    episodes: Annotated[
        list[int] | None, typer.Option("--episodes", min=1, help="Of who trains on, instead of the grid's.")
    ] = None,
    epochs: Annotated[
        list[int] | None, typer.Option("--epochs", min=1, help="Of students, instead of the grid's.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=0, help="Images of who trains; 0: all.")] = 16_000,
    copy_episodes: Annotated[
        int, typer.Option("--copy-episodes", min=1, help="Paper profile: episodes a copy.")
    ] = 60,
    mark: Marks = None,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Attack shared models and copies by the paper's grids; see what marks are left, and what it costs."""
    from zktrace.attacks.grid import grid as points
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.marking.settings import CopySettings
    from zktrace.studies.attack_targets import TARGETS, targets
    from zktrace.studies.attacks import AttackBatch
    from zktrace.studies.federation import trials as federations

    lengths = {"finetune": episodes, "distill": epochs}
    marked = [each for each in federations(load_preset(preset), dataset, seed) if each.preset.marks.lambda_wm]
    aims = targets(
        marked,
        target or TARGETS,
        CopySettings(episodes=copy_episodes, marks=mark_settings(mark)),
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
    )
    chosen = points(grid, family or (), lengths={name: each for name, each in lengths.items() if each})
    wanted = [AttackBatch(target=each, attacks=tuple(chosen), samples=samples) for each in aims]
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)
