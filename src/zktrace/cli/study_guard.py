"""`zktrace study guard`: a guard in federations, leaks of broadcasts, residues of marks."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.options import Cifar10, Json, RowsFile, RunPreset, Seeds, WorkFolder, study_spec
from zktrace.cli.output import emit

if TYPE_CHECKING:
    from zktrace.studies.rows import Rows


class GuardPart(StrEnum):
    """What is measured."""

    UTILITY = "utility"
    TRACING = "tracing"
    RESIDUES = "residues"


def guard(
    out: RowsFile,
    work: WorkFolder,
    preset: RunPreset = "study",
    dataset: Annotated[
        list[str], typer.Option("--dataset", help="gnss (simulated) or cifar10; repeat it.")
    ] = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42, 137, 271, 314, 1729],  # noqa: B006
    part: Annotated[
        list[GuardPart] | None, typer.Option("--part", help="What is measured; repeat it. Default: all.")
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option("--network", help="Of the zoo, trained in Flower instead: cnn, vit; repeat it."),
    ] = None,
    cifar10: Cifar10 = None,
    as_json: Json = False,
) -> None:
    """Train federations with a guard and without; leak what is broadcast, and trace; measure what stays."""
    from zktrace.studies.rows import Rows

    rows = Rows(out)
    if network:
        new = _in_flower(rows, network, seed, cifar10)
    else:
        new = _own(rows, work, preset, dataset, seed, part or list(GuardPart), cifar10)
    emit({"ok": True, "new": new}, as_json=as_json, text=f"{new} new rows in {out}")


def _own(
    rows: "Rows",
    work: Path,
    preset: str,
    datasets: list[str],
    seeds: list[int],
    parts: list[GuardPart],
    cifar10: Path | None,
) -> int:
    """Federations of this package."""
    from zktrace.cli.progress import counted_progress
    from zktrace.learning.data.cache import default_folder
    from zktrace.studies.federation import FederationTrial
    from zktrace.studies.guard import residues, runs, tracing

    new = 0
    with counted_progress() as progress:
        for seed in seeds:
            for dataset in datasets:
                chosen = study_spec(preset, dataset, seed, cifar10).preset
                federation = FederationTrial(preset=chosen, seed=seed)
                for design in runs.DESIGNS:
                    run = runs.GuardRun(
                        federation=federation,
                        design=design,
                        work=work,
                        cifar10=cifar10,
                        cache=default_folder(),
                    )
                    if GuardPart.UTILITY in parts:
                        new += runs.perform(run, rows, progress=progress) is not None
                    if GuardPart.RESIDUES in parts and design != "unguarded":
                        new += sum(1 for _ in residues.perform(run, rows))
                    if GuardPart.TRACING in parts and design == "guarded":
                        new += sum(1 for _ in tracing.perform(run, rows, progress=progress))
    return new


def _in_flower(rows: "Rows", networks: list[str], seeds: list[int], cifar10: Path | None) -> int:
    """Federations of somebody else's network, in Flower."""
    from zktrace.cli.progress import counted_progress
    from zktrace.errors import InputError
    from zktrace.studies.guard.flower import FlowerRun, perform
    from zktrace.studies.zoo.table import network_of
    from zktrace.studies.zoo.tasks import SampleTask

    new, done, of = 0, 0, 2 * len(networks) * len(seeds)
    with counted_progress() as progress:
        for chosen in map(network_of, networks):
            task = chosen.task(cifar10)
            if not isinstance(task, SampleTask):
                raise InputError(f"{chosen.name} does not learn images: it is not trained in Flower here")
            for seed in seeds:
                for guarded in (False, True):
                    run = FlowerRun(network=chosen, task=task, seed=seed, guarded=guarded)
                    new += perform(run, rows) is not None
                    done += 1
                    progress("federations in Flower", done, of)
    return new
