"""`zktrace study models`, `strengths` and `coalitions`: any network, and who puts copies together."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.options import Cifar10, Json, RowsFile, RunPreset, Seeds, WorkFolder, study_spec
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out

if TYPE_CHECKING:
    from zktrace.studies.zoo.trained import TrainedNetwork

Zoo = Annotated[
    Path | None, typer.Option("--zoo", help="Folder of trained networks; what is missing is trained.")
]
Networks = Annotated[
    list[str] | None,
    typer.Option(
        "--network", help="Only these; repeat it. Default: all but resnet, which a federation trains."
    ),
]


def models(
    out: RowsFile,
    work: WorkFolder,
    zoo: Zoo = None,
    network: Networks = None,
    seed: Seeds = [4004, 4005, 4006],  # noqa: B006
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Protect networks of many architectures by defaults; leak changed copies; trace, and judge."""
    from zktrace.studies.models import FOREIGN, ModelsBatch
    from zktrace.studies.zoo.table import trainable
    from zktrace.studies.zoo.trained import TrainedNetwork

    wanted = []
    for trained in _trained(network, zoo or work / "zoo", cifar10):
        foreign = TrainedNetwork(
            network=trained.network, folder=trained.folder, seed=FOREIGN, cifar10=cifar10
        )
        alone = trained.network not in trainable()
        wanted.append(
            ModelsBatch(trained=trained, foreign=None if alone else foreign, seeds=tuple(seed), work=work)
        )
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)


def strengths(
    out: RowsFile,
    work: WorkFolder,
    zoo: Zoo = None,
    network: Networks = None,
    strength: Annotated[
        list[float], typer.Option("--strength", help="In deviations of a tensor's weights; repeat it.")
    ] = [0.005, 0.01, 0.02, 0.04],  # noqa: B006
    kind: Annotated[
        list[str] | None,
        typer.Option("--type", help="float32 (default), float16 or bfloat16; repeat it."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the stations' keys.")] = 4000,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Mark networks of many architectures more and less strongly: what copies cost, how they are read."""
    from zktrace.studies.strengths import StrengthsBatch

    wanted = [
        StrengthsBatch(
            trained=each,
            seed=seed,
            work=work,
            strengths=tuple(strength),
            types=tuple(kind or ("float32",)),
        )
        for each in _trained(network, zoo or work / "zoo", cifar10)
    ]
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)


def _trained(names: list[str] | None, folder: Path, cifar10: Path | None) -> "list[TrainedNetwork]":
    """The networks that `--network` names; that the data they learn is there is seen before all work."""
    from zktrace.studies.zoo.table import network_of, trainable
    from zktrace.studies.zoo.trained import TrainedNetwork

    for name in names or trainable():
        network_of(name).task(cifar10)
    return [TrainedNetwork(network=name, folder=folder, cifar10=cifar10) for name in names or trainable()]


def coalitions(
    out: RowsFile,
    work: WorkFolder,
    model: Annotated[Path, typer.Option("--model", help="The shared model.")],
    dataset: Annotated[str, typer.Option("--dataset", help="What it was trained on, for tables.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of who colludes, and what they draw.")] = 42,
    size: Annotated[list[int], typer.Option("--size", min=2, help="Of coalitions of ten; repeat it.")] = [  # noqa: B006
        2,
        3,
        5,
        8,
    ],
    strategy: Annotated[
        list[str] | None, typer.Option("--strategy", help="Only these; repeat it. All by default.")
    ] = None,
    sampled: Annotated[int, typer.Option("--sampled", min=1, help="Coalitions of each size.")] = 20,
    tuned: Annotated[
        int, typer.Option("--tuned", min=0, help="So many coalitions of each size train their mean on.")
    ] = 0,
    preset: RunPreset = "desk",
    run_seed: Annotated[int, typer.Option("--run-seed", min=0, help="Of that run.")] = 42,
    cifar10: Cifar10 = None,
    crowds: Annotated[bool, typer.Option(help="Averages of 32, 64 and 128 among 1,000 too.")] = True,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Put copies together by every strategy, and average many of a thousand; see who is named."""
    from zktrace.attacks.collusion import STRATEGIES
    from zktrace.studies.coalitions import CROWDS, CoalitionsBatch, CoalitionsTrial

    trial = CoalitionsTrial(
        model=model,
        dataset=dataset,
        work=work,
        seed=seed,
        sizes=tuple(size),
        strategies=tuple(strategy or STRATEGIES),
        sampled=sampled,
        crowds=CROWDS if crowds else (),
        spec=study_spec(preset, dataset, run_seed, cifar10),
        tuned=tuned,
    )
    carry_out([CoalitionsBatch(trial=trial)], out, workers=1, dry_run=dry_run, as_json=as_json)
