"""Tables of the documentation, drawn from saved rows: drawing again never trains again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import mean

from zktrace.studies.rows import Row

DATASETS = {"gnss": "GNSS, simulated", "cifar10": "CIFAR-10"}
_PAPER_FEDERATION = {"gnss": ("98 %", ".96"), "cifar10": ("100 %", ".94")}


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def federation_table(rows: Iterable[Row]) -> str:
    """Attribution, agreement and accuracy with and without marks, by dataset; means over seeds."""
    groups: dict[str, dict[bool, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.trial["study"] == "federation":
            groups[row.trial["preset"]["data"]["dataset"]][row.outcome["marked"]].append(row)
    lines = []
    for dataset, title in DATASETS.items():
        marked, control = groups[dataset][True], groups[dataset][False]
        if not marked or not control:
            continue
        attribution, own = _PAPER_FEDERATION[dataset]
        with_mark, without = (100 * _mean(each, "accuracy") for each in (marked, control))
        half = 100 * mean(row.outcome["accuracy_half_width"] for row in marked)
        lines.append(
            (
                title,
                ", ".join(str(row.trial["seed"]) for row in marked),
                f"{100 * _mark(marked, 'attribution'):.0f} % ({attribution})",
                f"{_mark(marked, 'self_agreement'):.3f} ({own})",
                f"{_mark(marked, 'cross_talk'):.3f} (.50)",
                f"{with_mark:.1f} ± {half:.1f} %",
                f"{without:.1f} %",
                f"{with_mark - without:+.1f} pp",
            )
        )
    head = ("data", "seeds", "attribution", "own codeword", "others", "accuracy", "no marks", "difference")
    return markdown(head, lines)


def _mean(rows: list[Row], name: str) -> float:
    return mean(float(row.outcome[name]) for row in rows)


def _mark(rows: list[Row], name: str) -> float:
    return mean(float(row.outcome["marks"][name]) for row in rows)


_PAPER_TRACING = {
    ("weight", "gnss"): ("60/60", "270/270", ".95", ".40", ".15", "4.5"),
    ("weight", "cifar10"): ("100/100", "442/450", ".75", ".35", ".00", "4.5"),
    ("feature", "gnss"): ("-", "-", "1.00", "1.00", ".76", "4.8"),
    ("feature", "cifar10"): ("-", "-", "1.00", "1.00", "1.00", "6.1"),
}
_SIZES = (1, 2, 3, 5, 8)


def tracing_table(rows: Iterable[Row]) -> str:
    """Coalitions of each size: in how many somebody was named, in how many everybody; and the cost."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.trial["study"] == "tracing":
            key = ("+".join(row.trial["carriers"]), row.trial["profile"], row.trial["dataset"])
            groups[key].append(row)
    lines = [_tracing_line(*key, found) for key, found in sorted(groups.items(), reverse=True)]
    lines += [
        (carrier, "the paper's own", DATASETS[dataset].split(",")[0], *paper[:5], "0", f"{paper[5]} pp")
        for (carrier, dataset), paper in _PAPER_TRACING.items()
    ]
    head = ("carrier", "profile", "data", *(f"k = {size}" for size in _SIZES), "framed", "copy cost")
    return markdown(head, lines)


def _tracing_line(carriers: str, profile: str, dataset: str, rows: list[Row]) -> tuple[str, ...]:
    cost = [row.outcome["mean_cost_pp"] for row in rows if row.trial["part"] == "cost"]
    trials = [row for row in rows if row.trial["part"] == "coalition"]
    cells = []
    for size in _SIZES:
        here = [row for row in trials if len(row.trial["members"]) == size]
        some = sum(row.outcome["caught"] > 0 and not row.outcome["framed"] for row in here)
        every = sum(row.outcome["caught"] == size and not row.outcome["framed"] for row in here)
        cells.append(f"{some}/{len(here)}" + (f", all {every}" if size > 1 else "") if here else "-")
    framed = sum(row.outcome["framed"] > 0 for row in trials)
    shown = f"{mean(cost):.2f} pp" if cost else "-"
    return (carriers, profile, DATASETS[dataset], *cells, str(framed), shown)


TABLES = {"federation": federation_table, "tracing": tracing_table}
