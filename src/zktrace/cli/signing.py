"""`zktrace sign`: a station signs at a service for what came, without files that go to and fro."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import Force, Json
from zktrace.cli.output import check_free, emit
from zktrace.cli.receipts import CopiesGiven, DigestsGiven, count_text, digest_option
from zktrace.cli.serve import Authority, ServiceAddress, StationKey


def sign(
    url: ServiceAddress,
    key: StationKey,
    release: Annotated[str, typer.Option("--release", help="Which release the copies are of.")],
    out: Annotated[Path, typer.Option("--receipt", help="File for the receipt, which is sent as well.")],
    copies: CopiesGiven = None,
    digests: DigestsGiven = None,
    rounds: Annotated[
        bool, typer.Option("--rounds", help="Rounds of a guarded release, up to 512 in one receipt.")
    ] = False,
    authority: Authority = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Sign at a service for copies that came: of a release, or of the rounds of a guarded one.

    Nothing is signed but what is here: every copy that the service lists must be among those that are given.
    """
    from zktrace.front.credential import Credential
    from zktrace.primitives.files import write_atomic
    from zktrace.service.client import Service

    check_free(out, force=force)
    unseen, credential = [digest_option(each) for each in digests or ()], Credential.load(key)
    service = Service.signed_in(url, credential, authority=authority)
    receipt, entry = service.sign_all(credential.key, release, copies or (), unseen, rounds=rounds)
    write_atomic(out, receipt.to_bytes() + b"\n", replace=force)
    said = receipt.delivery
    facts = {
        "ok": True,
        "receipt": str(out),
        "entry": entry,
        "release": said.release,
        "rounds": list(said.rounds),
        "copies": [each.hex() for each in said.copies],
    }
    text = f"{out}  signed for {count_text(len(said.copies))} of {said.release}, entry {entry} of the log"
    emit(facts, as_json=as_json, text=text)
