"""`zktrace status`: what the workspace holds, and what is left of its budget."""

from typing import TYPE_CHECKING

from zktrace.cli.options import Json, WorkspaceFolder, workspace_at
from zktrace.cli.output import emit

if TYPE_CHECKING:
    from fractions import Fraction

    from zktrace.registry.ledger import Ledger
    from zktrace.registry.overview import Overview


def status(workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """Show stations, releases, copies, cases, the budget left, and the head of the log."""
    from dataclasses import asdict

    from zktrace.registry.overview import overview

    place = workspace_at(workspace)
    ledger = place.registry.ledger()
    found, head = overview(ledger), ledger.head.to_text()
    facts = {
        "ok": True,
        "workspace": str(place.root),
        **asdict(found),
        "budget": str(found.budget),
        "spent": str(found.spent),
        "left": str(found.left),
        "head": head,
    }
    emit(facts, as_json=as_json, text="\n".join(_lines(found, str(place.root), head)))


def _lines(found: "Overview", root: str, head: str) -> list[str]:
    names = ", ".join(
        f"{each.name} ({' + '.join(each.carriers)}: {each.copies} copies)" for each in found.releases
    )
    ends = [f"{found.certified} certified"] + [f"{found.open} without a verdict"] * bool(found.open)
    return [
        f"{root}  {found.title!r}",
        f"stations  {found.stations} enrolled, {found.revoked} of them revoked",
        f"releases  {names or 'none yet'}",
        f"copies    {found.copies} on record",
        *_signed(found),
        f"cases     {found.cases}, {', '.join(ends)}",
        f"budget    {found.spent} of {found.budget} spent, {left_text(found.left, found.ended_by)}",
        f"head      {head}",
    ]


def _signed(found: "Overview") -> list[str]:
    """Who signed for copies, release by release; nothing where there are none."""
    lines = []
    for each in found.releases:
        missing = max(each.stations - each.signed, len(each.unsigned))
        names = ", ".join(each.unsigned) + ", ..." * (missing > len(each.unsigned))
        if each.copies or each.signed:
            lines.append(
                f"receipts  {each.name}: {each.signed} signed" + (f", not: {names}" if each.unsigned else "")
            )
    return lines


def left_text(left: "Fraction", ended_by: int | None) -> str:
    """What of a budget can still be spent, in words."""
    if ended_by is not None:
        return f"nothing can be certified any more (entry {ended_by} looked without a budget)"
    return f"{left} left" if left else "nothing left"


def budget_line(spent: "Fraction", ledger: "Ledger") -> str:
    """The same after an investigation, for the last lines of `trace`."""
    from zktrace.registry.overview import ended_by

    return f"budget    {spent or 'nothing'} spent here; {left_text(ledger.remaining, ended_by(ledger))}"
