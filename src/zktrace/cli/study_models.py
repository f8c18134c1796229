"""`zktrace study models`, `strengths` and `coalitions`: any network, and who puts copies together."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import Cifar10, Json, RowsFile, RunPreset, Seeds, WorkFolder, study_spec
from zktrace.cli.output import emit

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
    as_json: Json = False,
) -> None:
    """Protect networks of many architectures by defaults; leak changed copies; trace, and judge."""
    from zktrace.cli.progress import counted_progress
    from zktrace.studies.models import FOREIGN, ModelsTrial, perform
    from zktrace.studies.rows import Rows
    from zktrace.studies.zoo.table import network_of, trainable

    rows, new = Rows(out), 0
    with counted_progress() as progress:
        for chosen in [network_of(name) for name in network or trainable()]:
            task, folder = chosen.task(cifar10), zoo or work / "zoo"
            trained = chosen.kept(folder, task)
            foreign = chosen.kept(folder, task, seed=FOREIGN) if chosen.name in trainable() else None
            trials = [
                ModelsTrial(network=chosen, task=task, model=trained, foreign=foreign, seed=each, work=work)
                for each in seed
            ]
            for trial in trials:
                others = [each for each in trials if each is not trial]
                new += sum(1 for _ in perform(trial, rows, others=others, progress=progress))
    emit({"ok": True, "new": new}, as_json=as_json, text=f"{new} new rows in {out}")


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
    as_json: Json = False,
) -> None:
    """Mark networks of many architectures more and less strongly: what copies cost, how they are read."""
    from zktrace.cli.progress import counted_progress
    from zktrace.studies.models import ModelsTrial
    from zktrace.studies.rows import Rows
    from zktrace.studies.strengths import perform
    from zktrace.studies.zoo.table import network_of, trainable

    rows, new = Rows(out), 0
    with counted_progress() as progress:
        for chosen in [network_of(name) for name in network or trainable()]:
            task = chosen.task(cifar10)
            trained = chosen.kept(zoo or work / "zoo", task)
            trial = ModelsTrial(network=chosen, task=task, model=trained, foreign=None, seed=seed, work=work)
            new += sum(
                1
                for _ in perform(
                    trial, rows, strengths=strength, types=kind or ("float32",), progress=progress
                )
            )
    emit({"ok": True, "new": new}, as_json=as_json, text=f"{new} new rows in {out}")


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say about how long it takes, and stop.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put copies together by every strategy, and average many of a thousand; see who is named."""
    from zktrace.attacks.collusion import STRATEGIES
    from zktrace.cli.progress import counted_progress
    from zktrace.studies.coalitions import CROWDS, CoalitionsTrial, perform
    from zktrace.studies.rows import Rows

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
    if dry_run:
        seconds = trial.seconds()
        told = ", ".join(f"{part} {each / 60:.0f} min" for part, each in seconds.items())
        emit({"ok": True, "seconds": seconds}, as_json=as_json, text=f"about, on an idle core: {told}")
        return
    with counted_progress() as progress:
        new = sum(1 for _ in perform(trial, Rows(out), progress=progress))
    emit({"ok": True, "new": new}, as_json=as_json, text=f"{new} new rows in {out}")
