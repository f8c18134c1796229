"""`zktrace cases`: every investigation on record, and where its evidence lies."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from zktrace.cli.output import Json, emit
from zktrace.cli.registry import WorkspaceFolder, workspace_at
from zktrace.errors import Error

if TYPE_CHECKING:
    from zktrace.registry.overview import CaseLine

_SHORT: Final = 12  # characters of a digest
_LOST: Final = "evidence lost"
_OPEN: Final = "no verdict: interrupted, its budget is spent"


def cases(workspace: WorkspaceFolder = None, as_json: Json = False) -> None:
    """List the investigations: when, of what, at what price, how each ended, and its evidence."""
    from zktrace.registry.overview import case_lines

    place = workspace_at(workspace)
    registry = place.registry
    ledger = registry.ledger()
    lines = case_lines(ledger, registry.entries())
    found = [_facts(line, _evidence(place.root / "cases", line)) for line in lines]
    emit({"ok": True, "cases": found}, as_json=as_json, text=_table(found))


def _facts(line: "CaseLine", evidence: Path | None) -> dict[str, object]:
    case, verdict = line.investigation, line.verdict
    return {
        "investigation": line.place,
        "at": line.at,
        "suspect": case.suspect.hex(),
        "release": case.release,
        "budget": str(case.budget),
        "verdict": None if verdict is None else verdict.verdict,
        "named": [] if verdict is None else list(verdict.named),
        "evidence": None if evidence is None else str(evidence),
    }


def _evidence(folder: Path, line: "CaseLine") -> Path | None:
    """The file in cases/ whose findings are those on record; one of another log does not count."""
    from zktrace.evidence.file import FILE_LIMIT, Evidence
    from zktrace.primitives.files import read_bounded

    if line.verdict is None:
        return None
    for path in sorted(folder.glob(f"*case-{line.place}.zkt.json"), key=lambda each: len(each.name)):
        try:
            found = Evidence.from_bytes(read_bounded(path, limit=FILE_LIMIT))
        except (Error, OSError):
            continue
        if found.findings.digest() == line.verdict.findings:
            return path
    return None


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
            lines.append(f"      {each['evidence'] or _LOST}")
    return "\n".join(lines)
