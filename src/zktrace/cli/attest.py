"""`zktrace attest`: statements about copies and suspects that other tools read: in-toto in DSSE envelopes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.files import read_as
from zktrace.cli.options import (
    Force,
    Json,
    ReleaseName,
    StationName,
    WorkspaceFolder,
    release_named,
    workspace_at,
)
from zktrace.cli.output import check_free, emit

if TYPE_CHECKING:
    from zktrace.attestations.statement import CheckedStatement

app = typer.Typer(
    help="Statements about copies and suspects that other tools read (in-toto), and a check of them.",
    no_args_is_help=True,
)

Out = Annotated[Path, typer.Option("--out", help="Where to write it.")]
CopyFile = Annotated[
    Path | None, typer.Option("--model", help="The copy as it was handed out (default: the workspace's).")
]


@app.command()
def dispatch(
    name: StationName,
    out: Out,
    release: ReleaseName = None,
    model: CopyFile = None,
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """State that a copy was made for a station. It names the station: for itself, and for auditors."""
    from zktrace.front.attesting import attest_dispatch

    check_free(out, force=force)
    home = workspace_at(workspace)
    _write(
        out, attest_dispatch(home, name, release_named(home, release), model), force=force, as_json=as_json
    )


@app.command()
def receipt(
    name: StationName,
    out: Out,
    release: ReleaseName = None,
    model: CopyFile = None,
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """State that a station signed for a copy. It names the station: for itself, and for auditors."""
    from zktrace.front.attesting import attest_receipt

    check_free(out, force=force)
    home = workspace_at(workspace)
    data = attest_receipt(home, name, release_named(home, release), model)
    _write(out, data, force=force, as_json=as_json)


@app.command()
def verdict(
    investigation: Annotated[int, typer.Argument(min=0, help="The investigation, by its place in the log.")],
    model: Annotated[Path, typer.Option("--model", help="The suspect, as it was found.")],
    out: Out,
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """State how an investigation ended. It names who is accused and nobody else; evidence it is not."""
    from zktrace.front.attesting import attest_verdict

    check_free(out, force=force)
    data = attest_verdict(workspace_at(workspace), investigation, model)
    _write(out, data, force=force, as_json=as_json)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="What `zktrace attest` wrote.")],
    keys: Annotated[
        list[str], typer.Option("--key", help="A line that the log published: zktrace log key; repeat it.")
    ],
    witnesses: Annotated[
        list[str] | None,
        typer.Option("--witness", help="A witness's line: it must have cosigned the checkpoint; repeat it."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="The file or folder that it must be about.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a statement offline, without a workspace. Exit code 1: it does not hold."""
    from zktrace.attestations.statement import check_attestation
    from zktrace.transparency.envelope import FILE_LIMIT
    from zktrace.transparency.trust import read_verifiers

    trusted = read_verifiers(keys), read_verifiers(witnesses or ())
    found = read_as(
        file,
        "a statement (zktrace attest)",
        lambda data: check_attestation(data, keys=trusted[0], witnesses=trusted[1]),
        limit=FILE_LIMIT,
    )
    if model is not None:
        found.statement.check_model(model)
    facts = _facts(found) | {"model": None if model is None else str(model)}
    emit(facts, as_json=as_json, text="\n".join([*_lines(found), _about(found, model)]))


def _write(path: Path, data: bytes, *, force: bool, as_json: bool) -> None:
    from zktrace.attestations.statement import Statement
    from zktrace.primitives.files import write_atomic
    from zktrace.transparency.envelope import SignedEnvelope

    write_atomic(path, data, secret=True, replace=force)  # who has which copy is not for everybody
    said = Statement.from_bytes(SignedEnvelope.from_bytes(data).payload)
    facts = {
        "ok": True,
        "statement": str(path),
        "kind": said.predicate.kind,
        "sha256": said.digest.hex(),
        "entries": [each.index for each in said.predicate.places],
        "bytes": len(data),
    }
    emit(facts, as_json=as_json, text=f"{path}  {said.predicate.headline}")


def _facts(found: "CheckedStatement") -> dict[str, object]:
    said, head = found.statement, found.checkpoint.checkpoint
    body = {name: each for name, each in said.predicate.as_json().items() if not isinstance(each, dict)}
    return {
        "ok": True,
        "kind": said.predicate.kind,
        "predicate": body,
        "sha256": said.digest.hex(),
        "entries": [{"index": each.index, "at": each.at} for each in said.predicate.places],
        "signed": list(found.signed),
        "origin": head.origin,
        "size": head.size,
        "witnesses": [{"name": each.name, "at": each.at} for each in found.checkpoint.witnesses],
    }


def _lines(found: "CheckedStatement") -> list[str]:
    said = found.statement.predicate
    place = said.places[0]
    return [f"{said.headline}, entry {place.index}, {place.at}", str(found.checkpoint)]


def _about(found: "CheckedStatement", model: Path | None) -> str:
    digest = found.statement.digest.hex()
    if model is None:
        return f"about the files with the digest {digest}\nnot checked: that a model is this one (--model)"
    return f"{model} is what it is about: {digest}"
