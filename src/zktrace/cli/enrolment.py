"""`zktrace offer`, `credential request`, `enrol`, `reserve`: a station comes by a row that nobody chose."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.files import read_as, secret_key
from zktrace.cli.options import AllowWeak, Force, Json, StationName, WorkspaceFolder, workspace_at
from zktrace.cli.output import check_free, emit


def offer(workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """Print the line that stations need for their requests to enrol. Publish it: it is no secret."""
    from zktrace.registry.requests import offer_text

    text = offer_text(workspace_at(workspace).offer)
    emit({"ok": True, "offer": text}, as_json=as_json, text=text)


def request(
    key: Annotated[Path, typer.Option("--key", help="The station's secret key.")],
    offered: Annotated[str, typer.Option("--offer", help="The operator's line, from `zktrace offer`.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the request.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask an operator to enrol this station.

    The request has the public key, a nonce that is drawn now, and a proof that the key is the station's own.
    The station's secret row comes from the nonce and from a seed that the operator promised before: neither
    side can choose it. Nothing in the request is secret.
    """
    from zktrace.front.credential import Credential
    from zktrace.primitives.files import write_atomic

    check_free(out, force=force)
    made = Credential(name=key.stem, key=secret_key(key)).request(offered)
    write_atomic(out, made.to_bytes() + b"\n", replace=force)
    facts = {
        "ok": True,
        "request": str(out),
        "fingerprint": made.public.fingerprint.hex(),
        "nonce": made.nonce.hex(),
        "bytes": len(made.to_bytes()) + 1,
    }
    emit(facts, as_json=as_json, text=f"{out}  request of {facts['fingerprint']}")


def enrol(
    name: StationName,
    request: Annotated[Path, typer.Option("--request", help="What the station made: credential request.")],
    workspace: WorkspaceFolder = None,
    allow_weak_params: AllowWeak = False,
    as_json: Json = False,
) -> None:
    """Enrol a station: it gets the next place, and its row is fixed by both sides from now on."""
    from zktrace.registry.requests import FILE_LIMIT, Request

    what = "a station's request (zktrace credential request)"
    asked = read_as(request, what, Request.from_bytes, limit=FILE_LIMIT)
    place = workspace_at(workspace)
    index = place.enrol(name, asked, allow_weak_params=allow_weak_params)
    ledger = place.registry.ledger()
    station = ledger.station(name)
    facts = {
        "ok": True,
        "station": name,
        "row": station.enrolment.row,
        "index": index,
        "fingerprint": asked.public.fingerprint.hex(),
        "head": ledger.head.to_text(),
    }
    emit(
        facts,
        as_json=as_json,
        text=f"{name}  row {station.enrolment.row}, entry {index}, public key {facts['fingerprint']}",
    )


def reserve(
    count: Annotated[int, typer.Argument(min=1, max=1 << 24, help="How many more.")],
    releases: Annotated[bool, typer.Option("--releases", help="For releases, not for stations.")] = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Promise seeds for more stations, or releases, than the setup did."""
    from zktrace.registry.records import PLACE, RELEASE
    from zktrace.registry.requests import offer_text

    place = workspace_at(workspace)
    total = place.reserve(RELEASE if releases else PLACE, count)
    facts = {"ok": True, "promised": total, "head": place.registry.head().to_text()}
    what = "releases" if releases else "stations"
    if not releases:
        facts["offer"] = offer_text(place.offer)
    emit(facts, as_json=as_json, text=f"seeds are promised for {total} {what} in all")
