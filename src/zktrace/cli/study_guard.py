"""`zktrace study guard`: a guard in federations, leaks of broadcasts, residues of marks."""

from typing import Annotated

import typer

from zktrace.cli.options import Cifar10, Datasets, Json, RowsFile, RunPreset, Seeds, WorkFolder, study_spec
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out


def guard(
    out: RowsFile,
    work: WorkFolder,
    preset: RunPreset = "study",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42, 137, 271, 314, 1729],  # noqa: B006
    part: Annotated[
        list[str] | None,
        typer.Option("--part", help="utility, residues or tracing; repeat it. Default: all."),
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option("--network", help="Of the zoo, trained in Flower instead: cnn, vit; repeat it."),
    ] = None,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Train federations with a guard and without; leak what is broadcast, and trace; measure what stays."""
    from zktrace.learning.data.cache import default_folder
    from zktrace.studies.federation import FederationTrial
    from zktrace.studies.guard.batches import PARTS, GuardBatch
    from zktrace.studies.runner import Batch

    wanted: list[Batch]
    if network:
        from zktrace.studies.guard.flower import FlowerBatch

        wanted = [FlowerBatch(network=name, seed=each, cifar10=cifar10) for name in network for each in seed]
    else:
        wanted = [
            GuardBatch(
                federation=FederationTrial(preset=study_spec(preset, data, each, cifar10).preset, seed=each),
                work=work,
                cifar10=cifar10,
                cache=default_folder(),
                parts=tuple(part or PARTS),
            )
            for each in seed
            for data in dataset
        ]
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)
