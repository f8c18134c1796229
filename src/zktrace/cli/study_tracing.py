"""`zktrace study tracing`: copies leaked alone and averaged, of federations or of a finished model."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import (
    Cifar10,
    Datasets,
    Json,
    Marks,
    RowsFile,
    Seeds,
    WorkFolder,
    mark_settings,
    profile_option,
    study_spec,
)
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out
from zktrace.errors import InputError


def tracing(
    out: RowsFile,
    work: WorkFolder,
    model: Annotated[
        Path | None,
        typer.Option("--model", help="A finished shared model, with its one --dataset and --seed."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", help="Name or TOML file. Default: study; with --model: desk.")
    ] = None,
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42],  # noqa: B006
    profile: Annotated[list[str], typer.Option("--profile", help="paper or informed; repeat it.")] = [  # noqa: B006
        "paper",
        "informed",
    ],
    carrier: Annotated[
        list[str] | None,
        typer.Option(
            "--carrier", help="What copies carry, as weight+feature; repeat it. Default: each by itself."
        ),
    ] = None,
    share: Annotated[
        float | None, typer.Option("--share", help="Weight carrier, informed: share of the scales' norm.")
    ] = None,
    copy_episodes: Annotated[
        int, typer.Option("--copy-episodes", min=1, help="Paper profile: episodes a copy.")
    ] = 60,
    rate: Annotated[float | None, typer.Option("--rate", help="Paper profile: learning rate.")] = None,
    mark: Marks = None,
    size: Annotated[
        list[int], typer.Option("--size", min=3, help="Coalition sizes beyond pairs; repeat it.")
    ] = [3, 5, 8],  # noqa: B006
    pairs: Annotated[
        int | None, typer.Option("--pairs", min=1, help="So many pairs are drawn. Default: all.")
    ] = None,
    copies: Annotated[
        int | None, typer.Option("--copies", min=1, help="Only so many stations get a copy.")
    ] = None,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Dispatch copies of federations; leak them alone, in pairs and averaged; see who is named."""
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.marking.settings import CopySettings
    from zktrace.studies import federation
    from zktrace.studies.federated_tracing import tracings
    from zktrace.studies.ground import grounds
    from zktrace.studies.tracing import model_tracings

    given = {"share": share, "learning_rate": rate}
    told = {name: value for name, value in given.items() if value is not None}
    settings = CopySettings(episodes=copy_episodes, marks=mark_settings(mark), **told)
    chosen = [tuple(each.split("+")) for each in carrier or ()]
    if model is not None:
        if len(dataset) != 1 or len(seed) != 1:
            raise InputError("a finished model comes from one run: give its --dataset and its --seed, once")
        finished = model_tracings(
            study_spec(preset or "desk", dataset[0], seed[0], cifar10),
            model,
            [profile_option(each) for each in profile],
            chosen,
            settings,
            work=work,
            sizes=size,
            pairs=pairs,
            copies=copies,
        )
        carry_out(finished, out, workers=workers, dry_run=dry_run, as_json=as_json)
        return
    runs = federation.trials(load_preset(preset or "study"), dataset, seed)
    places = grounds(
        [each for each in runs if each.preset.marks.lambda_wm],
        profile,
        settings,
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
    )
    wanted = tracings(places, chosen, sizes=size, pairs=pairs, copies=copies)
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)
