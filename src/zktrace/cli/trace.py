"""`zktrace trace` and `zktrace judge`: whose copy a suspect is, and whether the evidence for it holds."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.output import Json, emit
from zktrace.cli.registry import WorkspaceFolder, budget_option, workspace_at
from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from zktrace.dispatch.reading import Reading
    from zktrace.judge import Judgement
    from zktrace.registry.ledger import Ledger
    from zktrace.registry.records import Release
    from zktrace.registry.workspace import Workspace
    from zktrace.tracing import Case

LEAD = 3
NOTHING = 4


class CarrierChoice(StrEnum):
    """Where a suspect is read."""

    WEIGHT = "weight"
    FEATURE = "feature"
    OUTPUT = "output"
    BOTH = "both"
    ALL = "all"


def trace(
    suspect: Annotated[
        Path | None, typer.Argument(help="The leaked model: safetensors, npz or torch zip.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Instead: what a model that can only be queried said of the probes."),
    ] = None,
    carrier: Annotated[
        CarrierChoice | None,
        typer.Option("--carrier", help="Where to read it (default: wherever copies are marked)."),
    ] = None,
    align: Annotated[
        bool,
        typer.Option("--align/--no-align", help="Try to undo disguises, with half of the budget set aside."),
    ] = True,
    release: Annotated[
        str | None, typer.Option("--release", help="Which release leaked (default: the only one).")
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="Probability of naming an innocent that this look may spend.")
    ] = "1e-3",
    uncertified: Annotated[
        bool, typer.Option("--uncertified", help="Spend nothing: the answer can only be a lead.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The evidence file (default: cases/ in the workspace), mode 0600."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="Write a report for people there too (HTML).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Score a suspect against every enrolled station; name one only under a certificate.

    It is read as it is; only if that certifies nobody, its channels or features are aligned with the shared
    model first. The plan of these looks and their shares of the budget are on record before any of them.

    Exit 0: certified, 3: a lead, 4: no evidence.
    """
    from zktrace.certificates.adjudicate import Verdict
    from zktrace.primitives.files import write_atomic
    from zktrace.tracing import trace as investigate
    from zktrace.tracing.words import explain

    home = workspace_at(workspace)
    eps = budget_option(budget)
    if not 0 < eps < 1:
        raise InputError(f"--budget must lie between 0 and 1, not be {budget}")
    _check_out(out, force=force)
    ledger = home.registry.ledger()
    chosen = _release(ledger, release)
    if eps > ledger.remaining and not uncertified:
        raise Refused(
            f"a budget of {eps} is asked for and {ledger.remaining} of {ledger.setup.budget} is left "
            "(--uncertified spends nothing and can give leads)"
        )
    source, digest, reading = _read(
        home, chosen, suspect=suspect, scores=scores, carrier=carrier, align=align
    )
    case = investigate(
        home.registry,
        home.custody,
        suspect=digest,
        release=chosen.name,
        readouts=reading.readouts,
        further=reading.further,
        budget=eps * (not uncertified),
        level=eps,
    )
    option = "--suspect" if scores is None else "--scores"
    path = out or _default_path(home, case)
    write_atomic(path, case.evidence.to_bytes(), secret=True, replace=force)
    if page is not None:
        _write_report(page, case, home, suspect=source, evidence=path, force=force, option=option)
    unread = "".join(f"{carrier} could not be read: {reason}\n" for carrier, reason in reading.left)
    text = (
        f"{unread}{explain(case)}\n\nevidence  {path}\nhead      {case.evidence.head}\n"
        f"check it: zktrace judge {path} --head {case.evidence.head} {option} {source}{_shared(home, case)}"
    )
    emit(_facts(case, path, reading), as_json=as_json, text=text)
    codes = {Verdict.ATTRIBUTE: 0, Verdict.TAMPER: 0, Verdict.LEAD: LEAD, Verdict.NOTHING: NOTHING}
    raise typer.Exit(codes[case.verdict])


def _shared(home: "Workspace", case: "Case") -> str:
    """What else a judge needs if the suspect's channels were aligned."""
    if case.look.alignment != "channels":
        return ""
    return f" --shared {home.release_folder(case.investigation.release) / 'shared.safetensors'}"


def _check_out(out: Path | None, *, force: bool) -> None:
    """What would keep the evidence from being written is said before the budget is spent."""
    if out is not None and out.exists() and not force:
        raise Refused(f"{out}: exists already (--force replaces it)")
    if out is not None and not out.parent.is_dir():
        raise Refused(f"{out.parent}: is no folder")


def _release(ledger: "Ledger", name: str | None) -> "Release":
    if name is not None:
        return ledger.release(name)
    if len(ledger.releases) != 1:
        known = ", ".join(ledger.releases) or "none"
        raise Refused(f"which release leaked? Name one with --release; known: {known}")
    return next(iter(ledger.releases.values()))[1]


def _carriers(release: "Release", wanted: CarrierChoice | None) -> list[str]:
    carried = [layout.carrier for layout in release.layouts]
    if wanted is None:
        return carried
    several = {CarrierChoice.BOTH: ["weight", "feature"], CarrierChoice.ALL: ["weight", "feature", "output"]}
    names = several.get(wanted, [wanted.value])
    if not set(names) <= set(carried):
        raise Refused(f"copies of {release.name} carry {', '.join(carried)}, not {' and '.join(names)}")
    return names


def _read(
    home: "Workspace",
    release: "Release",
    *,
    suspect: Path | None,
    scores: Path | None,
    carrier: CarrierChoice | None,
    align: bool,
) -> "tuple[Path, bytes, Reading]":
    """The file that was read, the digest of what is in it, and its readouts."""
    from zktrace.dispatch.reading import read_queried, read_suspect
    from zktrace.models import model_digest, open_model
    from zktrace.readouts.scores import read_matrix, scores_digest

    if scores is not None:
        if suspect is not None or carrier not in (None, CarrierChoice.OUTPUT):
            raise InputError("give a suspect or --scores; scores are read on the output carrier alone")
        matrix = read_matrix(scores)
        return scores, scores_digest(matrix), read_queried(home, release.name, matrix)
    if suspect is None:
        raise InputError("name the suspect's file, or give --scores")
    state = open_model(suspect)
    try:
        reading = read_suspect(
            home, release.name, _carriers(release, carrier), state, align=align, strict=carrier is not None
        )
    except ModuleNotFoundError as error:
        raise Refused(
            f"reading this carrier needs {error.name}: install zktrace[learn], or --carrier weight"
        ) from None
    return suspect, model_digest(state), reading


def _default_path(home: "Workspace", case: "Case") -> Path:
    folder = home.root / "cases"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"case-{case.place}.zkt.json"


def _write_report(
    page: Path, case: "Case", home: "Workspace", *, suspect: Path, evidence: Path, force: bool, option: str
) -> None:
    from zktrace.primitives.files import write_atomic
    from zktrace.report.case import case_html
    from zktrace.report.tracing import report_of

    shown = report_of(case, home.registry.ledger(), suspect=suspect, evidence=evidence, option=option)
    write_atomic(page, case_html(shown).encode(), replace=force)


def _facts(case: "Case", path: Path, reading: "Reading") -> dict[str, object]:
    from zktrace.tracing.words import ASSUMPTION, NOT_PROVED

    return {
        "ok": True,
        "verdict": str(case.verdict),
        "named": [
            {
                "station": each.station,
                "carrier": each.carrier,
                "tail": each.tail,
                "alignment": each.alignment,
                "stage": each.stage,
                "score": float(each.score),
                "threshold": float(each.certificate.threshold),
                "bound": str(each.bound),
            }
            for each in case.named
        ],
        "leads": [
            {
                "station": each.station,
                "carrier": each.carrier,
                "tail": each.tail,
                "score": float(each.score),
                "threshold": float(each.threshold),
            }
            for each in case.leads
        ],
        "scores": {
            table.carrier: dict(zip(case.stations, table.scores.tolist(), strict=True))
            for table in case.tables
        },
        "thresholds": {table.carrier: float(table.positive.threshold) for table in case.tables},
        "looks": [each.as_json() for each in case.investigation.looks],
        "taken": len(case.evidence.findings.looks),
        "decided": case.look.alignment,
        "unread": dict(reading.left),
        "not_aligned": dict(case.failed),
        "budget": str(case.investigation.budget),
        "recipients": case.investigation.recipients,
        "suspect": case.investigation.suspect.hex(),
        "release": case.investigation.release,
        "investigation": case.place,
        "assumption": ASSUMPTION,
        "not_proved": list(NOT_PROVED),
        "evidence": str(path),
        "head": case.evidence.head,
    }


def judge(
    evidence: Annotated[Path, typer.Argument(help="The evidence file, case.zkt.json.")],
    head: Annotated[
        str, typer.Option("--head", help="The head of the log, got from somebody you trust for it.")
    ],
    policy: Annotated[
        Path | None, typer.Option("--policy", help="A TOML file with the judge's own conditions.")
    ] = None,
    suspect: Annotated[
        Path | None, typer.Option("--suspect", help="The suspect model: its readout is made again.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Or what a suspect that was only queried said.")
    ] = None,
    shared: Annotated[
        Path | None, typer.Option("--shared", help="The release's model: an alignment is made again.")
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option("--registry", help="An exported registry: N and the budgets are recounted."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check an accusation offline, step by step. Exit 0: upheld, 1: rejected, 2: unreadable."""
    from zktrace.evidence.file import FILE_LIMIT
    from zktrace.judge import DEFAULT_POLICY, Policy
    from zktrace.judge import judge as examine
    from zktrace.models import open_model
    from zktrace.primitives.files import read_bounded
    from zktrace.readouts.scores import read_matrix
    from zktrace.registry.log import Head

    found = examine(
        read_bounded(evidence, limit=FILE_LIMIT),
        head=Head.from_text(head.strip()),
        policy=DEFAULT_POLICY if policy is None else Policy.read(policy),
        suspect=None if suspect is None else open_model(suspect),
        scores=None if scores is None else read_matrix(scores),
        shared=None if shared is None else open_model(shared),
        export=None if registry is None else _entries(registry),
    )
    emit({"ok": True, "upheld": True, **found.as_json()}, as_json=as_json, text=_minutes(found))


def _entries(path: Path) -> Sequence[bytes]:
    from zktrace.registry.export import read_export

    return [entry.to_bytes() for entry in read_export(path)[0]]


def _minutes(found: "Judgement") -> str:
    lines = []
    for step in found.steps:
        lines.append(f"({step.number}) {step.title}")
        lines += [f"    {fact}" for fact in step.checked]
        lines += [f"    not checked: {fact}" for fact in step.unchecked]
    who = ", ".join(found.named) or "nobody is accused"
    lines.append(f"upheld: {found.verdict}, {who}")
    if found.named:
        lines.append(
            f"The probability that any innocent of {found.recipients} stations is named is at most "
            f"{found.budget}, if nobody who shaped the suspect knew anything of an innocent's secret row."
        )
    return "\n".join(lines)
