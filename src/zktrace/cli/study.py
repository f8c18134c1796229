"""`zktrace study`: experiments whose rows are saved, and go on where they stopped."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import (
    Cifar10,
    Datasets,
    Json,
    Marks,
    PresetName,
    ProfileChoice,
    RowsFile,
    RunPreset,
    Seeds,
    WorkFolder,
    budget_option,
    mark_settings,
    profile_option,
    study_spec,
)
from zktrace.cli.output import emit
from zktrace.cli.study_attacks import attacks
from zktrace.cli.study_baselines import baselines
from zktrace.cli.study_guard import guard
from zktrace.cli.study_insiders import insiders, steering
from zktrace.cli.study_models import coalitions, models, strengths
from zktrace.cli.study_paper import figure, paper
from zktrace.cli.study_stressors import stressors
from zktrace.cli.study_tracing import tracing
from zktrace.cli.studying import DryRun, StudyWorkers, carry_out
from zktrace.errors import InputError

app = typer.Typer(help="Experiments: run what has no row yet, and append its row.", no_args_is_help=True)


@app.command("federation")
def federation(
    out: RowsFile,
    work: WorkFolder,
    preset: PresetName = "desk",
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    seed: Seeds = [42],  # noqa: B006
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Train with identity marks and without, on each dataset with each seed: attribution and accuracy."""
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.studies.federation import batches

    wanted = batches(load_preset(preset), dataset, seed, work=work, cifar10=cifar10, cache=default_folder())
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)


app.command("tracing")(tracing)


@app.command("disguise")
def disguise(
    out: RowsFile,
    work: WorkFolder,
    dataset: Datasets = ["gnss", "cifar10"],  # noqa: B006
    preset: PresetName = "half",
    seed: Seeds = [42, 43, 44],  # noqa: B006
    profile: Annotated[list[str], typer.Option("--profile", help="informed or paper; repeat it.")] = [  # noqa: B006
        "informed",
        "paper",
    ],
    attacker: Annotated[
        list[str] | None, typer.Option("--attacker", help="Only these; repeat it. All by default.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Of a student.")] = 8,
    samples: Annotated[int, typer.Option("--samples", min=0, help="Images of a leaker; 0: all.")] = 16_000,
    inside: Annotated[bool, typer.Option("--inside", help="Probes are among the leaker's images.")] = False,
    copy_episodes: Annotated[
        int, typer.Option("--copy-episodes", min=1, help="Paper profile: episodes a copy.")
    ] = 60,
    mark: Marks = None,
    cifar10: Cifar10 = None,
    workers: StudyWorkers = 2,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Disguise copies in every way; see what each carrier, and all together, still read."""
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.marking.settings import CopySettings
    from zktrace.studies.disguise import batches
    from zktrace.studies.federation import trials
    from zktrace.studies.ground import grounds
    from zktrace.studies.suspects import ATTACKERS, Students

    marked = [each for each in trials(load_preset(preset), dataset, seed) if each.preset.marks.lambda_wm]
    places = grounds(
        marked,
        profile,
        CopySettings(episodes=copy_episodes, marks=mark_settings(mark)),
        work=work,
        cifar10=cifar10,
        cache=default_folder(),
    )
    students = Students(epochs=epochs, samples=samples, inside=inside)
    wanted = batches(places, students=students, attackers=attacker or ATTACKERS)
    carry_out(wanted, out, workers=workers, dry_run=dry_run, as_json=as_json)


@app.command("innocents")
def innocents(
    out: RowsFile,
    work: WorkFolder,
    reference: Annotated[Path, typer.Option("--reference", help="The shared model.")],
    suspect: Annotated[
        list[str],
        typer.Option(
            "--suspect", metavar="KIND=FILE", help="What it is, and a model without rows; repeat it."
        ),
    ],
    dataset: Annotated[str, typer.Option("--dataset", help="What the shared model was trained on.")],
    preset: RunPreset = "desk",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of that run; decides code keys too.")] = 42,
    carrier: Annotated[
        list[str] | None,
        typer.Option(
            "--carrier", help="What an investigation reads, as weight+output; repeat it. Default: each, all."
        ),
    ] = None,
    profile: ProfileChoice = "informed",
    leak: Annotated[
        list[str] | None,
        typer.Option("--leak", help="Whose rows are in it, as 'average of three'; repeat it. Default: all."),
    ] = None,
    level: Annotated[list[str], typer.Option("--level", help="A budget; repeat it.")] = ["1/5"],  # noqa: B006
    keys: Annotated[int, typer.Option("--keys", min=1, help="Code keys a row.")] = 1000,
    families: Annotated[
        int,
        typer.Option("--families", min=1, max=256, help="Sets of directions that a suspect is read with."),
    ] = 4,
    length: Annotated[int, typer.Option("--length", min=1, help="Bits of a station's row.")] = 128,
    stations: Annotated[int, typer.Option("--stations", min=1, help="Stations that are scored.")] = 10,
    strength: Annotated[
        float, typer.Option("--strength", help="Size of a leaked mark, relative to all else in a readout.")
    ] = 1.0,
    guarded: Annotated[
        str | None,
        typer.Option(
            "--guarded",
            help="Suspects are shared models of a guarded federation, changed so: nothing, 8 bits, ...",
        ),
    ] = None,
    cifar10: Cifar10 = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Investigate leaks and models nobody was given under many code keys; count false accusations."""
    from functools import cache

    from zktrace.learning.data.proxy import proxy_pool
    from zktrace.studies.innocents import InnocentsBatch, InnocentsTrial
    from zktrace.studies.leaks import LEAKS

    spec = study_spec(preset, dataset, seed, cifar10)
    trial = InnocentsTrial(
        dataset=dataset,
        reference=reference,
        suspects=_suspects(suspect),
        pool=cache(lambda: proxy_pool(spec.source, spec.preset.episodes)),
        carriers=tuple(tuple(each.split("+")) for each in carrier or ()),
        profile=profile_option(profile),
        leaks=tuple(leak or LEAKS),
        levels=tuple(budget_option(each) for each in level),
        length=length,
        stations=stations,
        strength=strength,
        keys=keys,
        families=families,
        seed=seed,
        guarded=guarded,
    )
    wanted = [InnocentsBatch(trial=trial, work=work)]
    carry_out(wanted, out, workers=1, dry_run=dry_run, as_json=as_json)


app.command("models")(models)
app.command("strengths")(strengths)
app.command("coalitions")(coalitions)
app.command("guard")(guard)
app.command("attacks")(attacks)
app.command("insiders")(insiders)
app.command("steering")(steering)
app.command("stressors")(stressors)
app.command("baselines")(baselines)
app.command("paper")(paper)
app.command("figure")(figure)


@app.command("table")
def table(
    kind: Annotated[str, typer.Option("--kind", help="federation, tracing, innocents, ...")],
    rows: Annotated[
        list[Path] | None, typer.Argument(help="Files of rows; a table that is computed needs none.")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option("--seed", min=0, help="Only rows of these seeds; repeat it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw a table of the documentation (Markdown) from saved rows."""
    from zktrace.studies.rows import Rows
    from zktrace.studies.tables import COMPUTED, TABLES, rows_of

    if kind not in TABLES:
        raise InputError(f"no table {kind!r}; known: {', '.join(TABLES)}")
    if not rows and kind not in COMPUTED:
        raise InputError(f"the table {kind} is drawn from rows: name a file of them")
    wanted = [] if kind in COMPUTED else rows or []
    found = [row for path in wanted for row in rows_of(Rows(path), kind)]
    if seed:
        found = [row for row in found if row.trial.get("seed") in seed]
        if not found:
            raise InputError(f"there are no rows of the seeds {', '.join(map(str, seed))}")
    text = TABLES[kind](found)
    emit({"ok": True, "table": text}, as_json=as_json, text=text)


def _suspects(given: list[str]) -> dict[str, Path]:
    """Models by what they are."""
    found = {kind: Path(path) for kind, is_, path in (each.partition("=") for each in given) if is_}
    if len(found) < len(given):
        raise InputError("a suspect is given as KIND=FILE: what it is, each kind once, and the model")
    return found
