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
