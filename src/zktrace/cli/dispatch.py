"""`zktrace release` and `zktrace dispatch`: a shared model on record, and one marked copy a station."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.carriers import carrier_choice, carriers_of, default_carrier
from zktrace.cli.measure import Measured, measure_option
from zktrace.cli.network import (
    FeaturesAt,
    InputsAt,
    MetricAt,
    NetworkAt,
    TrainParameters,
    network_option,
)
from zktrace.cli.options import (
    Cifar10,
    Json,
    Marks,
    ReleaseName,
    RunSeed,
    SharedModel,
    WorkspaceFolder,
    code_lengths,
    mark_settings,
    run_spec,
    workspace_at,
)
from zktrace.cli.output import emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.dispatch.dispatching import Copy
    from zktrace.readouts.samples import Pool
    from zktrace.releases import OpenRelease


class ProfileName(StrEnum):
    """How copies are written and read."""

    INFORMED = "informed"
    PAPER = "paper"


def release(
    model: SharedModel,
    name: Annotated[str | None, typer.Option("--name", help="Default: r1, r2, ...")] = None,
    carrier: Annotated[
        str | None,
        typer.Option(
            "--carrier",
            click_type=carrier_choice(),
            help="Where copies will carry their rows. Default: spread; in the paper's profile weight.",
        ),
    ] = None,
    length: Annotated[
        list[str] | None,
        typer.Option(
            "--length",
            help="Positions of the code: a number, or CARRIER=NUMBER, repeated. Default: by its size.",
        ),
    ] = None,
    profile: Annotated[
        ProfileName,
        typer.Option(
            "--profile", help="informed: read the difference to the shared model. paper: the suspect alone."
        ),
    ] = ProfileName.INFORMED,
    proxy: Annotated[
        str | None,
        typer.Option(
            "--proxy", help="Preset or TOML whose data the server holds; needed if copies are trained."
        ),
    ] = None,
    inputs: InputsAt = None,
    network: NetworkAt = None,
    features: FeaturesAt = None,
    cifar10: Cifar10 = None,
    seed: RunSeed = 42,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Put a shared model on record, with how copies of it will be read. The model itself is not changed.

    Informed copies of the spread and of the weight carrier are computed, of any model and of one with
    BatchNorm; all others are trained, on the proxy data, which the release keeps: the validation part of the
    data, or a fixed fifth of the training part.
    """
    from zktrace.readouts.runs import RunFacts

    place = workspace_at(workspace)
    if (run := RunFacts.beside(model)) is not None:
        run.check_bits(place.setup.identity_bits, "the registry's have")
    own, pool = network_option(network, features), _pool(proxy, inputs, cifar10, seed)
    able = [each.carrier for each in place.setup.carriers]
    carriers = carriers_of(carrier or default_carrier(profile.value, able))
    lengths = code_lengths(length, carriers)
    made = place.release(
        model, carriers=carriers, profile=profile.value, name=name, pool=pool, length=lengths, network=own
    )
    facts = {
        "ok": True,
        "release": made.name,
        "model": made.record.model.hex(),
        "carriers": list(carriers),
        "layouts": [_layout_facts(made, each) for each in carriers],
        "profile": profile.value,
        "proxy": None if pool is None else pool.note,
        "folder": str(made.folder.path),
        "head": place.head.to_text(),
    }
    emit(
        facts,
        as_json=as_json,
        text="\n".join(
            [
                f"{made.name}  {' + '.join(carriers)} carrier, {profile.value} profile",
                *(_layout_text(_layout_facts(made, each)) for each in carriers),
                made.record.model.hex(),
            ]
        ),
    )


def _pool(proxy: str | None, inputs: Path | None, cifar10: Path | None, seed: int) -> "Pool | None":
    """The server's samples, of a preset or of its own."""
    if inputs is not None:
        from zktrace.front.inputs import pool_of

        if proxy is not None:
            raise InputError("--proxy and --inputs name two pools: give one of them")
        return pool_of(inputs)
    if proxy is None:
        return None
    from zktrace.learning.data.proxy import proxy_pool

    spec = run_spec(proxy, cifar10, seed)
    return proxy_pool(spec.source, spec.preset.episodes)


def _layout_facts(release: "OpenRelease", name: str) -> dict[str, object]:
    """How a carrier is read, for a person."""
    layout, reader = release.layout(name), release.reader(name)
    return {
        "carrier": name,
        "length": layout.length,
        "numbers": layout.dimension,
        "tensors": reader.carrying,
    }


def _layout_text(facts: dict[str, object]) -> str:
    tensors = facts["tensors"]
    where = f", in {len(tensors)} tensors" if isinstance(tensors, dict) and tensors else ""
    return f"  {facts['carrier']}: {facts['length']} positions{where}"


def dispatch(
    station: Annotated[
        list[str] | None, typer.Option("--station", help="Who gets a copy; repeat it for several.")
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Every enrolled station, revoked ones aside.")
    ] = False,
    release: ReleaseName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the copies. Default: copies/RELEASE in the workspace."),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            "--strength",
            help="Spread carrier: change of a weight, in deviations of its tensor. Default: by the model's "
            "size, 0.01 from a million weights on and up to 0.04 below.",
        ),
    ] = None,
    share: Annotated[
        float,
        typer.Option(
            "--share", help="Weight carrier, informed: change of the scales, relative to their norm."
        ),
    ] = 0.03,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, help="Paper profile: episodes of a copy's training.")
    ] = 300,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="Paper profile: of a copy's training.")
    ] = None,
    mark: Marks = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Processes that train copies. Default: the cores.")
    ] = None,
    evaluate: Annotated[
        str | None,
        typer.Option(
            "--evaluate",
            help="Preset or TOML on whose test data the copies' accuracy is measured, or inputs and labels "
            "of one's own (npz, folder).",
        ),
    ] = None,
    metric: MetricAt = None,
    network: NetworkAt = None,
    features: FeaturesAt = None,
    train_parameters: TrainParameters = None,
    cifar10: Cifar10 = None,
    seed: RunSeed = 42,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Write one marked copy a station and put it on record. The shared model stays as it is.

    Copies that are there and on record are passed over: an interrupted dispatch is simply repeated.
    """
    from zktrace.cli.progress import named_progress
    from zktrace.dispatch.dispatching import recipients
    from zktrace.marking.settings import CopySettings

    if everybody and station:
        raise InputError("--all means every station: leave --station out, or --all")
    if not everybody and not station:
        raise InputError("name stations with --station, or give --all")
    place = workspace_at(workspace)
    chosen = place.opened(release, network=network_option(network, features, train_parameters))
    wanted = recipients(chosen.ledger, None if everybody else station)
    measure = measure_option(evaluate, metric, cifar10, seed)
    settings = CopySettings(
        strength=strength,
        share=share,
        episodes=episodes,
        learning_rate=learning_rate,
        marks=mark_settings(mark),
    )
    with named_progress("copies", len(wanted)) as progress:
        copies = list(
            place.dispatch_all(
                wanted,
                chosen,
                out=out,
                settings=settings,
                jobs=jobs or _cores(),
                progress=progress,
            )
        )
    cost = None if measure is None or not copies else measure(chosen, copies)
    made = sum(copy.made for copy in copies)
    facts = {
        "ok": True,
        "release": chosen.name,
        "copies": [_copy_facts(copy, cost) for copy in copies],
        "made": made,
        **_cost_facts(cost),
        "cost": None if cost is None else cost.mean,
        "head": place.head.to_text(),
    }
    emit(facts, as_json=as_json, text=_text(chosen.name, copies, made, cost))


def _copy_facts(copy: "Copy", cost: Measured | None) -> dict[str, object]:
    return {
        "station": copy.station,
        "file": str(copy.path),
        "digest": copy.digest.hex(),
        "made": copy.made,
        "weak": list(copy.weak or ()),
        **_cost_facts(cost, copy.station),
    }


def _cost_facts(cost: Measured | None, station: str | None = None) -> dict[str, object]:
    """What was measured of a station's copy, or of the shared model."""
    if cost is None:
        return {"accuracy": None}
    return {cost.what: cost.shared if station is None else cost.copies[station]}


def _text(release: str, copies: "list[Copy]", made: int, cost: Measured | None) -> str:
    lines = [f"{copy.path}  {copy.station}{'' if copy.made else ', was there'}" for copy in copies]
    lines += [
        f"warning: {copy.station}'s copy would not be named on the {', '.join(copy.weak)} carrier by itself"
        for copy in copies
        if copy.weak
    ]
    lines.append(f"{made} copies of {release} made, {len(copies) - made} were there")
    return "\n".join([*lines, *((cost.text,) if cost is not None else ())])


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0))
