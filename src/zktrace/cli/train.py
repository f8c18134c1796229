"""`zktrace train`: a federation with identity marks, on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.output import Json, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.credentials import PublicKey


def train(
    out: Annotated[Path, typer.Option("--out", help="Folder of the run: checkpoints, log, model, result.")],
    preset: Annotated[
        str, typer.Option("--preset", help="smoke, desk, paper, or a TOML file copied from one of them.")
    ] = "smoke",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides everything that is random.")] = 42,
    public: Annotated[
        list[Path] | None,
        typer.Option("--public", help="A station's public key; repeat it, in the order of the roster."),
    ] = None,
    cifar10: Annotated[
        Path | None, typer.Option("--cifar10", help="Folder of CIFAR-10 in its binary layout.")
    ] = None,
    unmarked: Annotated[bool, typer.Option("--unmarked", help="Train the control: no marks.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", min=0, help="Worker processes; 0: none. Default: the cores.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    as_json: Json = False,
) -> None:
    """Train a federation: pre-training, rounds of local episodes, averaging; codewords go into the scales.

    Without --public the stations get experimental credentials derived from the seed: good for a study, not
    for an operator. Their public keys are written to OUT/stations.
    """
    from dataclasses import replace

    from zktrace.cli.progress import training_progress
    from zktrace.credentials import PublicKey
    from zktrace.credentials.keys import FILE_LIMIT
    from zktrace.federation.run import run
    from zktrace.federation.spec import RunSpec
    from zktrace.federation.workers import worker_engine
    from zktrace.learning.data.cache import default_folder
    from zktrace.learning.presets import load_preset
    from zktrace.primitives.files import read_bounded

    chosen = load_preset(preset)
    if unmarked:
        chosen = replace(chosen, marks=replace(chosen.marks, lambda_wm=0.0))
    clients = chosen.federation.clients
    if public:
        keys = [PublicKey.from_bytes(read_bounded(path, limit=FILE_LIMIT)) for path in public]
        if len(keys) != clients:
            raise InputError(f"{len(keys)} public keys for {clients} stations: give --public {clients} times")
    else:
        keys = [_experimental(seed, station) for station in range(clients)]
    spec = RunSpec(
        preset=chosen,
        seed=seed,
        words=tuple(key.codeword(chosen.marks.bits) for key in keys),
        cifar10=cifar10,
        cache=default_folder(),
    )
    with training_progress(chosen) as progress, worker_engine(spec, workers=workers) as engine:
        result = run(spec, out, engine, resume=resume, progress=progress)
    _write_keys(out / "stations", keys)
    marks = result["marks"]
    text = f"{out / 'model.safetensors'}  {100 * result['accuracy']:.1f} % on {result['dataset']}"
    if marks is not None:
        text += (
            f"\n{marks['attribution']:.0%} of the stations attributed, agreement "
            f"{marks['self_agreement']:.3f} with the own codeword and {marks['cross_talk']:.3f} with others"
        )
    emit({"ok": True, **result}, as_json=as_json, text=text)


def _experimental(seed: int, station: int) -> "PublicKey":
    """The public key of a study's station: anybody can derive its secret from the seed."""
    from zktrace.credentials import SecretKey
    from zktrace.primitives.shake import Shake

    stream = Shake("zkt-experiment-v1/station", seed.to_bytes(16, "big"), station.to_bytes(4, "big"))
    halves = iter((stream.digest(64)[:32], stream.digest(64)[32:]))
    return SecretKey.generate(entropy=lambda _: next(halves)).public


def _write_keys(folder: Path, keys: list["PublicKey"]) -> None:
    from zktrace.primitives.files import write_atomic

    folder.mkdir(exist_ok=True)
    for station, key in enumerate(keys):
        write_atomic(folder / f"station{station:03d}.pub", key.to_bytes(), replace=True)
