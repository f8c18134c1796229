"""`zktrace train`: a federation with identity marks, on this machine or on Flower."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zktrace.cli.options import Cifar10, Json, PresetName, RosterKeys, RosterWorkspace, Seed, workspace_at
from zktrace.cli.output import emit
from zktrace.errors import InputError, MissingExtra, Refused

if TYPE_CHECKING:
    from zktrace.federation.run import Progress
    from zktrace.federation.spec import RunSpec
    from zktrace.front.workspace import Workspace
    from zktrace.learning.presets import Preset
    from zktrace.registry.roster import Roster


_STOPPING = 30.0  # seconds after Ctrl-C to end the run on somebody's SuperLink


class EngineName(StrEnum):
    """What carries the messages of a round."""

    LOCAL = "local"
    FLOWER = "flower"


def train(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run: checkpoints, log, model, result.")],
    preset: PresetName = "smoke",
    seed: Seed = 42,
    public: RosterKeys = None,
    workspace: RosterWorkspace = None,
    guard: Annotated[
        bool | None,
        typer.Option(
            "--guard/--no-guard",
            help="Whether broadcasts carry their station's row (docs/guard.md). Default: with --workspace.",
        ),
    ] = None,
    cifar10: Cifar10 = None,
    unmarked: Annotated[bool, typer.Option("--unmarked", help="Train the control: no marks.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Worker processes; 0: none. Default: the cores.")
    ] = None,
    engine: Annotated[
        EngineName, typer.Option("--engine", help="local: worker processes here. flower: SuperNodes.")
    ] = EngineName.LOCAL,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", help="host:port of a SuperLink on this machine. Default: one is started on loopback."
        ),
    ] = None,
    root_certificates: Annotated[
        Path | None, typer.Option("--root-certificates", help="The CA certificate of that SuperLink.")
    ] = None,
    node_key: Annotated[
        list[Path] | None,
        typer.Option(
            "--node-key", help="A station's public node key; repeat it, in the order of the roster."
        ),
    ] = None,
    round_timeout: Annotated[
        float, typer.Option("--round-timeout", min=1, help="Seconds a Flower round waits for its stations.")
    ] = 3600.0,
    prepare: Annotated[
        Path | None, typer.Option("--prepare", help="Write the run file that Flower nodes need, and stop.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    as_json: Json = False,
) -> None:
    """Train a federation: pre-training, rounds of local episodes, averaging; codewords go into the scales.

    An operator trains with --workspace: the stations that are enrolled there and not revoked. Each round they
    receive copies of their own, by a guard. Without it and --public the stations get experimental credentials
    derived from the seed: good for a study alone. Public keys are written to OUT/stations.
    """
    from zktrace.cli.progress import training_progress
    from zktrace.federation.spec import RunSpec
    from zktrace.learning.data.cache import default_folder
    from zktrace.report.training import write_training_report

    chosen, who = _roster(_preset(preset, unmarked=unmarked), seed, public or [], workspace)
    spec = RunSpec(
        preset=chosen,
        seed=seed,
        words=tuple(key.codeword(chosen.marks.bits) for key in who.keys),
        names=() if workspace is None else who.names,
        rows=who.rows,
        cifar10=cifar10,
        cache=default_folder(),
    )
    if engine is EngineName.LOCAL and (address or root_certificates or node_key or prepare):
        raise InputError("--address, --root-certificates, --node-key and --prepare need --engine flower")
    if guard and workspace is None:
        raise InputError("--guard needs --workspace, whose rows are handed out")
    place = None if workspace is None or guard is False else workspace_at(workspace)
    if prepare is not None:
        _prepare(prepare, spec, node_key or [])
        facts = {"ok": True, "run_file": str(prepare), "spec": spec.digest()}
        emit(facts, as_json=as_json, text=str(prepare))
        return
    with training_progress(chosen) as progress:
        if engine is EngineName.LOCAL:
            result = _locally(spec, out, workers, guarded=place, resume=resume, progress=progress)
        else:
            superlink = _place(address, root_certificates, node_key or [])
            result = _on_flower(
                spec, out, superlink, round_timeout, guarded=place, resume=resume, progress=progress
            )
    _write_keys(out / "stations", who)
    report = out / "report.html"
    write_training_report(out, report)
    facts = {"ok": True, **result, "guard": _guarded(place, result), "report": str(report)}
    emit(facts, as_json=as_json, text=_text(facts, out, report))


def _preset(name: str, *, unmarked: bool) -> "Preset":
    from dataclasses import replace

    from zktrace.learning.presets import load_preset

    chosen = load_preset(name)
    return replace(chosen, marks=replace(chosen.marks, lambda_wm=0.0)) if unmarked else chosen


def _roster(
    preset: "Preset", seed: int, public: list[Path], workspace: Path | None
) -> "tuple[Preset, Roster]":
    """Who trains: those of a registry, for whom the preset is adapted; those of the files; or made up."""
    from zktrace.cli.files import public_key
    from zktrace.federation.roster import experimental_roster
    from zktrace.registry.roster import Roster

    if workspace is not None:
        if public:
            raise InputError("--workspace knows the stations' keys: leave --public out")
        return _enrolled(preset, workspace)
    clients = preset.federation.clients
    keys = [public_key(path) for path in public] if public else experimental_roster(seed, clients)
    if len(keys) != clients:
        raise InputError(f"{len(keys)} public keys for {clients} stations: give --public {clients} times")
    names = tuple(f"station{station:03d}" for station in range(clients))
    return preset, Roster(names=names, rows=(), keys=tuple(keys), bits=preset.marks.bits)


def _guarded(place: "Workspace | None", result: dict[str, Any]) -> dict[str, Any] | None:
    """The release that a guarded run stands on, and how much is on record of it."""
    from zktrace.federation.guarded import guarded_release

    if place is None:
        return None
    ledger = place.registry.ledger()
    name = guarded_release(ledger, bytes.fromhex(result["first"]))
    return None if name is None else {"release": name, "broadcasts": len(ledger.broadcasts(name))}


def _text(result: dict[str, Any], out: Path, report: Path) -> str:
    lines = [f"{out / 'model.safetensors'}  {100 * result['accuracy']:.1f} % on {result['dataset']}"]
    if (marks := result["marks"]) is not None:
        lines.append(
            f"{marks['attribution']:.0%} of the stations attributed, agreement "
            f"{marks['self_agreement']:.3f} with the own codeword and {marks['cross_talk']:.3f} with others"
        )
    if (guard := result["guard"]) is not None:
        lines.append(
            f"{guard['release']}  {guard['broadcasts']} broadcasts on record, each station's with its own row"
        )
    return "\n".join((*lines, str(report)))


def _locally(
    spec: "RunSpec",
    out: Path,
    workers: int | None,
    *,
    guarded: "Workspace | None",
    resume: bool,
    progress: "Progress",
) -> dict[str, Any]:
    from zktrace.federation.guarded import guarded_handout
    from zktrace.federation.handout import SAME_FOR_ALL
    from zktrace.federation.run import run
    from zktrace.federation.workers import worker_engine

    handout = SAME_FOR_ALL if guarded is None else guarded_handout(guarded, spec.names)
    with worker_engine(spec, workers=workers, handout=handout) as engine:
        return run(spec, out, engine, resume=resume, progress=progress)


def _place(
    address: str | None, root_certificates: Path | None, node_keys: list[Path]
) -> tuple[str, Path, list[Path]] | None:
    """Where a running SuperLink is; None: start one."""
    if address is None and root_certificates is None and not node_keys:
        return None
    if address is None or root_certificates is None:
        raise InputError("--address and --root-certificates go together")
    return address, root_certificates, node_keys


def _on_flower(
    spec: "RunSpec",
    out: Path,
    place: tuple[str, Path, list[Path]] | None,
    round_timeout: float,
    *,
    guarded: "Workspace | None",
    resume: bool,
    progress: "Progress",
) -> dict[str, Any]:
    from functools import partial
    from tempfile import TemporaryDirectory

    _need_flower()
    from zktrace.cli.interrupt import patience as grace
    from zktrace.federation.flower.engine import Patience
    from zktrace.federation.flower.loopback import loopback
    from zktrace.federation.flower.runfile import RunFile
    from zktrace.federation.flower.superlink import SuperLink, train_on

    train = partial(
        train_on,
        patience=Patience(train=round_timeout),
        workspace=None if guarded is None else guarded.root,
        resume=resume,
        progress=progress,
    )
    if place is not None:
        address, certificates, keys = place
        superlink = SuperLink(address=address, root_certificates=certificates)
        with grace(_STOPPING):
            return train(superlink, RunFile(spec=spec, nodes=_lines(keys)), out)
    with TemporaryDirectory(prefix="zktrace-loopback-") as folder, loopback(spec, Path(folder)) as up:
        return train(up.superlink, up.found, out, ours=True)


def _prepare(path: Path, spec: "RunSpec", node_keys: list[Path]) -> None:
    _need_flower()
    from zktrace.federation.flower.runfile import write_run_file

    if os.path.lexists(path):
        raise Refused(f"{path}: exists already; remove it or name another file")
    write_run_file(path, spec, nodes=_lines(node_keys))


def _need_flower() -> None:
    from importlib.util import find_spec

    if find_spec("flwr") is None:
        raise MissingExtra("flwr")


def _lines(paths: list[Path]) -> tuple[str, ...]:
    """Public node keys: the one line of each file."""
    from zktrace.primitives.files import read_bounded

    return tuple(read_bounded(path, limit=1 << 14).decode(errors="replace").strip() for path in paths)


def _enrolled(preset: "Preset", workspace: Path) -> "tuple[Preset, Roster]":
    """The preset for the stations of a registry, and their roster."""
    from dataclasses import replace

    from zktrace.registry.roster import roster

    found = roster(workspace_at(workspace).registry.ledger())
    federation = replace(preset.federation, clients=len(found.names))
    return replace(preset, federation=federation, marks=replace(preset.marks, bits=found.bits)), found


def _write_keys(folder: Path, who: "Roster") -> None:
    from zktrace.primitives.files import write_atomic

    folder.mkdir(exist_ok=True)
    for name, key in zip(who.names, who.keys, strict=True):
        write_atomic(folder / f"{name}.pub", key.to_bytes(), replace=True)
