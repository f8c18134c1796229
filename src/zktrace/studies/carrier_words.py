"""What tables that compare carriers say, in sentences made from the same rows."""

from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Any, Final

from zktrace.studies.carrier_tables import (
    PAPER_KDCLASS,
    PAPER_RECALL,
    PAPER_RUNS,
    PAPER_TWO,
    TARGET,
    TARGETS,
    TOGETHER,
    class_losses,
    column_of,
    kdclass_groups,
    mean_loss,
    shown_most,
    target,
)
from zktrace.studies.cells import DATASETS, papers
from zktrace.studies.rows import Row
from zktrace.studies.tracing_phrases import NEAR, NO_ROWS, listed, place, why
from zktrace.studies.tracing_rows import (
    CERTIFIED,
    Setting,
    averages,
    by_setting,
    costs,
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
            cost = priced(mean(price), paper.cost)
            where = f"{setting.carriers}, {place(setting)}"
            lines.append(f"{where}: all are traced up to {most} (paper: {paper.most}), a copy {cost}")
    if not lines:
        return NO_ROWS
    ours = [_cost(some) for each, some in paid.items() if each.ours and each.usual]
    ends = f"{priced(min(ours))} at best and {priced(max(ours))} at worst" if ours else ""
    cheap = f" In our profile a copy {ends}." if ours else ""
    same = " The shared model is the same before and after."
    return f"In the paper's profile, {'; '.join(lines)}.{_gained(paid)}{cheap}{same}{why(rows)}"


def priced(points: float, theirs: float | None = None) -> str:
    """What a copy costs or gains, with the paper's cost beside it."""
    kind = "gains" if points < 0 else "costs"
    shown = f"{kind} {abs(points):.2f} points"
    if theirs is None:
        return shown
    if points < 0:
        return f"{shown} (paper: costs {theirs:.2f})"
    near = abs(points - theirs) <= _NEAR_POINTS
    how = "about" if near else "more than" if points > theirs else "less than"
    return f"{shown} ({how} the paper's {theirs:.2f})"


def _cost(rows: list[Row]) -> float:
    return float(mean(row.outcome["mean_cost_pp"] for row in rows))


def _gained(paid: Mapping[Setting, list[Row]]) -> str:
    """Why a copy may be better than the shared model; empty where none is."""
    theirs = {each: some for each, some in paid.items() if each.usual and not each.ours}
    if all(_cost(some) >= 0 for some in theirs.values()):
        return ""
    episodes = sorted({row.trial["settings"]["episodes"] for some in theirs.values() for row in some})
    many = "/".join(map(str, episodes))
    return (
        f" Copies in the paper's profile train on for {many} episodes with the server's images, which "
        "improves a model that was trained for a short time."
    )


def kdclass_words(rows: Iterable[Row]) -> str:
    """Of the feature carrier after distillation."""
    groups = kdclass_groups(rows)
    alike, unlike = list[str](), list[str]()
    for attacker, (words, _, paper) in PAPER_KDCLASS.items():
        rows_of = [row for (_, who, _), some in groups.items() if who == attacker for row in some["paper"]]
        told = column_of(rows_of, "feature")
        if told:
            kept = sum(map(_owner, told))
            same = round(abs(kept / len(told) - paper / PAPER_RUNS), 6) <= NEAR
            (alike if same else unlike).append(f"{words} {kept}/{len(told)} ({paper}/{PAPER_RUNS})")
    if not alike and not unlike:
        return NO_ROWS
    first = f"As in the paper: {listed(alike)}." if alike else "No class of students does as in the paper."
    differ = f" Not as in the paper: {listed(unlike)}." if unlike else ""
    why = " Ours are named under a certificate, of fewer epochs; the paper's by a threshold, of 80."
    return (
        f"Named by the feature carrier in the paper's profile (and the paper's count). {first}{differ}{why}"
        f"{_escapes(groups)}"
    )


def _escapes(groups: Mapping[tuple[str, str, str], Mapping[str, list[Row]]]) -> str:
    """Whose owner is not named in our profile, by all carriers together, or somebody else too."""
    missed, tried = [], 0
    for (dataset, attacker, way), found in groups.items():
        named = [(row, _owner(row.outcome["columns"]["all"])) for row in found.get("informed", [])]
        tried += len(named)
        seeds = ", ".join(str(row.trial["seed"]) for row, kept in named if not kept)
        if seeds:
            lost = f"{sum(not kept for _, kept in named)}/{len(named)} by"
            missed.append(f"{lost} {PAPER_KDCLASS[attacker][0]}{way} on {DATASETS[dataset]} (seed {seeds})")
    if not tried:
        return ""
    who = f"owners escape: {'; '.join(missed)}" if missed else "nobody escapes"
    return f" In our profile, read on all carriers, {who}."


def _owner(column: Mapping[str, Any]) -> bool:
    return bool(column["caught"]) and not column["framed"]


def copy_cost_words(rows: Iterable[Row]) -> str:
    """Of recall by class, and of our targets."""
    paid = {each: some for each, some in costs(rows).items() if each.usual}
    lines = []
    for setting, found in paid.items():
        told = [row for row in found if "recall" in row.outcome]
        if not told or setting.ours:
            continue
        names = dict.fromkeys(name for row in told for name in row.outcome["recall"]["classes"])
        losses = [mean(class_losses(told, name)) for name in names]
        before, after = PAPER_RECALL[papers(setting.dataset)]
        lost = priced(mean(mean_loss(row) for row in told), 100 * (before - after))
        where = f"{setting.carriers}, {place(setting)}"
        span = f"from {_changed(min(losses))} to {_changed(max(losses))} by class"
        lines.append(f"{where}: {lost}, {span}")
    if not paid:
        return NO_ROWS
    first = f"What copies in the paper's profile cost in recall: {'; '.join(lines)}." if lines else ""
    last = " The shared model stands for the paper's clean control."
    return f"{first}{_gained(paid)}{_targets(paid)}{last}".strip()


def _changed(points: float) -> str:
    return f"{abs(points):.1f} {'gained' if points < 0 else 'lost'}"


def _targets(paid: Mapping[Setting, list[Row]]) -> str:
    """Our copies by carrier and all together, beside what we want them to cost, and who misses it."""
    told, missed = dict[str, list[str]](), []
    for setting, found in paid.items():
        if setting.ours:
            told.setdefault(place(setting), []).append(f"{_called(setting)} {priced(_cost(found))}")
            if _cost(found) > target(setting.carriers):
                beyond = f"{_cost(found):.2f} instead of {target(setting.carriers):g}"
                missed.append(f"{_called(setting)} on {place(setting)} ({beyond})")
    if not told:
        return ""
    others = "".join(f", {points:g} for {name}" for name, points in TARGETS.items())
    asked = f"{TARGET:g} points a carrier{others}, {TOGETHER:g} for all at once"
    every = "; ".join(f"on {where} {listed(some)}" for where, some in told.items())
    who = f"It is missed by {listed(missed)}." if missed else "None misses it."
    return f" Mean cost of a copy in our profile, in accuracy: {every}. Our target is at most {asked}. {who}"


def _called(setting: Setting) -> str:
    return f"all at once ({setting.carriers})" if "+" in setting.carriers else setting.carriers
