"""`zktrace witness`: watch logs of others, and sign what extends what was seen."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.checkpoints import Algorithms, kinds_of
from zktrace.cli.files import read_as
from zktrace.cli.options import Force, Json
from zktrace.cli.output import check_free, emit
from zktrace.errors import InvalidProof

app = typer.Typer(
    help="Watch logs of others, and sign what extends what was seen. Needs no workspace.",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(help="The witness's folder.")]


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    name: Annotated[str, typer.Option("--name", help="What the witness signs as, as w1.example; no spaces.")],
    algorithm: Algorithms = None,
    as_json: Json = False,
) -> None:
    """Make a witness, and print what operators and judges need of it. Publish that."""
    from zktrace.transparency.keys import Kind
    from zktrace.transparency.witness import Witness, make_signers

    made = Witness.create(folder, make_signers(name, kinds_of(algorithm, ed25519=Kind.COSIGNATURE)))
    lines = [each.verifier.to_text() for each in made.signers]
    emit({"ok": True, "name": name, "keys": lines}, as_json=as_json, text="\n".join(lines))


@app.command()
def watch(
    folder: Folder,
    vkeys: Annotated[list[str], typer.Argument(help="All keys of the log, from `zktrace log key`.")],
    as_json: Json = False,
) -> None:
    """Watch a log from now on: whoever has its key may ask for a cosignature."""
    from zktrace.transparency.keys import Verifier
    from zktrace.transparency.witness import Witness

    origin = Witness.open(folder).watch(tuple(Verifier.from_text(each.strip()) for each in vkeys))
    emit({"ok": True, "origin": origin}, as_json=as_json, text=f"{origin}  watched")


@app.command()
def heads(folder: Folder, as_json: Json = False) -> None:
    """List the logs that are watched, the last head of each, and requests that tell of a fork."""
    from zktrace.transparency.witness import Witness

    found = Witness.open(folder)
    last = {origin: found.last(origin) for origin in found.watched()}
    logs = [
        {"origin": name, "size": head and head.size, "root": head and head.root.hex()}
        for name, head in last.items()
    ]
    lines = [
        f"{name}  {head.size} entries, root {head.root.hex()}" if head else f"{name}  nothing cosigned yet"
        for name, head in last.items()
    ]
    disputes = [str(each) for each in found.disputes()]
    facts = {"ok": True, "logs": logs, "disputes": disputes}
    lines += [f"{each}  signed by its log, and against what it signed before" for each in disputes]
    emit(facts, as_json=as_json, text="\n".join(lines) or "no log is watched yet")


@app.command()
def cosign(
    folder: Folder,
    request: Annotated[Path, typer.Argument(help="What the log asks: `zktrace log cosign --request`.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the answer.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Cosign what a file asks, if it extends what was seen. Exit code 1 if it does not."""
    from zktrace.primitives.files import write_atomic
    from zktrace.transparency.request import REQUEST_LIMIT, SIZE_TYPE
    from zktrace.transparency.witness import Witness

    check_free(out, force=force)
    found = Witness.open(folder)
    with found.alone():
        answer = found.answer(read_as(request, "a request to cosign", bytes, limit=REQUEST_LIMIT))
    if answer.status != 200:
        said = answer.body.strip()
        reason = (
            f"this witness has seen {said} entries, or another head of them"
            if answer.kind == SIZE_TYPE
            else said
        )
        raise InvalidProof(check="witness", reason=f"not cosigned ({answer.status}): {reason}")
    write_atomic(out, answer.body.encode(), replace=force)
    emit({"ok": True, "answer": str(out)}, as_json=as_json, text=f"{out}  cosigned")


@app.command()
def serve(
    folder: Folder,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen. Beyond loopback, put a proxy with TLS before it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
    as_json: Json = False,
) -> None:
    """Answer requests over HTTP (c2sp.org/tlog-witness) until it is interrupted."""
    import sys

    from zktrace.transparency.serving import listening
    from zktrace.transparency.witness import Witness

    with listening(Witness.open(folder), host=host, port=port) as server:
        emit({"ok": True, "url": server.url}, as_json=as_json, text=f"{server.url}  POST /add-checkpoint")
        sys.stdout.flush()
        server.serve_forever()
