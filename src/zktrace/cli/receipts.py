"""`zktrace receipts`, and `credential receipt` of a station: who signed for which copy, and who did not."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.files import read_as, secret_key
from zktrace.cli.options import (
    AllowWeak,
    Force,
    Json,
    ReleaseName,
    StationName,
    WorkspaceFolder,
    release_named,
    workspace_at,
)
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

CopiesGiven = Annotated[
    list[Path] | None, typer.Option("--copy", help="A copy that came; repeat it for more.")
]
DigestsGiven = Annotated[
    list[str] | None,
    typer.Option("--digest", help="Or the digest that was written down when one came; repeat it."),
]

app = typer.Typer(help="Who signed for which copy, and who did not.", no_args_is_help=True)


@app.command("list")
def list_receipts(
    release: ReleaseName = None, workspace: WorkspaceFolder = None, as_json: Json = False
) -> None:
    """List the stations of a release: who has a copy, who signed, and where the receipt lies."""
    from zktrace.front.receipts import kept

    home = workspace_at(workspace)
    ledger, name = home.registry.ledger(), release_named(home, release)
    held = ledger.holding(name)
    waiting, signers, rows, lines = set(held.unsigned), set(held.signers), [], []
    for station in ledger.by_row:
        found = kept(home, station, name) if station in signers else ()
        if not found and station not in waiting:
            continue
        files = [None if path is None else str(path) for _, path in found]
        rows.append({"station": station, "entries": [place for place, _ in found], "files": files})
        said = ", ".join(f"entry {place}{'' if path else ' (file lost)'}" for place, path in found)
        lines.append(f"{station}  {f'signed, {said}' if said else 'has not signed'}")
    text = "\n".join(lines) or f"nobody has a dispatched copy of {name}"
    emit({"ok": True, "release": name, "stations": rows}, as_json=as_json, text=text)


@app.command()
def ask(
    name: StationName,
    out: Annotated[Path, typer.Option("--out", help="Where to write what the station is asked to sign.")],
    release: ReleaseName = None,
    rounds: Annotated[
        bool, typer.Option("--rounds", help="For the rounds of a guarded release, up to 512 in one receipt.")
    ] = False,
    workspace: WorkspaceFolder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write what a station was handed and has not signed for. Give it to the station, with the copies."""
    from zktrace.front.receipts import delivery
    from zktrace.primitives.files import write_atomic

    check_free(out, force=force)
    home = workspace_at(workspace)
    made = delivery(home, name, release_named(home, release), rounds=rounds)
    write_atomic(out, made.to_bytes() + b"\n", replace=force)
    facts = {
        "ok": True,
        "delivery": str(out),
        "station": name,
        "release": made.release,
        "copies": len(made.copies),
    }
    emit(facts, as_json=as_json, text=f"{out}  {count_text(len(made.copies))} of {made.release} for {name}")


@app.command()
def take(
    receipt: Annotated[Path, typer.Argument(help="What the station signed: credential receipt.")],
    workspace: WorkspaceFolder = None,
    allow_weak_params: AllowWeak = False,
    as_json: Json = False,
) -> None:
    """Check a station's receipt, keep it and put it on record. Exit code 1: it does not hold."""
    from zktrace.front.receipts import take as take_receipt
    from zktrace.registry.signing import FILE_LIMIT, Receipt

    what = "a station's receipt (zktrace credential receipt)"
    found = read_as(receipt, what, Receipt.from_bytes, limit=FILE_LIMIT)
    home, said = workspace_at(workspace), found.delivery
    index = take_receipt(home, found, allow_weak_params=allow_weak_params)
    facts = {
        "ok": True,
        "station": said.station,
        "release": said.release,
        "copies": len(said.copies),
        "index": index,
        "head": home.registry.head().to_text(),
    }
    text = f"{said.station}  signed for {count_text(len(said.copies))} of {said.release}, entry {index}"
    emit(facts, as_json=as_json, text=text)


def receipt(
    delivery: Annotated[Path, typer.Argument(help="What the operator asks to be signed: receipts ask.")],
    key: Annotated[Path, typer.Option("--key", help="The station's secret key.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the receipt.")],
    copies: CopiesGiven = None,
    digests: DigestsGiven = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sign for the copies that came: a receipt, for the operator to put on record.

    Nothing is signed but what is here: every copy that the operator lists must be among those that are given.
    """
    from zktrace.front.receipts import sign
    from zktrace.primitives.files import write_atomic
    from zktrace.registry.signing import FILE_LIMIT, Delivery

    check_free(out, force=force)
    asked = read_as(delivery, "a delivery (zktrace receipts ask)", Delivery.from_bytes, limit=FILE_LIMIT)
    made = sign(secret_key(key), asked, copies or (), unseen=[digest_option(each) for each in digests or ()])
    data = made.to_bytes() + b"\n"
    write_atomic(out, data, replace=force)
    facts = {
        "ok": True,
        "receipt": str(out),
        "station": asked.station,
        "release": asked.release,
        "copies": [each.hex() for each in asked.copies],
        "head": asked.head,
        "bytes": len(data),
    }
    text = (
        f"{out}  {asked.station} signs for {count_text(len(asked.copies))} of {asked.release}\n{asked.head}"
    )
    emit(facts, as_json=as_json, text=text)


def count_text(count: int) -> str:
    """So many copies."""
    return "a copy" if count == 1 else f"{count} copies"


def digest_option(text: str) -> bytes:
    """The digest of a copy, as people give it."""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise InputError(f"--digest takes 64 hexadecimal digits, not {text[:80]!r}")
    return found
