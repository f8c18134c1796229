"""What tables of leaked copies say, in sentences made from the same rows.

Each says what was found beside the paper's, then where both agree and where they differ, then what of the
rows may explain it. Nothing is concluded that rows do not hold.
"""

from collections.abc import Callable, Iterable, Mapping
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
    most_traced,
    shown_most,
)
from zktrace.studies.cells import DATASETS
from zktrace.studies.rows import Row
from zktrace.studies.tracing_rows import (
    CANDIDATE,
    CERTIFIED,
    NORMAL,
    RULES,
    LeakRow,
    Setting,
    by_setting,
    costs,
    count,
    papers,
    per_seed,
    rate,
    rules_of,
)
from zktrace.studies.tracing_tables import PAPER_AUDIT, PAPER_ISOLATION, TEN, paper_collusion

_NEAR: Final = 0.05  # rates that differ by no more agree
_NEAR_POINTS: Final = 1.5  # points of accuracy that do
_SCALES: Final = 75  # of a ResNet-18, times its width
_WIDTH, _EPISODES = 64, 300  # the paper's
_NO_ROWS: Final = "No rows tell of this yet."


def isolation_words(rows: Iterable[Row]) -> str:
    """Of single copies."""
    rows = list(rows)
    told, apart = [], []
    groups = _alone(by_setting(rows), 1)
    for setting, leaks in groups.items():
        if _ours(setting):
            continue
        rule = NORMAL if NORMAL in rules_of(leaks) else CERTIFIED
        paper = PAPER_ISOLATION.get((*setting.papers, setting.stations))
        beside = f" (paper: {paper[0]})" if paper else ""
        where = f"by {setting.carriers} on {_place(setting)}, {RULES[rule]}"
        told.append(f"{count(leaks, rule)} copies {where}{beside}")
        q = per_seed((each.seed, each.decode.get("disagreement")) for each in leaks)
        if paper and q:
            near = _beside(mean(q), float(paper[1]))
            apart.append(f"{near} by {setting.carriers} on {_place(setting)}")
    if not told:
        return _NO_ROWS
    ours = _pooled(groups)
    first = f"In the paper's profile the owner of {_and(told)} is isolated."
    owner = f" Its row is not what is read in a part of the positions: {_and(apart)}." if apart else ""
    beside = f" Our profile, under its certificate, isolates {_and(ours)}." if ours else ""
    return f"{first}{owner}{beside}{_framed(each for some in groups.values() for each in some)}{_why(rows)}"


def collusion_words(rows: Iterable[Row]) -> str:
    """Of averaged copies."""
    rows = list(rows)
    groups = by_setting(rows)
    some = [each for leaks in groups.values() for each in leaks if each.size > 1]
    if not some:
        return _NO_ROWS
    agreed, unlike = 0, list[str]()
    for setting, leaks in groups.items():
        for rule in (NORMAL, CANDIDATE):
            pairs = _rates(setting, leaks, rule)
            apart = {size: pair for size, pair in pairs.items() if abs(pair[0] - pair[1]) > _NEAR}
            agreed += len(pairs) - len(apart)
            cells = [f"k = {size} {ours:.2f} ({theirs:.2f})" for size, (ours, theirs) in apart.items()]
            if cells:
                where = f"{setting.carriers} on {_place(setting)} by the {rule} threshold"
                unlike.append(f"{where}: {_and(cells)}")
    first = f"Rates that agree with the paper's within {_NEAR}: {agreed}." if agreed or unlike else ""
    differ = f" Others do not (the paper's in brackets): {'; '.join(unlike)}." if unlike else ""
    best = _least(groups)
    ours = f" Our profile traces every coalition up to a size of {_and(best)}." if best else ""
    return f"{first}{differ}{ours}{_framed(some)}{_why(rows)}".strip()


def _rates(setting: Setting, leaks: list[LeakRow], rule: str) -> dict[int, tuple[float, float]]:
    """By size, ours and the paper's."""
    paper = paper_collusion(setting, rule)
    told = [each for each in leaks if each.named(rule) is not None]
    found = {size: rate((each for each in told if each.size == size), rule) for size in paper}
    return {size: (ours, paper[size]) for size, ours in found.items() if ours is not None}


def certified_audit_words(rows: Iterable[Row]) -> str:
    """Of single copies and pairs under a certificate."""
    rows = list(rows)
    groups, told = by_setting(rows), []
    for setting, leaks in groups.items():
        paper = PAPER_AUDIT.get(setting.papers)
        if paper and not _ours(setting):
            cells = [count([each for each in leaks if each.size == size], CERTIFIED) for size in (1, 2)]
            beside = f"(paper: {paper[0]} and {paper[1]})"
            where = f"by {setting.carriers} on {_place(setting)}"
            told.append(f"{cells[0]} single copies and {cells[1]} pairs {where} {beside}")
    if not told:
        return _NO_ROWS
    known = [leaks for each, leaks in groups.items() if each.papers in PAPER_AUDIT and not _ours(each)]
    decodes = [each.decode for leaks in known for each in leaks if each.size <= 2]
    passed = [each["certificate"] for each in decodes if "certificate" in each]
    first = f"The paper's rule with its certificate names a holder of {_and(told)}."
    gate = f" {sum(passed)} of {len(passed)} certificates of the positive tail pass." if passed else ""
    framed = sum(each.frames(CERTIFIED) for leaks in groups.values() for each in leaks if each.size <= 2)
    return f"{first}{gate} Innocents are named in {framed} decisions, our profile's among them.{_why(rows)}"


def twocarrier_words(rows: Iterable[Row]) -> str:
    """Of what carriers withstand and cost."""
    rows = list(rows)
    paid, lines = costs(rows), []
    for setting, leaks in by_setting(rows).items():
        paper = PAPER_TWO.get(setting.papers)
        price = [row.outcome["mean_cost_pp"] for row in paid.get(setting, [])]
        if paper and price and not _ours(setting):
            most = shown_most(leaks, paper.rule if paper.rule in rules_of(leaks) else CERTIFIED)
            cost = _beside(mean(price), paper.cost, near=_NEAR_POINTS)
            where = f"{setting.carriers}, {_place(setting)}"
            lines.append(
                f"{where}: all are traced up to {most} (paper: {paper.most}), a copy costs {cost} points"
            )
    if not lines:
        return _NO_ROWS
    ours = [row.outcome["mean_cost_pp"] for each, some in paid.items() if _ours(each) for row in some]
    cheap = f" A copy in our profile costs {min(ours):.2f} to {max(ours):.2f} points." if ours else ""
    same = " The shared model is the same before and after."
    return f"In the paper's profile, {'; '.join(lines)}.{cheap}{same}{_why(rows)}"


def kdclass_words(rows: Iterable[Row]) -> str:
    """Of the feature carrier after distillation."""
    groups = kdclass_groups(rows)
    alike, unlike = list[str](), list[str]()
    for attacker, (words, _, paper) in PAPER_KDCLASS.items():
        rows_of = [row for (_, who, _), some in groups.items() if who == attacker for row in some["paper"]]
        told = column_of(rows_of, "feature")
        if told:
            kept = sum(bool(each["caught"]) and not each["framed"] for each in told)
            same = abs(kept / len(told) - paper / PAPER_RUNS) <= _NEAR
            (alike if same else unlike).append(f"{words} {kept}/{len(told)} ({paper}/{PAPER_RUNS})")
    if not alike and not unlike:
        return _NO_ROWS
    first = f"As in the paper: {_and(alike)}." if alike else "No class of students does as in the paper."
    differ = f" Not as in the paper: {_and(unlike)}." if unlike else ""
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
        if _ours(setting):
            ours.append(lost)
            continue
        names = dict.fromkeys(name for row in told for name in row.outcome["recall"]["classes"])
        losses = [mean(class_losses(told, name)) for name in names]
        before, after = PAPER_RECALL[papers(setting.dataset)]
        theirs = 100 * (before - after)
        where = f"{setting.carriers}, {_place(setting)}"
        span = f"{min(losses):.1f} to {max(losses):.1f} by class"
        lines.append(f"{where}: {_beside(lost, theirs, near=_NEAR_POINTS)} points of recall, {span}")
    if not lines and not ours:
        return _NO_ROWS
    first = f"In the paper's profile copies lose, on {'; on '.join(lines)}." if lines else ""
    second = f" In ours they lose {min(ours):.1f} to {max(ours):.1f} points on average." if ours else ""
    return f"{first}{second} The shared model stands for the paper's clean control.".strip()


WORDS: Final[Mapping[str, Callable[[Iterable[Row]], str]]] = {
    "isolation": isolation_words,
    "collusion": collusion_words,
    "certified-audit": certified_audit_words,
    "twocarrier": twocarrier_words,
    "kdclass": kdclass_words,
    "copy-cost": copy_cost_words,
}


def _ours(setting: Setting) -> bool:
    return setting.profile != "paper"


def _place(setting: Setting) -> str:
    """Data, for a sentence: simulated data are called so. Stations, where they are not the usual ten."""
    kind, _, how = DATASETS[setting.dataset].partition(", ")
    many = "" if setting.stations == TEN else f" with {setting.stations} stations"
    return f"{f'{how} {kind}' if how else kind}{many}"


def _and(parts: Iterable[str]) -> str:
    *some, last = parts
    return f"{', '.join(some)} and {last}" if some else last


def _beside(ours: float, theirs: float, *, near: float = _NEAR) -> str:
    """A number, and whether the paper's is near."""
    if abs(ours - theirs) <= near:
        return f"{ours:.2f} (about the paper's {theirs:.2f})"
    return f"{ours:.2f} ({'more' if ours > theirs else 'less'} than the paper's {theirs:.2f})"


def _framed(leaks: Iterable[LeakRow]) -> str:
    """In how many somebody innocent is named."""
    found = [any(each.frames(rule) for rule in rules_of([each])) for each in leaks]
    return f" An innocent is named in {sum(found)} of {len(found)} decodes, by whatever rule."


def _alone(groups: Mapping[Setting, list[LeakRow]], size: int) -> dict[Setting, list[LeakRow]]:
    """Leaks of one size."""
    found = {key: [each for each in leaks if each.size == size] for key, leaks in groups.items()}
    return {key: leaks for key, leaks in found.items() if leaks}


def _of_ours(groups: Mapping[Setting, list[LeakRow]]) -> dict[str, list[list[LeakRow]]]:
    """Leaks of our profile by carriers, a list for each data set."""
    found: dict[str, list[list[LeakRow]]] = {}
    for setting, leaks in groups.items():
        if _ours(setting):
            found.setdefault(setting.carriers, []).append(leaks)
    return found


def _pooled(groups: Mapping[Setting, list[LeakRow]]) -> list[str]:
    """Our profile's counts, all data together."""
    return [
        f"{count((each for leaks in some for each in leaks), CERTIFIED)} by {carriers}"
        for carriers, some in _of_ours(groups).items()
    ]


def _least(groups: Mapping[Setting, list[LeakRow]]) -> list[str]:
    """Our profile's greatest sizes, on the data where they are least."""
    return [
        f"{min(most_traced(leaks, CERTIFIED) or 0 for leaks in some)} by {carriers}"
        for carriers, some in _of_ours(groups).items()
    ]


def _why(rows: Iterable[Row]) -> str:
    """What sets these federations apart from the paper's, as far as rows tell."""
    trials = [
        row.trial for row in rows if row.trial["study"] == "tracing" and row.trial["profile"] == "paper"
    ]
    if not trials:
        return ""
    widths, episodes = {each["width"] for each in trials}, {each["settings"]["episodes"] for each in trials}
    told = []
    if widths != {_WIDTH}:
        room = "/".join(f"{_SCALES * each:,}" for each in sorted(widths))
        told.append(f"networks here have {room} scales (paper: {_SCALES * _WIDTH:,})")
    if episodes != {_EPISODES}:
        told.append(f"copies {'/'.join(map(str, sorted(episodes)))} episodes (paper: {_EPISODES})")
    return f" What may explain a difference: {_and(told)}." if told else ""
