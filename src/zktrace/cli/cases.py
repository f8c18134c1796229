"""`zktrace cases`: every investigation on record, and where its evidence lies; evidence that was lost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zktrace.cli.network import FeaturesAt, NetworkAt, network_option
from zktrace.cli.options import Json, WorkspaceFolder, budget_option, workspace_at
from zktrace.cli.output import emit, say
from zktrace.cli.terminal import tell
from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from zktrace.registry.overview import CaseLine
    from zktrace.registry.workspace import Home

app = typer.Typer(invoke_without_command=True)

_SHORT: Final = 12  # characters of a digest
_LOST: Final = "evidence lost (zktrace cases rebuild {} SUSPECT)"
_OPEN: Final = "no verdict: interrupted, its budget is spent"


@app.callback()
def cases(context: typer.Context, workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """List the investigations: when, of what, at what price, how each ended, and its evidence."""
    if context.invoked_subcommand is None:
        found = [_facts(line, path) for line, path in _listed(workspace_at(workspace))]
        emit({"ok": True, "cases": found}, as_json=as_json, text=_table(found))
    elif workspace is not None or as_json:
        raise InputError(f"options stand after {context.invoked_subcommand}")


@app.command()
def rebuild(
    place: Annotated[int, typer.Argument(help="The investigation, by its place in the log.")],
    suspect: Annotated[Path | None, typer.Argument(help="The model that it looked at, once more.")] = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Instead: the scores, where it was only queried.")
    ] = None,
    level: Annotated[
        str, typer.Option("--level", help="Of an uncertified look: the --budget that it was given.")
    ] = "1e-3",
    network: NetworkAt = None,
    features: FeaturesAt = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Make lost evidence again, from the verdict on record, the workspace's secrets and the suspect.

    Nothing is put on record and nothing is spent. The suspect is read as the plan on record says, and must
    lead to the very findings whose digest the log has.
    """
    from zktrace.report.words import judge_command

    home, eps = workspace_at(workspace), budget_option(level)
    if not 0 < eps < 1:
        raise InputError(f"--level must lie between 0 and 1, not be {level}")
    kept = next((path for line, path in _listed(home) if line.place == place), None)
    if kept is not None:
        raise Refused(f"{kept}: is the evidence of entry {place}, nothing was lost")
    own = network_option(network, features)
    case = home.rebuild(place, suspect, scores=scores, level=eps, network=own)
    if case.path is None:
        raise Refused("; ".join(case.warnings))
    if as_json:
        facts = {
            "investigation": place,
            "verdict": str(case.verdict),
            "named": list(case.named),
            "head": case.evidence.head,
        }
        emit(
            {"ok": True, "evidence": str(case.path), "warnings": list(case.warnings), **facts},
            as_json=True,
            text="",
        )
        return
    tell(f"Rebuilt: {case.verdict}{': ' * bool(case.named)}{', '.join(case.named)}", strong=True)
    say(f"evidence  {case.path}\nhead      {case.evidence.head}")
    say(f"check it: {judge_command(case.case, evidence=case.path, given=case.given_to_judge())}")
    tell("\n".join(f"warning: {each}" for each in case.warnings))


def _listed(home: "Home") -> "list[tuple[CaseLine, Path | None]]":
    """Every investigation and its evidence, if it is there."""
    from zktrace.front.case import kept_evidence
    from zktrace.registry.overview import case_lines

    lines = case_lines(home.registry.ledger())
    return [(line, kept_evidence(home, line)) for line in lines]


def _facts(line: "CaseLine", evidence: Path | None) -> dict[str, object]:
    return line.as_json() | {"evidence": None if evidence is None else str(evidence)}


def _table(found: list[dict[str, object]]) -> str:
    if not found:
        return "no investigation is on record"
    lines = []
    for each in found:
        named = each["named"]
        names = f": {', '.join(named)}" if isinstance(named, list) and named else ""
        lines.append(
            f"{each['investigation']:>4}  {each['at']}  {str(each['suspect'])[:_SHORT]}  {each['release']}  "
            f"budget {each['budget']}"
        )
        lines.append(f"      {each['verdict'] or _OPEN}{names}")
        if each["verdict"] is not None:
            lines.append(f"      {each['evidence'] or _LOST.format(each['investigation'])}")
    return "\n".join(lines)
