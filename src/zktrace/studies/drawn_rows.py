"""Which rows an exhibit shows: what it says about what was run counts these alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from zktrace.studies.attack_tables import PAPER_ATTACKS
from zktrace.studies.carrier_tables import PAPER_KDCLASS
from zktrace.studies.cells import papers
from zktrace.studies.identity_cells import GROUP, STRESSED, WITHOUT, pairs
from zktrace.studies.rows import Row
from zktrace.studies.strategy_tables import compared
from zktrace.studies.tracing_figure import drawn
from zktrace.studies.tracing_rows import AVERAGE, Setting, size_of

Shown: TypeAlias = Callable[[Row], bool]
Pick: TypeAlias = Callable[[Sequence[Row]], list[Row]]


def _only(holds: Shown) -> Pick:
    return lambda rows: [row for row in rows if holds(row)]


# ── federations ────────────────────────────────────────────────────────────────────────────────────────────


def _marked(*variants: str) -> Shown:
    """Federations with marks, as they are or under such stress."""

    def holds(row: Row) -> bool:
        variant = row.trial.get("variant", WITHOUT)
        return bool(row.outcome.get("marked", True)) and (not variant or variant.startswith(variants))

    return holds


def _attributed(row: Row) -> bool:
    if row.trial["study"] == "baselines":
        return bool(row.trial["system"] == GROUP and row.trial["part"] == "marks")
    return _marked()(row)


def _paired(rows: Sequence[Row]) -> list[Row]:
    held = {id(row) for found in pairs(rows).values() for both in found for row in both}
    return [row for row in rows if id(row) in held]


# ── copies ─────────────────────────────────────────────────────────────────────────────────────────────────


def _leaked(sizes: Callable[[int], bool]) -> Shown:
    """Coalitions of such sizes that average, and what copies cost."""

    def holds(row: Row) -> bool:
        if Setting.of(row.trial).strategy != AVERAGE:
            return False
        return row.trial["part"] == "cost" or sizes(size_of(row))

    return holds


def _figure(row: Row) -> bool:
    if row.trial["study"] == "baselines":
        return (row.trial["system"], row.trial["part"]) == ("deepmarks", "coalitions")
    return drawn(row)


def _carriers(row: Row) -> bool:
    """One carrier each; students of copies."""
    trial = row.trial
    if trial["study"] == "attacks":
        return _student_of_a_copy(row)
    setting = Setting.of(trial)
    return setting.plain and "+" not in setting.carriers


def _costs(row: Row) -> bool:
    return (
        row.trial["part"] == "cost" and "recall" in row.outcome and Setting.of(row.trial).strategy == AVERAGE
    )


def _strategies(rows: Sequence[Row]) -> list[Row]:
    found = compared(rows)
    leaked = [row for row in rows if row.trial["part"] != "cost"]
    return [row for row in leaked if Setting.of(row.trial) in found and size_of(row) > 1]


# ── attacks ────────────────────────────────────────────────────────────────────────────────────────────────


def _student_of_a_copy(row: Row) -> bool:
    return bool(row.trial["family"] == "distill") and not _identity(row)


def _identity(row: Row) -> bool:
    return bool(row.trial["target"] == "identity")


def _students(row: Row) -> bool:
    """Of published systems, and of our copies."""
    trial = row.trial
    ours = trial["study"] == "attacks" and _student_of_a_copy(row)
    return ours or bool(trial.get("part") == "distillation")


def _of_the_paper(row: Row) -> bool:
    cells = PAPER_ATTACKS[papers(row.trial["dataset"])]
    return _identity(row) and any(cell.about(row.trial) for cell in cells)


_TABLES: Final[Mapping[str, Pick]] = {
    "attribution": _only(_attributed),
    "survival": _only(_marked("stations-")),
    "noniid": _only(_marked("alpha-", "participation-")),
    "stressors": _only(_marked(*STRESSED)),
    "utility": _paired,
    "featurespace": _paired,
    "isolation": _only(_leaked(lambda size: size == 1)),
    "collusion": _only(_leaked(lambda size: size > 1)),
    "certified-audit": _only(_leaked(lambda size: size <= 2)),
    "twocarrier": _only(_carriers),
    "copy-cost": _only(_costs),
    "strategies": _strategies,
    "attacks": _only(_identity),
    "attacks-carriers": _only(lambda row: not _identity(row)),
    "kdclass": _only(lambda row: row.trial["attacker"] in PAPER_KDCLASS),
    "kd": _only(_students),
    "stability": _only(lambda row: "stability" in row.outcome),
}
_FIGURES: Final[Mapping[str, Pick]] = {
    "survival": _only(_marked("stations-")),
    "tracing": _only(_figure),
    "tradeoff": _only(_of_the_paper),
}


def shown(kind: str, name: str, rows: Iterable[Row]) -> list[Row]:
    """The rows that a table or a figure has, of those of its studies."""
    found = list(rows)
    pick = (_FIGURES if kind == "figure" else _TABLES).get(name)
    return found if pick is None else pick(found)
