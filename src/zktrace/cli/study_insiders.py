"""`zktrace study insiders` and `steering`: recipients who use what they know of their own rows."""

from typing import Annotated

import typer

from zktrace.cli.options import Cifar10, Datasets, Json, PresetName, RowsFile, Seeds, WorkFolder
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out


def insiders(
    out: RowsFile,
    work: WorkFolder,
    preset: PresetName = "study",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42],  # noqa: B006
    profile: Annotated[list[str], typer.Option("--profile", help="paper or informed; repeat it.")] = [  # noqa: B006
        "paper",
        "informed",
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="negation, fresh, hybrid, replacement, adaptive, noise, ...; repeat it. Default: all.",
        ),
    ] = None,
    knows: Annotated[
        list[str] | None,
        typer.Option("--knows", help="Beside its row: directions, or row alone; repeat it. Default: both."),
    ] = None,
    episodes: Annotated[
        list[int], typer.Option("--episodes", min=1, help="Of the insider's training; repeat it.")
    ] = [300, 600, 1200],  # noqa: B006
    factor: Annotated[
        list[float], typer.Option("--factor", help="Informed: size of what is written, in marks; repeat it.")
    ] = [1.0],  # noqa: B006
    push: Annotated[
        float, typer.Option("--push", min=0, help="Paper: margin given to turned bits before the episodes.")
    ] = 0.0,
    trials: Annotated[int, typer.Option("--trials", min=1, help="Insiders of each kind a federation.")] = 2,
    samples: Annotated[
        int, typer.Option("--samples", min=2, help="Images of an insider, or all there are.")
    ] = 4096,
    copy_episodes: Annotated[
        int, typer.Option("--copy-episodes", min=1, help="Paper: episodes of a copy, the unit of effort.")
    ] = 300,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Let recipients erase their own rows in every way; see who is still named, and what it costs them."""
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.marking.settings import CopySettings
    from zktrace.studies import federation
    from zktrace.studies.ground import grounds
    from zktrace.studies.insiders import KINDS, KNOWS, batches
    from zktrace.studies.insiders import trials as insiders_of

    runs = [
        each for each in federation.trials(load_preset(preset), dataset, seed) if each.preset.marks.lambda_wm
    ]
    places = grounds(
        runs,
        profile,
        CopySettings(episodes=copy_episodes),
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
    )
    wanted = list(
        insiders_of(
            places,
            kinds=kind or KINDS,
            knows=knows or KNOWS,
            episodes=episodes,
            factors=factor,
            push=push,
            count=trials,
            samples=samples,
        )
    )
    carry_out(batches(wanted), out, workers=workers, dry_run=dry_run, as_json=as_json)


def steering(
    out: RowsFile,
    way: Annotated[
        list[str] | None,
        typer.Option("--way", help="majority, lowering or oracle; repeat it. Default: all."),
    ] = None,
    law: Annotated[
        list[str] | None, typer.Option("--law", help="tardos or fair; repeat it. Default: both.")
    ] = None,
    size: Annotated[list[int], typer.Option("--size", min=2, help="Of coalitions of ten; repeat it.")] = [  # noqa: B006
        2,
        3,
        5,
    ],
    strength: Annotated[
        list[float], typer.Option("--strength", help="Share of positions that are steered; repeat it.")
    ] = [0.0, 0.5, 1.0],  # noqa: B006
    trials: Annotated[int, typer.Option("--trials", min=1, help="Coalitions a row.")] = 400,
    flips: Annotated[float, typer.Option("--flips", help="Flip rate of the decoder before steering.")] = 0.2,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of codes, coalitions and coins.")] = 42,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Let coalitions steer a decoded word by their own rows, in code space; see who is named."""
    from zktrace.studies.steering import STEERINGS, batches, steering_trials

    wanted = list(
        steering_trials(
            steerings=way or STEERINGS,
            laws=law or ("tardos", "fair"),
            sizes=size,
            strengths=strength,
            count=trials,
            flips=flips,
            seed=seed,
        )
    )
    carry_out(batches(wanted), out, workers=workers, dry_run=dry_run, as_json=as_json)
