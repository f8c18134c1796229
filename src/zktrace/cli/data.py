"""`zktrace data`: look at a data set, and at who would hold what."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.options import Force, Json, Seed
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.learning.data import Dataset
    from zktrace.learning.data.gnss import GnssConfig

app = typer.Typer(
    help="Look at data sets: simulated CRPA interference, recordings, CIFAR-10.", no_args_is_help=True
)


class DataName(StrEnum):
    """The data sets."""

    GNSS = "gnss"
    CIFAR10 = "cifar10"
    RECORDINGS = "recordings"


DatasetName = Annotated[DataName, typer.Option("--dataset", help="gnss is simulated.")]
Folder = Annotated[
    Path | None, typer.Option("--folder", help="Where CIFAR-10 or the recordings are; gnss needs none.")
]
Setting = Annotated[str, typer.Option("--setting", help="gnss: multipath setting, A or B.")]
Jnr = Annotated[str, typer.Option("--jnr", help="gnss: wide, U(0, 40) dB; harder, U(-5, 30) dB.")]
DomainShift = Annotated[
    bool,
    typer.Option("--domain-shift/--no-domain-shift", help="gnss: a receiver of its own for each station."),
]
ReceiverShift = Annotated[
    bool, typer.Option("--receiver-shift", help="gnss: +3 dB gain and 5-20 dB SNR, a stress test.")
]


@app.command()
def preview(
    dataset: DatasetName = DataName.GNSS,
    folder: Folder = None,
    out: Annotated[Path | None, typer.Option("--out", help="The PNG; DATASET-sheet.png by default.")] = None,
    seed: Seed = 42,
    per_class: Annotated[int, typer.Option("--per-class", min=1, max=50, help="Samples a class.")] = 8,
    setting: Setting = "B",
    jnr: Jnr = "wide",
    domain_shift: DomainShift = True,
    receiver_shift: ReceiverShift = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a labelled contact sheet of each class."""
    from zktrace.learning.data.sheet import dataset_sheet, gnss_sheet
    from zktrace.primitives.files import write_atomic

    target = Path(f"{dataset}-sheet.png") if out is None else out
    check_free(target, force=force)
    if dataset is DataName.GNSS:
        config = _config(setting, jnr, domain_shift, receiver_shift)
        sheet = gnss_sheet(seed=seed, per_class=per_class, config=config)
    else:
        sheet = dataset_sheet(_load(dataset, folder), seed=seed, per_class=per_class)
    write_atomic(target, sheet.png(), replace=force)
    samples = sum(len(tiles) for _, tiles in sheet.rows)
    facts = {
        "ok": True,
        "picture": str(target),
        "title": sheet.title,
        "classes": [name for name, _ in sheet.rows],
        "samples": samples,
    }
    emit(
        facts,
        as_json=as_json,
        text=f"{target}  {sheet.title}: {len(sheet.rows)} classes, {samples} samples",
    )


@app.command()
def describe(
    dataset: DatasetName = DataName.GNSS,
    folder: Folder = None,
    total: Annotated[int, typer.Option("--total", min=6, help="gnss: how many samples.")] = 100_000,
    imbalance: Annotated[float, typer.Option("--imbalance", help="gnss: largest over smallest class.")] = 178,
    stations: Annotated[int, typer.Option("--stations", min=1, help="How many share the data.")] = 10,
    alpha: Annotated[float, typer.Option("--alpha", help="Dirichlet concentration; small is uneven.")] = 2.0,
    minimum: Annotated[
        int, typer.Option("--minimum", min=0, help="Training samples every station must get.")
    ] = 1,
    seed: Seed = 42,
    ways: Annotated[int, typer.Option("--ways", min=2, help="Classes in an episode.")] = 5,
    shots: Annotated[int, typer.Option("--shots", min=1, help="Support samples a class.")] = 5,
    queries: Annotated[int, typer.Option("--queries", min=1, help="Query samples a class.")] = 15,
    as_json: Json = False,
) -> None:
    """Count samples by class, split and station, and say which stations can form an episode."""
    from zktrace.learning.configs import EpisodeShape
    from zktrace.learning.data import GnssSpec, make_plan
    from zktrace.learning.data.gnss import CLASS_NAMES
    from zktrace.learning.data.gnss_dataset import NOTE
    from zktrace.learning.data.summary import summarise

    shape = EpisodeShape(way=ways, shot=shots, query=queries)
    if dataset is DataName.GNSS:
        spec = GnssSpec(
            total=total, seed=seed, imbalance=imbalance, stations=stations, alpha=alpha, minimum=minimum
        )
        labels, names, note, plan = spec.labels(), CLASS_NAMES, NOTE, spec.plan()
    else:
        loaded = _load(dataset, folder)
        labels, names, note = loaded.labels, loaded.class_names, loaded.note
        plan = make_plan(
            labels,
            classes=len(names),
            stations=stations,
            alpha=alpha,
            seed=seed,
            split=loaded.split,
            minimum=minimum,
        )
    summary = summarise(labels, names, note, plan, shape)
    emit(
        {"ok": True, "dataset": str(dataset), "seed": seed, **summary.facts()},
        as_json=as_json,
        text=summary.text(),
    )


def _load(dataset: DataName, folder: Path | None) -> "Dataset":
    from zktrace.learning.data import load_cifar10, load_recordings

    if folder is None:
        raise InputError(f"{dataset} needs --folder")
    return load_cifar10(folder) if dataset is DataName.CIFAR10 else load_recordings(folder)


def _config(setting: str, jnr: str, domain_shift: bool, receiver_shift: bool) -> "GnssConfig":
    from zktrace.learning.data.gnss import config_named

    return config_named(setting, jnr, domain_shift=domain_shift, receiver_shift=receiver_shift)
