"""`zktrace judge`: whether the evidence for an accusation holds."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.files import evidence_bytes, read_as
from zktrace.cli.network import FeaturesAt, NetworkAt, network_option
from zktrace.cli.options import Force, Json
from zktrace.cli.output import check_free, emit
from zktrace.cli.terminal import tell
from zktrace.errors import CannotTell, EvidenceRejected, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zktrace.court import Judgement, Minutes, Policy
    from zktrace.registry.log import Extension, Head
    from zktrace.registry.signing import Receipt


def judge(
    evidence: Annotated[Path, typer.Argument(help="The evidence file, case.zkt.json.")],
    head: Annotated[
        str | None, typer.Option("--head", help="The head of the log, got from somebody you trust for it.")
    ] = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(
            "--checkpoint", help="Or a checkpoint with cosignatures of witnesses your policy names."
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="A TOML file with the judge's own conditions.")
    ] = None,
    suspect: Annotated[
        Path | None, typer.Option("--suspect", help="The suspect model: its readout is made again.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Or what a suspect is said to have answered; nobody vouches for it."),
    ] = None,
    shared: Annotated[
        Path | None,
        typer.Option("--shared", help="The release's model: reference and alignment are made again."),
    ] = None,
    probes: Annotated[
        list[Path] | None,
        typer.Option(
            "--probes",
            help="The release's probes.safetensors or queries.safetensors, to read a network (needs torch).",
        ),
    ] = None,
    network: NetworkAt = None,
    features: FeaturesAt = None,
    registry: Annotated[
        Path | None,
        typer.Option("--registry", help="An exported registry: N and the budgets are recounted."),
    ] = None,
    consistency: Annotated[
        list[Path] | None,
        typer.Option(
            "--consistency", help="A proof that one head extends another, as `log prove --since` writes it."
        ),
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", help="A head that was witnessed before the suspect was known.")
    ] = None,
    before_checkpoint: Annotated[
        Path | None, typer.Option("--before-checkpoint", help="Or such a head as a cosigned checkpoint.")
    ] = None,
    receipt: Annotated[
        list[Path] | None, typer.Option("--receipt", help="What the accused signed when it got its copy.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", help="Write a dated page of the judgement there (HTML), mode 0600."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Check an accusation offline, step by step.

    Exit 0: upheld, 1: rejected, 2: unreadable, or what was given decides neither way.
    """
    from zktrace.court import Minutes, Policy
    from zktrace.front.judging import judge as examine
    from zktrace.registry.log import Head

    _check_page(page, force=force)
    data, minutes = evidence_bytes(evidence), Minutes()
    conditions = Policy() if policy is None else Policy.read(policy)
    own, earlier = (None if each is None else Head.from_text(each.strip()) for each in (head, before))
    found: Judgement | EvidenceRejected | CannotTell
    try:
        found = examine(
            data,
            head=own,
            checkpoints=checkpoint or (),
            policy=conditions,
            suspect=suspect,
            scores=scores,
            shared=shared,
            probes=probes or (),
            network=network_option(network, features),
            registry=registry,
            extensions=[_extension(each) for each in consistency or ()],
            before=earlier,
            before_checkpoint=before_checkpoint,
            receipts=[_receipt(each) for each in receipt or ()],
            minutes=minutes,
        )
    except (EvidenceRejected, CannotTell) as ended:
        found = ended
    if page is not None:
        given = {
            "suspect": [suspect],
            "scores": [scores],
            "shared model": [shared],
            "probes": probes,
            "exported registry": [registry],
            "consistency proof": consistency,
            "checkpoint": checkpoint,
            "receipt": receipt,
            "earlier checkpoint": [before_checkpoint],
            "policy": [policy],
        }
        _write_page(
            page,
            evidence=(evidence.name, hashlib.sha256(data).hexdigest()),
            heads=(own, earlier),
            given=_named(given),
            policy=conditions,
            outcome=found,
            minutes=minutes,
            torch=bool(probes),
            force=force,
        )
    _tell(found, as_json=as_json)


def _tell(found: "Judgement | EvidenceRejected | CannotTell", *, as_json: bool) -> None:
    """How it ended: upheld is told, anything else raised."""
    if isinstance(found, EvidenceRejected | CannotTell):
        raise found
    if as_json:
        emit({"ok": True, "upheld": True, **found.as_json()}, as_json=True, text="")
        return
    tell(_minutes(found))
    tell(f"upheld: {found.verdict}, {', '.join(found.named) or 'nobody is accused'}", strong=True)
    tell(found.bound)


def _named(given: "Mapping[str, Sequence[Path | None] | None]") -> tuple[tuple[str, str], ...]:
    """What each file is, and its name."""
    return tuple(
        (what, path.name) for what, paths in given.items() for path in paths or () if path is not None
    )


def _check_page(page: Path | None, *, force: bool) -> None:
    """What would keep the report from being written is said before the work."""
    if page is None:
        return
    if page.is_dir() or not page.parent.is_dir():
        raise Refused(f"{page}: is no place for a file")
    check_free(page, force=force)


def _write_page(
    page: Path,
    *,
    evidence: tuple[str, str],
    heads: "tuple[Head | None, Head | None]",
    given: tuple[tuple[str, str], ...],
    policy: "Policy",
    outcome: "Judgement | EvidenceRejected | CannotTell",
    minutes: "Minutes",
    torch: bool,
    force: bool,
) -> None:
    """The judgement as a dated page."""
    from zktrace.primitives.files import write_atomic
    from zktrace.report.judgement import Hearing, judgement_html, versions

    own, earlier = heads
    hearing = Hearing(
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        evidence=evidence,
        head="none was typed: checkpoints were given" if own is None else own.to_text(),
        before=None if earlier is None else earlier.to_text(),
        given=given,
        policy=policy,
        outcome=outcome,
        steps=minutes.steps(),
        reached=minutes.at,
        versions=versions(torch=torch),
    )
    write_atomic(page, judgement_html(hearing).encode(), secret=True, replace=force)


def _extension(path: Path) -> "Extension":
    from zktrace.registry.log import PROOF_FILE_LIMIT, Extension

    what = "a consistency proof (zktrace log prove --since)"
    return read_as(path, what, Extension.from_bytes, limit=PROOF_FILE_LIMIT)


def _receipt(path: Path) -> "Receipt":
    from zktrace.registry.signing import FILE_LIMIT, Receipt

    return read_as(
        path, "a station's receipt (zktrace credential receipt)", Receipt.from_bytes, limit=FILE_LIMIT
    )


def _minutes(found: "Judgement") -> str:
    lines = []
    for step in found.steps:
        lines.append(f"({step.number}) {step.title}")
        lines += [f"    {fact}" for fact in step.checked]
        lines += [f"    not checked: {fact}" for fact in step.unchecked]
    return "\n".join(lines)
