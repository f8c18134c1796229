"""`zktrace trace`: whose copy a suspect is."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zktrace.cli.budget import check_budget, confirm_uncertified
from zktrace.cli.carriers import carrier_choice, carriers_of
from zktrace.cli.network import FeaturesAt, NetworkAt, network_option
from zktrace.cli.options import Force, Json, WorkspaceFolder, budget_option, workspace_at
from zktrace.cli.output import check_free, emit, say
from zktrace.cli.status import budget_line
from zktrace.cli.terminal import tell
from zktrace.errors import InputError, MissingExtra, Refused

if TYPE_CHECKING:
    from zktrace.front.case import TracedCase

LEAD = 3
NOTHING = 4
_REMARKS: Final = 8  # lines that are shown
_EXITS: Final = {"uncertified-lead": LEAD, "no-certified-evidence": NOTHING}


def trace(
    suspect: Annotated[
        Path | None, typer.Argument(help="The leaked model: a file, or a folder of shards.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="Instead: what a model that can only be queried said of the probes."),
    ] = None,
    carrier: Annotated[
        str | None,
        typer.Option(
            "--carrier",
            click_type=carrier_choice(),
            help="Where to read it (default: wherever copies are marked).",
        ),
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
    network: NetworkAt = None,
    features: FeaturesAt = None,
    force: Force = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Score a suspect against every enrolled station; name one only under a certificate.

    It is read as it is; only if that certifies nobody, its channels or features are aligned with the shared
    model first. The plan of these looks and their shares of the budget are on record before any of them.

    Exit 0: certified, 3: a lead, 4: no evidence.
    """
    home = workspace_at(workspace)
    eps = budget_option(budget)
    if not 0 < eps < 1:
        raise InputError(f"--budget must lie between 0 and 1, not be {budget}")
    _check_outputs(suspect or scores, out, page, force=force)
    own = network_option(network, features)
    ledger = home.registry.ledger()
    if uncertified:
        confirm_uncertified(ledger, yes=yes)
    else:
        check_budget(ledger, eps)
    try:
        case = home.trace(
            suspect,
            scores=scores,
            budget=eps,
            release=release if own is None else home.leaked(release, network=own),
            carriers=None if carrier is None else carriers_of(carrier),
            align=align,
            certify=not uncertified,
        )
    except MissingExtra as error:
        raise InputError(f"{error}, or read --carrier spread or weight alone") from None
    path, warnings = _copied(case, out, force=force)
    if page is not None:
        from zktrace.front.case import tried

        warnings += tried(lambda: case.report(page, replace=force, all_scores=all_scores))
    _tell(case, path, warnings, all_scores=all_scores, as_json=as_json)
    raise typer.Exit(_EXITS.get(str(case.verdict), 0))


def _tell(case: "TracedCase", path: Path, warnings: list[str], *, all_scores: bool, as_json: bool) -> None:
    """The verdict, where the evidence is, and what a judge is asked."""
    from zktrace.report.facts import case_facts
    from zktrace.report.words import SCORES_ARE_SECRETS, judge_command

    warnings += [SCORES_ARE_SECRETS] if all_scores else []
    now = case.home.registry.known().ledger
    if as_json:
        facts = {"ok": True, **case_facts(case.case, all_scores=all_scores), "unread": dict(case.unread)}
        facts["remarks"] = [f"{carrier}, {each}" for carrier, each in case.remarks]
        emit(
            facts | {"evidence": str(path), "warnings": warnings, "left": str(now.remaining)},
            as_json=True,
            text="",
        )
        return
    headline, _, rest = case.explain(all_scores=all_scores).partition("\n")
    unread = (f"{carrier} could not be read: {reason}" for carrier, reason in case.unread)
    files = [f"evidence  {path}", f"head      {case.evidence.head}"]
    files += [f"leads     {case.leads} (a secret)"] if case.leads is not None else []
    files.append(budget_line(case.case.investigation.budget, now))
    tell(headline, strong=True)
    tell("\n".join((rest, *unread, *_some(case.remarks), "")))
    command = judge_command(case.case, evidence=path, given=case.given_to_judge())
    say("\n".join((*files, f"check it: {command}")))
    tell("\n".join(f"warning: {each}" for each in warnings))


def _some(remarks: Sequence[tuple[str, str]]) -> list[str]:
    """How parts of the suspect were found: the first few."""
    lines = [f"{carrier}, {each}" for carrier, each in remarks[:_REMARKS]]
    more = len(remarks) - len(lines)
    return [*lines, f"and {more} more (--json has all)"] if more else lines


def _copied(case: "TracedCase", out: Path | None, *, force: bool) -> tuple[Path, list[str]]:
    """A copy of the evidence: where to point at, and what did not work."""
    from zktrace.front.case import free_case_path, tried
    from zktrace.primitives.files import write_atomic

    kept, warnings = case.path, list(case.warnings)
    if out is None:
        return kept or free_case_path(case.home, case.case.place), warnings
    failed = tried(lambda: write_atomic(out, case.evidence.to_bytes(), secret=True, replace=force))
    return kept if failed and kept is not None else out, warnings + failed


def _check_outputs(source: Path | None, out: Path | None, page: Path | None, *, force: bool) -> None:
    """What would keep the evidence or the report from being written is said before the budget is spent."""
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
