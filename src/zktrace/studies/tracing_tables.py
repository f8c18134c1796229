"""Tables of leaked copies, drawn from saved rows, with the paper's cells beside ours.

    tracing           who is named, by size of the coalition
    isolation         `tab:isolation`: single copies
    collusion         `tab:collusion`: averages of copies, by threshold alone and under a certificate
    certified-audit   `tab:certified-audit`: single copies and pairs under a certificate

Beside each table stand words: sentences that say where rows agree with the paper and where they do not.
"""

from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Final

from zktrace.studies.cells import DATASETS
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row
from zktrace.studies.tracing_rows import (
    AVERAGE,
    CANDIDATE,
    CERTIFIED,
    NORMAL,
    RULES,
    TEN,
    LeakRow,
    Setting,
    averages,
    by_setting,
    costs,
    count,
    everybody,
    measured,
    names_several,
    per_seed,
    rules_of,
    seeds,
    spread,
)

SIZES: Final = (1, 2, 3, 5, 8)
_FIRST: Final = ("data", "stations", "carrier", "profile")
PAPER_TRACING: Final = {  # tab:certified-audit; tab:isolation and tab:collusion, which ask for no certificate
    ("weight", "gnss", "certified"): ("60/60", "270/270", "-", "-", "-", "4.5"),
    ("weight", "cifar10", "certified"): ("100/100", "442/450", "-", "-", "-", "4.5"),
    ("weight", "gnss", "threshold alone"): ("100/100", "1.00", ".95", ".40", ".15", "4.5"),
    ("weight", "cifar10", "threshold alone"): ("100/100", "1.00", ".75", ".35", ".00", "4.5"),
    ("feature", "gnss", "threshold alone"): ("-", "1.00", "1.00", "1.00", ".76", "4.8"),
    ("feature", "cifar10", "threshold alone"): ("-", "1.00", "1.00", "1.00", "1.00", "6.1"),
}
PAPER_ISOLATION: Final = {  # carrier, data, stations -> isolated, q_owner, nearest innocent, attribution
    ("weight", "gnss", 10): ("100/100", ".12", ".29 to .31", ".98"),
    ("weight", "gnss", 40): ("400/400", ".05", ".25 to .26", ".87"),
    ("weight", "cifar10", 10): ("100/100", ".15", ".29 to .31", "1.00"),
    ("weight", "cifar10", 40): ("400/400", ".06", ".25 to .26", "1.00"),
}
PAPER_SHIFTED: Final = {  # sub:stressors, of shifted receivers: isolated, attribution
    ("weight", "gnss"): ("toward chance", ".98"),
}
PAPER_COLLUSION: Final[Mapping[tuple[str, str, int, str], Mapping[int, float]]] = {
    ("weight", "gnss", 10, NORMAL): {2: 1.0, 3: 0.95, 5: 0.4, 8: 0.15},
    ("weight", "cifar10", 10, NORMAL): {2: 1.0, 3: 0.75, 5: 0.35, 8: 0.0},
    ("weight", "gnss", 10, CANDIDATE): {2: 1.0, 3: 0.65, 5: 0.1},
    ("weight", "cifar10", 10, CANDIDATE): {2: 1.0, 3: 0.5, 5: 0.05},
    ("weight", "gnss", 40, NORMAL): {2: 1.0, 3: 1.0, 5: 0.7},
    ("weight", "cifar10", 40, NORMAL): {2: 1.0, 3: 1.0, 5: 0.2},
    ("feature", "gnss", 10, CANDIDATE): {2: 1.0, 3: 1.0, 5: 1.0, 8: 0.76},
    ("feature", "cifar10", 10, CANDIDATE): {2: 1.0, 3: 1.0, 5: 1.0, 8: 1.0},
}
PAPER_DISAGREEMENT: Final = {  # with colluders' rows
    ("weight", "gnss"): {2: 0.22, 3: 0.24, 5: 0.26, 8: 0.26},
    ("weight", "cifar10"): {2: 0.25, 3: 0.26, 5: 0.27, 8: 0.28},
}
PAPER_AUDIT: Final = {  # carrier, data -> single copies, pairs, unanimous-position disagreement of pairs
    ("weight", "gnss"): ("60/60", "270/270", ".112"),
    ("weight", "cifar10"): ("100/100", "442/450", ".140"),
}


def tracing_table(rows: Iterable[Row]) -> str:
    """Coalitions of each size: in how many somebody was named, in how many everybody; and the cost.

    The paper's rule names one, so everybody is not counted for it.
    """
    rows = list(rows)
    paid = costs(rows)
    groups = by_setting(rows)
    order = sorted(
        {*groups, *paid}, key=lambda each: (each.carriers, each.profile, each.dataset), reverse=True
    )
    lines = [_tracing_line(each, groups.get(each, []), paid.get(each, [])) for each in order]
    lines += [
        (
            carrier,
            f"the paper's own, {by}",
            DATASETS[dataset].split(",")[0],
            *paper[:5],
            "0",
            f"{paper[5]} pp",
        )
        for (carrier, dataset, by), paper in PAPER_TRACING.items()
    ]
    head = ("carrier", "profile", "data", *(f"k = {size}" for size in SIZES), "framed", "copy cost")
    return markdown(head, lines)


def _tracing_line(setting: Setting, leaks: list[LeakRow], paid: list[Row]) -> tuple[str, ...]:
    cells = []
    for size in SIZES:
        here = [each for each in leaks if each.size == size]
        every = sum(each.whole(CERTIFIED) for each in here)
        beside = f", all {every}" if here and size > 1 and setting.ours else ""
        cells.append(count(here, CERTIFIED) + beside)
    framed = sum(each.frames(CERTIFIED) for each in leaks)
    shown = f"{mean(row.outcome['mean_cost_pp'] for row in paid):.2f} pp" if paid else "-"
    return (setting.carriers, setting.profile, _told_apart(setting), *cells, str(framed), shown)


def _told_apart(setting: Setting) -> str:
    """Data, and whatever else is not as usual: this table has no column for it."""
    many = [] if setting.stations == TEN else [f"{setting.stations} stations"]
    how = [] if setting.strategy == AVERAGE else [f"copies put together by {setting.strategy}"]
    return ", ".join([setting.data, *many, *how])


def isolation_table(rows: Iterable[Row]) -> str:
    """Single copies: in how many the owner is named and nobody else, and how far rows are from the decode."""
    rows = list(rows)
    paid, lines = costs(rows), []
    for setting, leaks in averages(by_setting(rows)).items():
        alone = [each for each in leaks if each.size == 1]
        if not alone:
            continue
        told, known = rules_of(alone), paid.get(setting, [])
        paper = paper_isolation(setting)
        lines.append(
            (
                *setting.cells,
                str(seeds(alone)),
                spread(_known(known, "load")),
                *(
                    f"{count(alone, rule) if rule in told else '-'}"
                    + _beside(setting, paper[0], given=rule == NORMAL)
                    for rule in RULES
                ),
                measured(alone, "disagreement") + _beside(setting, paper[1]),
                measured(alone, "least_innocent") + _beside(setting, paper[2]),
                spread(_known(known, "attribution")) + _beside(setting, paper[3]),
            )
        )
    by = (f"isolated, {words}" + " (paper)" * (rule == NORMAL) for rule, words in RULES.items())
    last = ("q_owner (paper)", "nearest innocent (paper)", "shared model's attribution (paper)")
    return markdown((*_FIRST, "seeds", "load", *by, *last), lines)


def paper_isolation(setting: Setting) -> tuple[str | None, ...]:
    """Isolated, q_owner, the nearest innocent, attribution: what the paper has of them."""
    nothing = (None,) * 4
    if setting.plain:
        return PAPER_ISOLATION.get((*setting.papers, setting.stations), nothing)
    if setting.variant == "shift" and setting.papers in PAPER_SHIFTED:
        isolated, attribution = PAPER_SHIFTED[setting.papers]
        return isolated, None, None, attribution
    return nothing


def _known(rows: list[Row], name: str) -> list[float]:
    """Of rows that tell it."""
    return [row.outcome[name] for row in rows if row.outcome.get(name) is not None]


def collusion_table(rows: Iterable[Row]) -> str:
    """Averaged copies: by rule, the part of the coalitions of each size that is traced (and the paper's)."""
    lines = []
    for setting, leaks in averages(by_setting(rows)).items():
        several = [each for each in leaks if each.size > 1]
        for rule in rules_of(several) if several else ():
            paper = paper_collusion(setting, rule)
            cells = []
            for size in SIZES[1:]:
                here = [each for each in several if each.size == size]
                values = per_seed((each.seed, float(each.traced(rule))) for each in here)
                cells.append(spread(values) + (f" ({paper[size]:.2f})" if size in paper else ""))
            framed = mean(each.frames(rule) for each in leaks)
            beside = " (0)" if paper else ""
            line = (
                *setting.cells,
                RULES[rule],
                str(seeds(several)),
                *cells,
                _everybody(setting, several, rule),
            )
            lines.append((*line, f"{framed:.3f}{beside}", _apart(setting, several)))
    sizes = (f"k = {size} (paper)" for size in SIZES[1:])
    last = ("everybody named, by k", "framed (paper)", "mean disagreement, by k (paper)")
    return markdown((*_FIRST, "decided by", "seeds", *sizes, *last), lines)


def _everybody(setting: Setting, leaks: list[LeakRow], rule: str) -> str:
    """By size, the part of the coalitions whose members are all named, and nobody else."""
    if not names_several(setting, rule):
        return "-"
    sizes = [[each.whole(rule) for each in leaks if each.size == size] for size in SIZES[1:]]
    return "/".join(f"{mean(each):.2f}" for each in sizes if each)


def _apart(setting: Setting, leaks: list[LeakRow]) -> str:
    """The mean disagreement with colluders' rows, by size."""
    sizes = [size for size in SIZES[1:] if any(each.size == size for each in leaks)]
    ours = [measured([each for each in leaks if each.size == size], "disagreement") for size in sizes]
    short = "/".join(each.split(" ")[0] for each in ours) if set(ours) != {"-"} else "-"
    paper = PAPER_DISAGREEMENT.get(setting.papers, {})
    theirs = "/".join(f"{paper[size]:.2f}" for size in sizes if size in paper) or None
    return short + _beside(setting, theirs, given=setting.usual)


def certified_audit_table(rows: Iterable[Row]) -> str:
    """Single copies and pairs under a certificate, and whether certificates of the positive tail pass."""
    lines = []
    for setting, leaks in averages(by_setting(rows)).items():
        alone, pairs = ([each for each in leaks if each.size == size] for size in (1, 2))
        paper, ten = PAPER_AUDIT.get(setting.papers, (None,) * 3), setting.usual
        passed = [each.decode["certificate"] for each in (*alone, *pairs) if "certificate" in each.decode]
        lines.append(
            (
                *setting.cells,
                str(seeds(leaks)),
                count(alone, CERTIFIED) + _beside(setting, paper[0], given=ten),
                count(pairs, CERTIFIED) + _beside(setting, paper[1], given=ten),
                everybody(pairs, CERTIFIED) if names_several(setting, CERTIFIED) else "-",
                f"{sum(passed)}/{len(passed)}" if passed else "-",
                str(sum(each.frames(CERTIFIED) for each in (*alone, *pairs))),
                measured(pairs, "unanimous", 3) + _beside(setting, paper[2], given=ten),
            )
        )
    head = (
        *(*_FIRST, "seeds", "single copies (paper)", "pairs (paper)", "both of a pair named"),
        *("certificates pass", "framed", "unanimous, pairs (paper)"),
    )
    return markdown(head, lines)


def paper_collusion(setting: Setting, rule: str) -> Mapping[int, float]:
    """By size, the part of the coalitions that the paper traces."""
    key = (*setting.papers, setting.stations, rule)
    return PAPER_COLLUSION.get(key, {}) if setting.plain and not setting.ours else {}


def _beside(setting: Setting, value: str | None, *, given: bool = True) -> str:
    """What the paper has, behind ours in its profile."""
    return "" if setting.ours or not given or value is None else f" ({value})"
