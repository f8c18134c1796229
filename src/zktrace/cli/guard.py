"""`zktrace guard`: the release that a guarded federation stands on, and what it was sent."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import Json, SharedModel, StationName, WorkspaceFolder, workspace_at
from zktrace.cli.output import emit
from zktrace.errors import Refused

app = typer.Typer(
    help="Mark every broadcast of a federation (docs/guard.md).", no_args_is_help=True, add_completion=False
)
GuardName = Annotated[str, typer.Option("--name", help="Of the guard's release.")]


@app.command("init")
def init(
    model: SharedModel,
    name: GuardName = "federation",
    length: Annotated[
        int | None, typer.Option("--length", help="Of the code. Default: by the model's size.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Put the first arrays of a federation on record, with the directions it will never train along."""
    from zktrace.models import open_model

    place = workspace_at(workspace)
    guard = place.guard(open_model(model), name=name, length=length)
    layout = guard.release.layout("spread")
    facts = {
        "ok": True,
        "release": name,
        "length": layout.length,
        "numbers": layout.dimension,
        "tensors": len(layout.layers),
        "strength": guard.strength,
    }
    emit(
        facts,
        as_json=as_json,
        text=f"{name}  guarded: {layout.length} positions in {layout.dimension} weights of "
        f"{len(layout.layers)} tensors, strength {guard.strength:.3g}",
    )


@app.command("copies")
def copies(
    model: Annotated[Path, typer.Argument(help="A shared model of this federation, the last one perhaps.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the copies, one file a station.")],
    label: Annotated[str, typer.Option("--label", help="What the record calls this broadcast.")] = "final",
    name: GuardName = "federation",
    strength: Annotated[
        float | None,
        typer.Option("--strength", help="Of marks, in deviations. Default: by the model's size."),
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Write a copy of a shared model for every station, by the rows of the rounds, and put it on record."""
    from zktrace.cli.progress import named_progress
    from zktrace.dispatch.dispatching import recipients
    from zktrace.models import open_model, save_model

    place = workspace_at(workspace)
    guard = place.guard(name=name, strength=strength)
    shared = guard.incoming(open_model(model))
    paths = {each: out / f"{each}.safetensors" for each in recipients(place.registry.ledger(), None)}
    if taken := [each for each in paths.values() if each.exists()]:
        raise Refused(f"{taken[0]}: exists already; name another folder")
    broadcast = guard.broadcast(shared, label)
    out.mkdir(parents=True, exist_ok=True)
    files = [str(each) for each in paths.values()]
    with named_progress("copies", len(paths)) as progress:
        for station, path in paths.items():
            save_model(path, broadcast.outgoing(station), secret=True)
            progress(station, 1.0)
    record = broadcast.close()
    number = None if record is None else record.number
    emit(
        {"ok": True, "broadcast": number, "files": files},
        as_json=as_json,
        text=f"{len(files)} copies in {out}"
        + ("" if record is None else f", broadcast {record.number} ({record.label})"),
    )


@app.command("broadcasts")
def broadcasts(
    name: GuardName = "federation", workspace: WorkspaceFolder = None, as_json: Json = False
) -> None:
    """List what was sent: number, label, copies, digest of the shared model."""
    ledger = workspace_at(workspace).registry.ledger()
    ledger.release(name)
    records = [each for _, each in ledger.broadcasts(name)]
    lines = [f"{each.number:>6}  {each.copies:>6}  {each.model.hex()[:16]}  {each.label}" for each in records]
    facts = [
        {"number": each.number, "label": each.label, "copies": each.copies, "model": each.model.hex()}
        for each in records
    ]
    emit(
        {"ok": True, "broadcasts": facts},
        as_json=as_json,
        text="\n".join(["number  copies  model             label", *lines]),
    )


@app.command("prove")
def prove(
    station: StationName,
    number: Annotated[int, typer.Argument(min=0, help="Of the broadcast.")],
    out: Annotated[Path, typer.Option("--out", help="File for the proof.")],
    name: GuardName = "federation",
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Prove that a station was sent a copy of a broadcast, and of which digest. Other stations are not shown.

    The record under whose root the copy stands is proved by `zktrace log prove`.
    """
    from zktrace.guarding import copy_proof
    from zktrace.primitives.files import write_atomic

    place = workspace_at(workspace)
    opened = place.opened(name)
    proof = copy_proof(opened, number, station)
    write_atomic(out, proof.to_bytes())
    index = opened.ledger.broadcasts(name)[number][0]
    emit(
        {"ok": True, "station": station, "copy": proof.handed.copy.hex(), "entry": index, "proof": str(out)},
        as_json=as_json,
        text=f"{out}  {station} was sent {proof.handed.copy.hex()} (entry {index} of the log)",
    )
