"""`zktrace study stressors`: federations under stress."""

from typing import Annotated

import typer

from zktrace.cli.options import Cifar10, Datasets, Json, PresetName, RowsFile, Seeds, WorkFolder
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out


def stressors(
    out: RowsFile,
    work: WorkFolder,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            help="median, shift, alpha-0.5, participation-0.3, stations-40, ...; repeat it. Default: all.",
        ),
    ] = None,
    preset: PresetName = "study",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42],  # noqa: B006
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Train federations under stress: other aggregation, receivers, label skew, absence, many stations."""
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.studies.variants import batches

    wanted = batches(
        load_preset(preset),
        variant or [],
        dataset,
        seed,
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
    )
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)
