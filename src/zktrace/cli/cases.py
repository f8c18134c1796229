"""`zktrace cases`: every investigation on record and its evidence; what was lost or interrupted."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zktrace.cli.network import FeaturesAt, NetworkAt, network_option
from zktrace.cli.options import Json, WorkspaceFolder, budget_option, workspace_at
from zktrace.cli.output import emit, say
from zktrace.cli.terminal import tell
from zktrace.errors import InputError, Refused

if TYPE_CHECKING:
    from zktrace.front.case import TracedCase
    from zktrace.registry.overview import CaseLine
    from zktrace.registry.workspace import Home

app = typer.Typer(invoke_without_command=True)

_SHORT: Final = 12  # characters of a digest
_LOST: Final = "evidence lost (zktrace cases rebuild {} SUSPECT)"
_OPEN: Final = "no verdict: interrupted, its budget is spent"
_GOES_ON: Final = "carry on to the verdict: zktrace cases resume {} SUSPECT"


@app.callback()
def cases(context: typer.Context, workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """List the investigations: when, of what, at what price, how each ended, and its evidence."""
    if context.invoked_subcommand is None:
        found = [_facts(line, path) for line, path in _listed(workspace_at(workspace))]
        emit({"ok": True, "cases": found}, as_json=as_json, text=_table(found))
    elif workspace is not None or as_json:
        raise InputError(f"options stand after {context.invoked_subcommand}")


Place = Annotated[int, typer.Argument(help="The investigation, by its place in the log.")]
Again = Annotated[Path | None, typer.Argument(help="The model that it looked at, once more.")]
ScoresOf = Annotated[
    Path | None, typer.Option("--scores", help="Instead: the scores, where it was only queried.")
]
Level = Annotated[
    str, typer.Option("--level", help="Of an uncertified look: the --budget that it was given.")
]


@app.command()
def rebuild(
    place: Place,
    suspect: Again = None,
    scores: ScoresOf = None,
    level: Level = "1e-3",
    network: NetworkAt = None,
    features: FeaturesAt = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Make lost evidence again, from the verdict on record, the workspace's secrets and the suspect.

    Nothing is put on record and nothing is spent. The suspect is read as the plan on record says, and must
    lead to the very findings whose digest the log has.
    """
    home, eps = workspace_at(workspace), _level(level)
    kept = next((path for line, path in _listed(home) if line.place == place), None)
    if kept is not None:
        raise Refused(f"{kept}: is the evidence of entry {place}, nothing was lost")
    own = network_option(network, features)
    case = home.rebuild(place, suspect, scores=scores, level=eps, network=own)
    if case.path is None:
        raise Refused("; ".join(case.warnings))
    _told(case, "Rebuilt", as_json=as_json)


@app.command()
def resume(
    place: Place,
    suspect: Again = None,
    scores: ScoresOf = None,
    level: Level = "1e-3",
    network: NetworkAt = None,
    features: FeaturesAt = None,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Carry an investigation that was interrupted to its verdict, as it was planned on record.

    It was paid for before it was interrupted: nothing is spent. The verdict goes on record, and the evidence
    is kept like that of any other.
    """
    home, eps = workspace_at(workspace), _level(level)
    if place in home.registry.ledger().verdicts:
        raise Refused(f"the investigation of entry {place} has its verdict already (zktrace cases rebuild)")
    own = network_option(network, features)
    _told(home.resume(place, suspect, scores=scores, level=eps, network=own), "Resumed", as_json=as_json)


def _level(text: str) -> Fraction:
    eps = budget_option(text)
    if not 0 < eps < 1:
        raise InputError(f"--level must lie between 0 and 1, not be {text}")
    return eps


def _told(case: "TracedCase", what: str, *, as_json: bool) -> None:
    """How it ended, and what a judge is given."""
    from zktrace.report.words import judge_command

    if as_json:
        facts = {
            "investigation": case.case.place,
            "verdict": str(case.verdict),
            "named": list(case.named),
            "head": case.evidence.head,
        }
        kept = None if case.path is None else str(case.path)
        emit({"ok": True, "evidence": kept, "warnings": list(case.warnings), **facts}, as_json=True, text="")
        return
    tell(f"{what}: {case.verdict}{': ' * bool(case.named)}{', '.join(case.named)}", strong=True)
    if case.path is not None:
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
        further = _GOES_ON if each["verdict"] is None else _LOST
        lines.append(f"      {each['evidence'] or further.format(each['investigation'])}")
    return "\n".join(lines)
