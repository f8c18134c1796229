"""`zktrace init`, `stations`, `revoke`, `log`, `registry`: what was promised beforehand."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli import checkpoints
from zktrace.cli.files import read_as
from zktrace.cli.options import Force, Json, StationName, WorkspaceFolder, workspace_at
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.registry.log import Head

log = typer.Typer(
    help="The append-only log: its head, its proofs, and whether it still is what it was.",
    no_args_is_help=True,
)
app = typer.Typer(help="The registry as a whole.", no_args_is_help=True)


def init(
    folder: Annotated[Path, typer.Argument(help="The new workspace: a new or empty folder.")],
    title: Annotated[str | None, typer.Option("--title", help="What the federation is called.")] = None,
    budget: Annotated[
        str,
        typer.Option(
            "--budget", help="Probability of ever naming an innocent, over all investigations together."
        ),
    ] = "0.01",
    carrier: Annotated[
        list[str] | None,
        typer.Option(
            "--carrier",
            help="Where copies may carry their rows: spread, weight, feature, output (default: all).",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", help="postgresql://USER@HOST/NAME instead of a file in the workspace."),
    ] = None,
    identity_bits: Annotated[
        int, typer.Option("--identity-bits", min=8, max=65536, help="Length of a station's codeword.")
    ] = 128,
    places: Annotated[
        int,
        typer.Option(
            "--places", min=1, max=65536, help="Stations whose seeds are promised now; more can be added."
        ),
    ] = 1024,
    as_json: Json = False,
) -> None:
    """Make a workspace: a code key, and a registry whose first entry commits to it.

    A password is better left out of --database (PostgreSQL reads ~/.pgpass and PGPASSWORD).
    """
    from zktrace.front.workspace import Workspace
    from zktrace.registry.requests import offer_text

    made = Workspace.create(
        folder,
        title=title or folder.absolute().name or "federation",
        budget=budget,
        carriers=carrier or None,
        url=database,
        identity_bits=identity_bits,
        places=places,
    )
    setup, head = made.setup, made.head
    facts = {
        "ok": True,
        "workspace": str(made.root),
        "title": setup.title,
        "budget": str(setup.budget),
        "carriers": [each.carrier for each in setup.carriers],
        "head": head.to_text(),
        "offer": offer_text(made.offer),
    }
    emit(
        facts,
        as_json=as_json,
        text=f"{folder}  workspace of {setup.title!r}, false-accusation budget {setup.budget}\n"
        f"{folder / 'secrets' / 'code.key'}  code key, keep it: no copy can be traced without it\n"
        f"{facts['offer']}  for stations' requests\n"
        f"{head.to_text()}",
    )


def stations(workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """List the stations in the order of their rows."""
    from zktrace.credentials import PublicKey

    ledger = workspace_at(workspace).registry.ledger()
    copies = ledger.copies()
    rows: list[dict[str, object]] = [
        {
            "row": row,
            "station": name,
            "fingerprint": PublicKey.from_bytes(ledger.stations[name].enrolment.public_key).fingerprint.hex(),
            "enrolled": ledger.stations[name].at,
            "revoked": ledger.stations[name].revoked,
            "copies": copies.get(name, 0),
        }
        for row, name in enumerate(ledger.by_row)
    ]
    emit({"ok": True, "stations": rows}, as_json=as_json, text=_table(rows))


def _table(rows: list[dict[str, object]]) -> str:
    width = max((len(str(row["station"])) for row in rows), default=0)
    width = max(width, len("station"))
    lines = [
        f"row  {'station':<{width}}  fingerprint       enrolled at           revoked at            copies"
    ]
    for row in rows:
        lines.append(
            f"{row['row']:>3}  {row['station']:<{width}}  {str(row['fingerprint'])[:16]}  {row['enrolled']}  "
            f"{row['revoked'] or '-':<20}  {row['copies']:>6}"
        )
    return "\n".join(lines)


def revoke(
    name: StationName,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")],
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Revoke a station: it gets no further copies. Its row is kept and still traced."""
    from zktrace.registry.records import RevocationRecord

    place = workspace_at(workspace)
    index = place.registry.add(RevocationRecord(station=name, reason=reason))
    facts = {"ok": True, "station": name, "index": index, "head": place.registry.head().to_text()}
    emit(facts, as_json=as_json, text=f"{name}  revoked, entry {index}")


@log.command("head")
def log_head(workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """Print the head: publish it, and nobody can change what is under it unseen."""
    head = workspace_at(workspace).registry.head()
    facts = {"ok": True, "head": head.to_text(), "size": head.size, "root": head.root.hex()}
    emit(facts, as_json=as_json, text=head.to_text())


@log.command("verify")
def log_verify(
    head: Annotated[
        str | None, typer.Option("--head", help="An older head that the log must extend (or the proof's).")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Check this exported registry; no workspace is needed.")
    ] = None,
    proof: Annotated[
        Path | None, typer.Option("--proof", help="Check what `log prove` printed, and nothing else.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="With --proof: an older head that --head must extend.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Check every entry, rule and hash of a log. Exit code 0: it holds; 1: it does not."""
    from zktrace.registry.log import Head

    old = None if head is None else Head.from_text(head)
    if proof is not None:
        if old is None or export is not None or workspace is not None:
            raise InputError("--proof needs --head, may have --since, and nothing else")
        if since is None:
            _verify_proof(proof, old, as_json=as_json)
        else:
            _verify_extension(proof, Head.from_text(since), old, as_json=as_json)
        return
    if since is not None:
        raise InputError("--since goes with --proof; a whole log is held against an older head by --head")
    if export is not None and workspace is not None:
        raise InputError("--export and --workspace name two logs")
    found = _verified(export, workspace, old)
    facts = {"ok": True, "head": found.to_text(), "size": found.size, "extends": head}
    extended = "" if old is None else f", extends the head of {old.size}"
    emit(facts, as_json=as_json, text=f"{found.to_text()}\n{found.size} entries hold{extended}")


def _verified(export: Path | None, workspace: Path | None, old: "Head | None") -> "Head":
    from zktrace.registry.export import read_export

    if export is not None:
        return read_export(export, extends=old)[1]
    place = workspace_at(workspace)
    found = place.registry.verify(extends=old)
    if place.code_key_path.exists():
        _ = place.custody  # Rejected if the key is not the registry's
    return found


def _verify_proof(path: Path, head: "Head", *, as_json: bool) -> None:
    from zktrace.registry.log import PROOF_FILE_LIMIT, ProvenEntry

    what = "the proof of an entry (zktrace log prove INDEX)"
    proven = read_as(path, what, ProvenEntry.from_bytes, limit=PROOF_FILE_LIMIT)
    proven.verify(head)
    entry, index = proven.entry, proven.inclusion.index
    facts = {
        "ok": True,
        "index": index,
        "kind": entry.record.kind,
        "at": entry.at,
        "body": entry.record.as_json(),
    }
    emit(facts, as_json=as_json, text=f"entry {index} is under the head: {entry.record.kind}, {entry.at}")


def _verify_extension(path: Path, old: "Head", new: "Head", *, as_json: bool) -> None:
    from zktrace.registry.log import PROOF_FILE_LIMIT, Extension

    what = "a consistency proof (zktrace log prove --since)"
    read_as(path, what, Extension.from_bytes, limit=PROOF_FILE_LIMIT).verify(old, new)
    facts = {"ok": True, "head": new.to_text(), "size": new.size, "extends": old.to_text()}
    emit(facts, as_json=as_json, text=f"the log of {new.size} entries extends the head of {old.size}")


@log.command("prove")
def log_prove(
    index: Annotated[int | None, typer.Argument(min=0, help="Which entry, counted from 0.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Instead: an older head, to show that the log extends it.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Print the proof that an entry is under the present head, or that this extends an older one, as JSON.

    `zktrace log verify --proof FILE --head HEAD`, with --since OLD_HEAD for the latter, checks it, anywhere.
    """
    from zktrace.registry.log import Extension, Head, ProvenEntry

    if (index is None) == (since is None):
        raise InputError("which proof? Give the number of an entry, or --since with an older head")
    registry = workspace_at(workspace).registry
    made: ProvenEntry | Extension
    made = registry.prove(index) if index is not None else registry.prove_extends(Head.from_text(since or ""))
    sys.stdout.write(made.to_bytes().decode() + "\n")


log.command("key")(checkpoints.key)
log.command("checkpoint")(checkpoints.checkpoint)
log.command("witness")(checkpoints.witness)
log.command("cosign")(checkpoints.cosign)
log.command("proof")(checkpoints.proof)
log.command("check")(checkpoints.check)
log.command("compare")(checkpoints.compare)


@app.command("export")
def export_registry(
    out: Annotated[Path, typer.Argument(help="Where to write it.")],
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write all entries and the head to one file for auditors. Nothing in it is secret."""
    from zktrace.registry.export import write_export

    check_free(out, force=force)
    head = write_export(workspace_at(workspace).registry, out, replace=force)
    facts = {"ok": True, "export": str(out), "head": head.to_text(), "size": head.size}
    emit(facts, as_json=as_json, text=f"{out}  {head.size} entries\n{head.to_text()}")
