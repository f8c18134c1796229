"""What tables that compare carriers say, in sentences made from the same rows."""

from collections.abc import Iterable
from statistics import mean
from typing import Final

from zktrace.studies.carrier_tables import (
    PAPER_KDCLASS,
    PAPER_RECALL,
    PAPER_RUNS,
    PAPER_TWO,
    class_losses,
    column_of,
    kdclass_groups,
    mean_loss,
    shown_most,
)
from zktrace.studies.rows import Row
from zktrace.studies.tracing_phrases import NEAR, NO_ROWS, listed, place, set_beside, why
from zktrace.studies.tracing_rows import (
    CERTIFIED,
    averages,
    by_setting,
    costs,
    papers,
    rules_of,
)

_NEAR_POINTS: Final = 1.5  # points of accuracy that agree


def twocarrier_words(rows: Iterable[Row]) -> str:
    """Of what carriers withstand and cost."""
    rows = list(rows)
    paid, lines = costs(rows), []
    for setting, leaks in averages(by_setting(rows)).items():
        paper = PAPER_TWO.get(setting.papers)
        price = [row.outcome["mean_cost_pp"] for row in paid.get(setting, [])]
        if paper and price and setting.usual and not setting.ours:
            most = shown_most(leaks, paper.rule if paper.rule in rules_of(leaks) else CERTIFIED)
            cost = set_beside(mean(price), paper.cost, near=_NEAR_POINTS)
            where = f"{setting.carriers}, {place(setting)}"
            lines.append(
                f"{where}: all are traced up to {most} (paper: {paper.most}), a copy costs {cost} points"
            )
    if not lines:
        return NO_ROWS
    ours = [row.outcome["mean_cost_pp"] for each, some in paid.items() if each.ours for row in some]
    cheap = f" A copy in our profile costs {min(ours):.2f} to {max(ours):.2f} points." if ours else ""
    same = " The shared model is the same before and after."
    return f"In the paper's profile, {'; '.join(lines)}.{cheap}{same}{why(rows)}"


def kdclass_words(rows: Iterable[Row]) -> str:
    """Of the feature carrier after distillation."""
    groups = kdclass_groups(rows)
    alike, unlike = list[str](), list[str]()
    for attacker, (words, _, paper) in PAPER_KDCLASS.items():
        rows_of = [row for (_, who, _), some in groups.items() if who == attacker for row in some["paper"]]
        told = column_of(rows_of, "feature")
        if told:
            kept = sum(bool(each["caught"]) and not each["framed"] for each in told)
            same = abs(kept / len(told) - paper / PAPER_RUNS) <= NEAR
            (alike if same else unlike).append(f"{words} {kept}/{len(told)} ({paper}/{PAPER_RUNS})")
    if not alike and not unlike:
        return NO_ROWS
    first = f"As in the paper: {listed(alike)}." if alike else "No class of students does as in the paper."
    differ = f" Not as in the paper: {listed(unlike)}." if unlike else ""
    why = " Ours are named under a certificate, of fewer epochs; the paper's by a threshold, of 80."
    return (
        f"Named by the feature carrier in the paper's profile (and the paper's count). {first}{differ}{why}"
    )


def copy_cost_words(rows: Iterable[Row]) -> str:
    """Of recall by class."""
    paid, lines, ours = costs(rows), [], list[float]()
    for setting, found in paid.items():
        told = [row for row in found if "recall" in row.outcome]
        if not told:
            continue
        lost = mean(mean_loss(row) for row in told)
        if setting.ours:
            ours.append(lost)
            continue
        names = dict.fromkeys(name for row in told for name in row.outcome["recall"]["classes"])
        losses = [mean(class_losses(told, name)) for name in names]
        before, after = PAPER_RECALL[papers(setting.dataset)]
        theirs = 100 * (before - after)
        where = f"{setting.carriers}, {place(setting)}"
        span = f"{min(losses):.1f} to {max(losses):.1f} by class"
        lines.append(f"{where}: {set_beside(lost, theirs, near=_NEAR_POINTS)} points of recall, {span}")
    if not lines and not ours:
        return NO_ROWS
    first = f"In the paper's profile copies lose, on {'; on '.join(lines)}." if lines else ""
    second = f" In ours they lose {min(ours):.1f} to {max(ours):.1f} points on average." if ours else ""
    return f"{first}{second} The shared model stands for the paper's clean control.".strip()
