"""`zktrace trace`: whose copy a suspect is."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.budget import check_budget, confirm_uncertified
from zktrace.cli.carriers import CarrierChoice
from zktrace.cli.options import Force, Json, WorkspaceFolder, budget_option, workspace_at
from zktrace.cli.output import check_free, emit, say
from zktrace.cli.status import budget_line
from zktrace.cli.terminal import tell
from zktrace.errors import Error, InputError, MissingExtra, Refused

if TYPE_CHECKING:
    from zktrace.dispatch.reading import Reading
    from zktrace.registry.ledger import Ledger
    from zktrace.registry.records import ReleaseRecord
    from zktrace.registry.workspace import Workspace
    from zktrace.tracing import Case

LEAD = 3
NOTHING = 4


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
        typer.Option("--align/--no-align", help="Try to undo disguises, with a tenth of the budget."),
    ] = True,
    release: Annotated[
        str | None, typer.Option("--release", help="Which release leaked (default: the only one).")
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", help="Probability of naming an innocent that this look may spend.")
    ] = "1e-3",
    uncertified: Annotated[
        bool,
        typer.Option(
            "--uncertified",
            help="Spend nothing: leads only. It ends certified looks under this setup for ever, and asks.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before an uncertified look.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A copy of the evidence, which is kept in cases/ in any case; mode 0600."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="Write a report for people there too (HTML), mode 0600.")
    ] = None,
    all_scores: Annotated[
        bool,
        typer.Option(
            "--all-scores", help="Show the scores of stations that are not named. They are secrets."
        ),
    ] = False,
    force: Force = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Score a suspect against every enrolled station; name one only under a certificate.

    It is read as it is; only if that certifies nobody, its channels or features are aligned with the shared
    model first. The plan of these looks and their shares of the budget are on record before any of them.

    Exit 0: certified, 3: a lead, 4: no evidence.
    """
    from zktrace.certificates.adjudicate import Verdict
    from zktrace.report.words import SCORES_ARE_SECRETS, explain, judge_command
    from zktrace.tracing import trace as investigate

    home = workspace_at(workspace)
    eps = budget_option(budget)
    if not 0 < eps < 1:
        raise InputError(f"--budget must lie between 0 and 1, not be {budget}")
    _check_outputs(home, suspect or scores, out, page, force=force)
    ledger = home.registry.ledger()
    chosen = _release(ledger, release)
    if uncertified:
        confirm_uncertified(ledger, yes=yes)
    else:
        check_budget(ledger, eps)
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
        requests=home.request_of,
    )
    given = given_to_judge(home, case, source, "--suspect" if scores is None else "--scores")
    path, warnings = _keep(home, case, out, force=force)
    if page is not None:
        warnings += _tried(
            lambda: _write_report(
                page, case, home, given=given, evidence=path, force=force, all_scores=all_scores
            )
        )
    warnings += [SCORES_ARE_SECRETS] if all_scores else []
    leads, failed = keep_leads(home, case)
    warnings += failed
    headline, _, rest = explain(case, all_scores=all_scores).partition("\n")
    unread = (f"{carrier} could not be read: {reason}" for carrier, reason in reading.left)
    now = home.registry.ledger()
    files = [f"evidence  {path}", f"head      {case.evidence.head}"]
    files += [f"leads     {leads} (a secret)"] if leads is not None else []
    files.append(budget_line(case.investigation.budget, now))
    if as_json:
        facts = _facts(case, path, reading, all_scores=all_scores)
        emit(facts | {"warnings": warnings, "left": str(now.remaining)}, as_json=True, text="")
    else:
        tell(headline, strong=True)
        tell("\n".join((rest, *unread, "")))
        say("\n".join((*files, f"check it: {judge_command(case, evidence=path, given=given)}")))
        tell("\n".join(f"warning: {each}" for each in warnings))
    codes = {Verdict.ATTRIBUTE: 0, Verdict.TAMPER: 0, Verdict.LEAD: LEAD, Verdict.NOTHING: NOTHING}
    raise typer.Exit(codes[case.verdict])


def _check_outputs(
    home: "Workspace", source: Path | None, out: Path | None, page: Path | None, *, force: bool
) -> None:
    """What would keep the evidence or the report from being written is said before the budget is spent."""
    if not os.access(home.cases_folder(), os.W_OK | os.X_OK):
        raise Refused(f"{home.cases_folder()}: cannot be written to, and evidence is kept there")
    taken = set() if source is None else {source.resolve()}
    for path in (each for each in (out, page) if each is not None):
        if path.is_dir():
            raise Refused(f"{path}: exists already")
        check_free(path, force=force)
        if not path.parent.is_dir():
            raise Refused(f"{path.parent}: is no folder")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise Refused(f"{path.parent}: cannot be written to")
        if path.resolve() in taken:
            raise Refused(f"{path}: suspect, evidence and report are three files")
        taken.add(path.resolve())


def given_to_judge(home: "Workspace", case: "Case", source: Path, option: str) -> tuple[str | Path, ...]:
    """What a judge is given beside evidence and head; to align channels, the shared model too."""
    if not case.named or case.look.alignment != "channels":
        return option, source
    return option, source, "--shared", home.release_folder(case.investigation.release) / "shared.safetensors"


def _release(ledger: "Ledger", name: str | None) -> "ReleaseRecord":
    if name is not None:
        return ledger.release(name)
    if len(ledger.releases) != 1:
        if not ledger.releases:
            raise Refused("there is no release yet (zktrace release makes one)")
        known = ", ".join(ledger.releases)
        raise Refused(f"which release leaked? Name one with --release; known: {known}")
    return next(iter(ledger.releases.values()))[1]


def _carriers(release: "ReleaseRecord", wanted: CarrierChoice | None) -> list[str]:
    carried = [layout.carrier for layout in release.layouts]
    if wanted is None:
        return carried
    names = list(wanted.names)
    if not set(names) <= set(carried):
        raise Refused(f"copies of {release.name} carry {', '.join(carried)}, not {' and '.join(names)}")
    return names


def _read(
    home: "Workspace",
    release: "ReleaseRecord",
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
        raise MissingExtra.of(error, hint=", or read --carrier weight alone") or error from None
    return suspect, model_digest(state), reading


def _keep(home: "Workspace", case: "Case", out: Path | None, *, force: bool) -> tuple[Path, list[str]]:
    """Write the evidence into the workspace, then to `out`: where to point at, and what did not work."""
    from zktrace.primitives.files import write_atomic

    data, kept = case.evidence.to_bytes(), free_case_path(home, case.place)
    warnings = _tried(lambda: write_atomic(kept, data, secret=True))
    if out is None:
        return kept, warnings
    failed = _tried(lambda: write_atomic(out, data, secret=True, replace=force))
    return kept if failed else out, warnings + failed


def free_case_path(home: "Workspace", place: int) -> Path:
    """Where the evidence of an investigation is kept."""
    kept = home.cases_folder() / f"case-{place}.zkt.json"
    while os.path.lexists(kept):  # of a log that was set back
        kept = kept.with_name(f"again-{kept.name}")
    return kept


def keep_leads(home: "Workspace", case: "Case") -> tuple[Path | None, list[str]]:
    """Leads are kept beside the code key, so that the operator need not pay for another look to see them."""
    from zktrace.primitives.files import write_atomic
    from zktrace.report.words import explain

    if not case.leads:
        return None, []
    kept = home.code_key_path.with_name(f"leads-{case.place}.txt")
    text = f"{explain(case, all_scores=True)}\n"
    failed = _tried(lambda: write_atomic(kept, text.encode(), secret=True, replace=True))
    return None if failed else kept, failed


def _tried(write: Callable[[], None]) -> list[str]:
    """Why it did not work, if it did not: after a verdict nothing may hide it."""
    try:
        write()
    except (Error, OSError) as error:
        return [str(error)]
    return []


def _write_report(
    page: Path,
    case: "Case",
    home: "Workspace",
    *,
    given: "tuple[str | Path, ...]",
    evidence: Path,
    force: bool,
    all_scores: bool,
) -> None:
    from zktrace.primitives.files import write_atomic
    from zktrace.report.case import case_html
    from zktrace.report.tracing import report_of

    shown = report_of(
        case,
        home.registry.ledger(),
        suspect=Path(given[1]),
        given=given,
        evidence=evidence,
        all_scores=all_scores,
    )
    write_atomic(page, case_html(shown).encode(), secret=True, replace=force)


def _facts(case: "Case", path: Path, reading: "Reading", *, all_scores: bool) -> dict[str, object]:
    from zktrace.report.facts import case_facts

    facts = case_facts(case, all_scores=all_scores)
    return {"ok": True, **facts, "unread": dict(reading.left), "evidence": str(path)}
