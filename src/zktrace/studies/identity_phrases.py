"""Parts of the sentences that stand beside tables of identity marks."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from zktrace.studies.identity_cells import WITHOUT, Value, marked, values
from zktrace.studies.identity_paper import ROUNDS, SEEDS, Printed
from zktrace.studies.rows import Row

NOTHING: Final = "There are no rows for this table yet."
SPOKEN: Final = {"gnss": "simulated GNSS", "cifar10": "CIFAR-10", "recordings": "recorded GNSS"}
_SMALLER: Final = (  # where presets differ from the paper
    ("model", "width", "networks have width", 64),
    ("federation", "rounds", "rounds are", ROUNDS),
)
_MANY: Final = 5.0  # points that ask for a reason
_CLOSE: Final = 1.0  # points that count as the same, where the paper gives no deviation

Groups = Mapping[str, Sequence[Row]]  # by dataset


def as_they_are(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Federations with marks and no stress, by dataset."""
    return {dataset: some for (dataset, variant), some in marked(rows).items() if variant == WITHOUT}


def of_paper(paper: Mapping[str, Mapping[str, Printed]], name: str) -> dict[str, Printed | None]:
    """One of the paper's values, by dataset."""
    return {dataset: each.get(name) for dataset, each in paper.items()}


def falls_short(rows: Sequence[Row], value: Value, paper: Printed) -> bool:
    """Whether ours is less than the paper's by more than its deviation, or a point."""
    return fmean(values(rows, value)) < paper.mean - max(_CLOSE, paper.deviation or 0.0)


def far_above(rows: Sequence[Row], value: Value, paper: Printed | None) -> bool:
    """Whether ours is more than the paper's by many points."""
    return paper is not None and fmean(values(rows, value)) > paper.mean + _MANY


def each_of(
    found: Groups, value: Value, paper: Mapping[str, Printed | None], digits: int, unit: str = ""
) -> str:
    """A mean a dataset, each with the paper's."""
    return listed(
        [
            f"{mean_of(some, value, digits, unit)} on "
            f"{SPOKEN[dataset]}{in_paper(paper[dataset], digits, unit)}"
            for dataset, some in found.items()
        ]
    )


def means(found: Groups, value: Value, digits: int, unit: str = "") -> str:
    """A mean a dataset."""
    return listed([mean_of(some, value, digits, unit) for some in found.values()])


def mean_of(rows: Sequence[Row], value: Value, digits: int, unit: str = "") -> str:
    """Of the rows that say it."""
    found = values(rows, value)
    return f"{fmean(found):.{digits}f}{unit}" if found else "an unknown share"


def in_paper(paper: Printed | None, digits: int, unit: str = "") -> str:
    """The paper's value in brackets, if it has one."""
    return "" if paper is None else f" (paper {paper.mean:.{digits}f}{unit})"


def reasons(found: Groups, opening: str = ": ") -> str:
    """What rows know of why accuracy is another than the paper's."""
    known = []
    for section, name, words, theirs in _SMALLER:
        ours = sorted({row.trial["preset"][section][name] for some in found.values() for row in some})
        if ours != [theirs]:
            known.append(f"{words} {listed(list(map(str, ours)))} (paper {theirs})")
    if "gnss" in found:
        known.append("GNSS is simulated, which the paper's is not")
    return f"{opening}{listed(known)}" if known else ""


def seeds_of(groups: Iterable[Sequence[Row]]) -> str:
    """How many a cell rests on; few are said to be few."""
    counts = sorted({len({row.trial["seed"] for row in some}) for some in groups})
    told = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else _number(counts[0])
    if counts[0] < SEEDS:
        return f"{told} (few: the paper has {SEEDS})"
    return f"{told}, as in the paper" if counts == [SEEDS] else f"{told} (paper {SEEDS})"


def _number(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def listed(parts: Sequence[str]) -> str:
    """One, two, or more of them."""
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"
