"""What tables of leaked copies say, in sentences made from the same rows.

Each says what was found beside the paper's, then where both agree and where they differ, then what of the
rows may explain it. Nothing is concluded that rows do not hold.
"""

from collections.abc import Iterable, Mapping
from statistics import mean

from zktrace.studies.carrier_tables import most_traced
from zktrace.studies.rows import Row
from zktrace.studies.tracing_phrases import NEAR, NO_ROWS, listed, place, set_beside, why
from zktrace.studies.tracing_rows import (
    CANDIDATE,
    CERTIFIED,
    NORMAL,
    RULES,
    LeakRow,
    Setting,
    averages,
    by_setting,
    count,
    per_seed,
    rate,
    rules_of,
)
from zktrace.studies.tracing_tables import PAPER_AUDIT, PAPER_ISOLATION, SIZES, paper_collusion


def isolation_words(rows: Iterable[Row]) -> str:
    """Of single copies."""
    rows = list(rows)
    told, apart = [], []
    groups = _alone(averages(by_setting(rows)), 1)
    for setting, leaks in groups.items():
        if setting.ours or not setting.plain:
            continue
        rule = NORMAL if NORMAL in rules_of(leaks) else CERTIFIED
        paper = PAPER_ISOLATION.get((*setting.papers, setting.stations))
        beside = f" (paper: {paper[0]})" if paper else ""
        where = f"by {setting.carriers} on {place(setting)}, {RULES[rule]}"
        told.append(f"{count(leaks, rule)} copies {where}{beside}")
        q = per_seed((each.seed, each.decode.get("disagreement")) for each in leaks)
        if paper and q:
            near = set_beside(mean(q), float(paper[1]))
            apart.append(f"{near} by {setting.carriers} on {place(setting)}")
    if not told:
        return NO_ROWS
    ours = _pooled(_usual(groups))
    first = f"In the paper's profile the owner of {listed(told)} is isolated."
    q_owner = "the share of positions in which its row is not what is read"
    owner = f" q_owner, {q_owner}, is {listed(apart)}." if apart else ""
    beside = f" Our profile, under its certificate, isolates {listed(ours)}." if ours else ""
    more = f"{_crowds(groups)}{_shifted(groups)}"
    framed = _framed(each for some in groups.values() for each in some)
    return f"{first}{owner}{beside}{more}{framed}{why(rows)}"


def _crowds(groups: Mapping[Setting, list[LeakRow]]) -> str:
    """Our profile's with more stations than usual, each by itself."""
    told = [
        f"{count(leaks, CERTIFIED)} by {each.carriers} on {place(each)}"
        for each, leaks in groups.items()
        if each.ours and each.plain and not each.usual
    ]
    return f" With other numbers of stations it isolates {listed(told)}." if told else ""


def _shifted(groups: Mapping[Setting, list[LeakRow]]) -> str:
    """Of receivers that are shifted, under certificates, beside the paper's claim."""
    told = [
        f"{count(leaks, CERTIFIED)} by {each.carriers} in profile {each.profile}"
        for each, leaks in groups.items()
        if each.variant == "shift"
    ]
    if not told:
        return ""
    paper = "paper: tracing succeeds in 100/100, isolation degrades toward chance"
    return f" With receivers shifted, owners isolated under a certificate are {listed(told)} ({paper})."


def collusion_words(rows: Iterable[Row]) -> str:
    """Of averaged copies."""
    rows = list(rows)
    groups = averages(by_setting(rows))
    some = [each for leaks in groups.values() for each in leaks if each.size > 1]
    if not some:
        return NO_ROWS
    agreed, unlike = 0, list[str]()
    for setting, leaks in groups.items():
        for rule in (NORMAL, CANDIDATE):
            pairs = _rates(setting, leaks, rule)
            apart = {size: pair for size, pair in pairs.items() if abs(pair[0] - pair[1]) > NEAR}
            agreed += len(pairs) - len(apart)
            cells = [f"k = {size} {ours:.2f} ({theirs:.2f})" for size, (ours, theirs) in apart.items()]
            if cells:
                where = f"{setting.carriers} on {place(setting)} by the {rule} threshold"
                unlike.append(f"{where}: {listed(cells)}")
    first = f"Rates that agree with the paper's within {NEAR}: {agreed}." if agreed or unlike else ""
    differ = f" Others do not (the paper's in brackets): {'; '.join(unlike)}." if unlike else ""
    best = _least(_usual(groups))
    ours = f" Our profile traces every coalition up to a size of {listed(best)}." if best else ""
    whole = _whole(groups, SIZES[1:], "It", "in all coalitions")
    return f"{first}{differ}{ours}{whole}{_framed(some)}{why(rows)}".strip()


def _whole(groups: Mapping[Setting, list[LeakRow]], sizes: Iterable[int], who: str, where: str) -> str:
    """Where our profile does not name every member of a coalition, or nobody else."""
    missed, tried = [], 0
    for setting, leaks in groups.items():
        for size in sizes:
            here = [each.whole(CERTIFIED) for each in leaks if setting.ours and each.size == size]
            tried += len(here)
            if not all(here):
                what = f"by {setting.carriers} on {place(setting)}, k = {size}"
                missed.append(f"{sum(here)}/{len(here)} {what}")
    if not tried:
        return ""
    but = f", except: {listed(missed)}" if missed else ""
    return f" {who} names every member, and nobody else, {where}{but}."


def _rates(setting: Setting, leaks: list[LeakRow], rule: str) -> dict[int, tuple[float, float]]:
    """By size, ours and the paper's."""
    paper = paper_collusion(setting, rule)
    told = [each for each in leaks if each.named(rule) is not None]
    found = {size: rate((each for each in told if each.size == size), rule) for size in paper}
    return {size: (ours, paper[size]) for size, ours in found.items() if ours is not None}


def certified_audit_words(rows: Iterable[Row]) -> str:
    """Of single copies and pairs under a certificate."""
    rows = list(rows)
    groups, told = averages(by_setting(rows)), []
    known = {
        each: leaks
        for each, leaks in groups.items()
        if each.papers in PAPER_AUDIT and each.usual and not each.ours
    }
    for setting, leaks in known.items():
        paper = PAPER_AUDIT[setting.papers]
        if any(each.size <= 2 for each in leaks):
            cells = [count([each for each in leaks if each.size == size], CERTIFIED) for size in (1, 2)]
            beside = f"(paper: {paper[0]} and {paper[1]})"
            where = f"by {setting.carriers} on {place(setting)}"
            told.append(f"{cells[0]} single copies and {cells[1]} pairs {where} {beside}")
    if not told:
        return NO_ROWS
    decodes = [each.decode for leaks in known.values() for each in leaks if each.size <= 2]
    passed = [each["certificate"] for each in decodes if "certificate" in each]
    first = f"The paper's rule with its certificate names a holder of {listed(told)}."
    gate = f" {sum(passed)} of {len(passed)} certificates of the positive tail pass." if passed else ""
    framed = sum(each.frames(CERTIFIED) for leaks in groups.values() for each in leaks if each.size <= 2)
    ours = _whole(_usual(groups), (2,), "Our profile", "of all pairs")
    wrong = f" Innocents are named in {framed} decisions, our profile's among them."
    return f"{first}{gate}{ours}{wrong}{why(rows)}"


def _framed(leaks: Iterable[LeakRow]) -> str:
    """In how many somebody innocent is named."""
    found = [any(each.frames(rule) for rule in rules_of([each])) for each in leaks]
    return f" An innocent is named in {sum(found)} of {len(found)} decodes, by whatever rule."


def _alone(groups: Mapping[Setting, list[LeakRow]], size: int) -> dict[Setting, list[LeakRow]]:
    """Leaks of one size."""
    found = {key: [each for each in leaks if each.size == size] for key, leaks in groups.items()}
    return {key: leaks for key, leaks in found.items() if leaks}


def _usual(groups: Mapping[Setting, list[LeakRow]]) -> dict[Setting, list[LeakRow]]:
    """Of ten stations in federations as they are: these may be counted together."""
    return {each: leaks for each, leaks in groups.items() if each.usual}


def _of_ours(groups: Mapping[Setting, list[LeakRow]]) -> dict[str, list[list[LeakRow]]]:
    """Leaks of our profile by carriers, a list for each data set."""
    found: dict[str, list[list[LeakRow]]] = {}
    for setting, leaks in groups.items():
        if setting.ours:
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
