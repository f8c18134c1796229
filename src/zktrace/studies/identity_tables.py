"""Tables of identity marks, drawn from rows of `study federation` and `study stressors`, beside the paper's.

A cell is a mean and a standard deviation over seeds, with the paper's values in brackets; `identity_words`
says what tables come to.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final

from zktrace.studies.cells import DATASETS, papers
from zktrace.studies.equivalence import difference, equivalence
from zktrace.studies.guard_tables import MARGINS
from zktrace.studies.identity_cells import (
    GROUP,
    WITHOUT,
    Value,
    able,
    accuracy,
    beside,
    cell,
    group_line,
    margins,
    mark,
    marked,
    of_group,
    of_trained,
    pairs,
    proved,
    spread,
    stations,
    told,
    values,
)
from zktrace.studies.identity_paper import (
    ABLE,
    ATTRIBUTION,
    BASELINE,
    BROADENED,
    COVER,
    FEATURES,
    GROUP_ACCURACY,
    NONIID,
    NONIID_TRAINED,
    STRESSORS,
    SURVIVAL,
    UTILITY,
    Printed,
)
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row

ATTRIBUTED: Final = mark("attribution", 100)
OWN: Final = mark("self_agreement")
OTHERS: Final = mark("cross_talk")
PRESENCE: Final = told("identity", "presence", 100)


def attribution_table(rows: Iterable[Row]) -> str:
    """By dataset: who is read back from the shared model (`tab:attribution`), and what was promised of it."""
    rows, lines = list(rows), list[tuple[str, ...]]()
    for (dataset, variant), some in marked(rows).items():
        if variant != WITHOUT:
            continue
        paper = ATTRIBUTION[papers(dataset)]
        lines.append(
            (
                DATASETS[dataset],
                "zk-trace",
                str(len(some)),
                cell(some, ATTRIBUTED, paper["attribution"], 1),
                cell(some, of_trained, digits=1),
                cell(some, OWN, paper["own"]),
                cell(some, OTHERS, paper["others"]),
                cell(some, PRESENCE, digits=1),
                proved(some),
                _margins(some),
                cell(some, accuracy, paper["accuracy"], 1),
            )
        )
        if group := of_group(rows, dataset):
            known = group_line(group, GROUP_ACCURACY[papers(dataset)])
            lines.append((DATASETS[dataset], f"{GROUP}, of the group", str(len(group)), *known))
    head = (
        "data",
        "system",
        "seeds",
        "attribution, % (paper)",
        "of who trained, %",
        "own codeword (paper)",
        "others (paper)",
        "presence, %",
        "proved by `thm:attr`",
        "A2: bits at the margin, %",
        "accuracy, % (paper)",
    )
    return markdown(head, lines)


def _margins(rows: Sequence[Row]) -> str:
    """Bits that have the margin that A2 asks for after local training, and the least of all."""
    found = [each for each in map(margins, rows) if each is not None]
    if not found:
        return "-"
    least = min(each["least"] for each in found)
    reached = spread([100 * each["reached"] for each in found], 1)
    return f"{reached} (least {least:.2f} of {found[0]['wanted']:g})"


def survival_table(rows: Iterable[Row]) -> str:
    """By dataset and number of stations: what is left of codewords as the load grows (`tab:survival`)."""
    lines = []
    for (dataset, count), some in by_stations(rows).items():
        paper = SURVIVAL.get((papers(dataset), count), {})
        lines.append(
            (
                DATASETS[dataset],
                str(count),
                str(len(some)),
                cell(some, mark("load")),
                cell(some, told("identity", "baseline"), Printed(BASELINE[papers(dataset)])),
                cell(some, mark("predicted"), paper.get("predicted")),
                cell(some, OWN, paper.get("own")),
                cell(some, OTHERS, paper.get("others")),
                cell(some, ATTRIBUTED, paper.get("attribution"), 1),
                cell(some, of_trained, digits=1),
                cell(some, able, digits=1),
                proved(some),
                cell(some, accuracy, paper.get("accuracy"), 1),
            )
        )
    head = (
        "data",
        "stations",
        "seeds",
        "load",
        "G as read (paper)",
        "p-hat (paper)",
        "own codeword (paper)",
        "others (paper)",
        "attribution, % (paper)",
        "of who trained, %",
        "stations that trained",
        "proved by `thm:attr`",
        "accuracy, % (paper)",
    )
    return markdown(head, lines)


def by_stations(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    """Federations by dataset and number of stations, from few to many."""
    found = defaultdict[tuple[str, int], list[Row]](list)
    for (dataset, variant), some in marked(rows).items():
        if variant == WITHOUT or variant.startswith("stations-"):
            for row in some:
                found[dataset, stations(row)].append(row)
    order = list(DATASETS)
    return {key: found[key] for key in sorted(found, key=lambda key: (order.index(key[0]), key[1]))}


def noniid_table(rows: Iterable[Row]) -> str:
    """By dataset, label skew and participation: attribution with both denominators (`tab:noniid`)."""
    lines = []
    for (dataset, alpha, share), some in by_skew(rows).items():
        attribution, accurate = NONIID.get((papers(dataset), alpha, share), (None, None))
        told_able = ABLE.get((papers(dataset), alpha)) if share == 1 else None
        lines.append(
            (
                DATASETS[dataset],
                f"alpha = {alpha:g}, q = {share:g}",
                str(len(some)),
                cell(some, able, None if told_able is None else Printed(told_able), 1),
                cell(some, ATTRIBUTED, attribution, 1),
                cell(some, of_trained, None if attribution is None else NONIID_TRAINED, 1),
                cell(some, OWN),
                cell(some, accuracy, accurate, 1),
            )
        )
    head = (
        "data",
        "setting",
        "seeds",
        "stations that trained (paper)",
        "attribution, % (paper)",
        "of who trained, % (paper)",
        "own codeword",
        "accuracy, % (paper)",
    )
    return markdown(head, lines)


def by_skew(rows: Iterable[Row]) -> dict[tuple[str, float, float], list[Row]]:
    """Federations by dataset, alpha and participation: the most skewed first, the least present last."""
    found = defaultdict[tuple[str, float, float], list[Row]](list)
    for (dataset, variant), some in marked(rows).items():
        if variant == WITHOUT or variant.startswith(("alpha-", "participation-")):
            for row in some:
                federation = row.trial["preset"]["federation"]
                found[dataset, federation["alpha"], federation["participation"]].append(row)
    order = list(DATASETS)
    return {key: found[key] for key in sorted(found, key=lambda key: (order.index(key[0]), key[1], -key[2]))}


FEATURE_METRICS: Final[dict[str, tuple[str, Value, int]]] = {
    "silhouette": ("silhouette", told("features", "silhouette"), 3),
    "nearest": ("nearest neighbour, leaving one out", told("features", "nearest"), 3),
    "intra": ("distance within a class", told("features", "intra"), 2),
    "inter": ("distance between classes", told("features", "inter"), 2),
    "mean_recall": ("recall, mean over classes", told("features", "mean_recall"), 3),
    "far_proxy": ("far_proxy: taken for another class", told("features", "far_proxy"), 3),
    "gamma": ("deviation of scales, after / before", told("spread", "gamma"), 2),
    "beta": ("deviation of shifts, after / before", told("spread", "beta"), 2),
}


def featurespace_table(rows: Iterable[Row]) -> str:
    """By dataset and metric: features without marks and with them, over pairs of one seed."""
    lines = []
    for dataset, found in pairs(rows).items():
        for name, (title, value, digits) in FEATURE_METRICS.items():
            both = measured_pairs(found, value)
            if not both:
                continue
            base, with_marks = FEATURES.get((papers(dataset), name), (None, None))
            without, with_them = ([each[side] for each in both] for side in (0, 1))
            lines.append(
                (
                    DATASETS[dataset],
                    title,
                    str(len(both)),
                    beside(without, base, digits),
                    _broadened(with_them) if name == "gamma" else beside(with_them, with_marks, digits),
                    *_tested([b - a for a, b in both], digits),
                )
            )
    head = (
        "data",
        "metric",
        "pairs",
        "no marks (paper)",
        "marks (paper)",
        "difference",
        "p, paired t test",
    )
    return markdown(head, lines)


def measured_pairs(found: Sequence[tuple[Row, Row]], value: Value) -> list[tuple[float, float]]:
    """Where both rows of a pair say it."""
    both = [values(pair, value) for pair in found]
    return [(each[0], each[1]) for each in both if len(each) == 2]


def _broadened(found: Sequence[float]) -> str:
    return f"{spread(found, 2)} ({BROADENED[0]} to {BROADENED[1]})"


def _tested(differences: Sequence[float], digits: int) -> tuple[str, str]:
    shown = f"{fmean(differences):+.{digits}f}"
    return shown, f"{difference(differences):.2g}" if len(differences) > 1 else "-"


def utility_table(rows: Iterable[Row]) -> str:
    """By dataset: is a federation with marks as good as one without? Paired by seed (`tab:utility`)."""
    lines = []
    for dataset, found in pairs(rows).items():
        lost, low, high, chance = UTILITY[papers(dataset)]
        differences = [accuracy(with_marks) - accuracy(without) for without, with_marks in found]
        if len(differences) < 2:
            shown, good = f"{differences[0]:+.2f}", "one pair: no test"
        else:
            test = equivalence(differences, MARGINS[dataset], cover=COVER)
            shown = f"{test.mean:+.2f} ({test.low:+.2f} to {test.high:+.2f})"
            good = f"{'yes' if test.shown else 'not shown'} (p = {test.chance:.2g})"
        lines.append(
            (
                DATASETS[dataset],
                str(len(found)),
                cell([each for each, _ in found], accuracy),
                cell([each for _, each in found], accuracy),
                shown,
                f"{MARGINS[dataset]:g}",
                good,
                f"{lost:+.2f} (90 %: {low:+.3f} to {high:+.3f}), p = {chance:g}",
            )
        )
    head = (
        "data",
        "pairs",
        "no marks, %",
        "marks, %",
        "difference in points (90 % interval)",
        "margin",
        "as good",
        "the paper's",
    )
    return markdown(head, lines)


STRESSES: Final = {WITHOUT: "none", "median": "coordinate-wise median", "shift": "receiver shift"}


def stressors_table(rows: Iterable[Row]) -> str:
    """By dataset: another aggregation and other receivers, beside the federation as it is."""
    found, lines = marked(rows), []
    for dataset, title in DATASETS.items():
        for variant, words in STRESSES.items():
            some = found.get((dataset, variant))
            if not some:
                continue
            told_of = papers(dataset)
            paper = STRESSORS.get((told_of, variant), {}) if variant else ATTRIBUTION[told_of]
            lines.append(
                (
                    title,
                    words,
                    str(len(some)),
                    cell(some, ATTRIBUTED, paper.get("attribution"), 1),
                    cell(some, of_trained, digits=1),
                    cell(some, OWN, paper.get("own")),
                    cell(some, PRESENCE, digits=1),
                    proved(some),
                    cell(some, accuracy, paper.get("accuracy"), 1),
                )
            )
    head = (
        "data",
        "stress",
        "seeds",
        "attribution, % (paper)",
        "of who trained, %",
        "own codeword (paper)",
        "presence, %",
        "proved by `thm:attr`",
        "accuracy, % (paper)",
    )
    return markdown(head, lines)
