"""Rows of federations, as the tables of identity marks take them, and the cells that they make."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, stdev
from typing import Any, Final

from zktrace.studies.cells import DATASETS
from zktrace.studies.identity_paper import Printed
from zktrace.studies.rows import Row

Value = Callable[[Row], float | None]  # of one row; None where it does not say
WITHOUT: Final = ""  # the variant of federations as they are
STRESSED: Final = ("median", "shift")  # variants that stand beside them


def marked(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Federations with marks by dataset and variant; datasets in their order, variants as rows came."""
    found = defaultdict[tuple[str, str], list[Row]](list)
    for row in rows:
        if row.trial["study"] in {"federation", "stressors"} and row.outcome["marked"]:
            found[_dataset(row), row.trial.get("variant", WITHOUT)].append(row)
    order = list(DATASETS)
    return {key: found[key] for key in sorted(found, key=lambda key: order.index(key[0]))}


def pairs(rows: Iterable[Row]) -> dict[str, list[tuple[Row, Row]]]:
    """By dataset: federations that differ in their marks alone, without them and with them."""
    sides: dict[bool, dict[tuple[str, int, str], Row]] = {False: {}, True: {}}
    for row in rows:
        if row.trial["study"] == "federation":
            preset = row.trial["preset"]
            same = preset | {"marks": preset["marks"] | {"lambda_wm": None}}
            key = _dataset(row), row.trial["seed"], json.dumps(same, sort_keys=True)
            sides[row.outcome["marked"]][key] = row
    found = defaultdict[str, list[tuple[Row, Row]]](list)
    for key, row in sides[True].items():
        if key in sides[False]:
            found[key[0]].append((sides[False][key], row))
    return {dataset: found[dataset] for dataset in DATASETS if dataset in found}


def _dataset(row: Row) -> str:
    return str(row.trial["preset"]["data"]["dataset"])


# ── one row ────────────────────────────────────────────────────────────────────────────────────────────────


def mark(name: str, scale: float = 1.0) -> Value:
    """Of the codewords as they are read back."""
    return lambda row: scale * row.outcome["marks"][name]


def told(section: str, name: str, scale: float = 1.0) -> Value:
    """Of what is measured beside the result; older rows do not have it."""

    def value(row: Row) -> float | None:
        found = (row.outcome.get(section) or {}).get(name)
        return None if found is None else scale * found

    return value


def accuracy(row: Row) -> float:
    """In percent."""
    return 100 * float(row.outcome["accuracy"])


def of_trained(row: Row) -> float | None:
    """Attribution in percent over the stations that ever trained."""
    if not row.outcome["never_trained"]:
        return 100 * float(row.outcome["marks"]["attribution"])
    return told("identity", "attribution_trained", 100)(row)


def able(row: Row) -> float:
    """Stations that trained at least once."""
    return float(stations(row) - len(row.outcome["never_trained"]))


def stations(row: Row) -> int:
    """How many there are."""
    return int(row.trial["preset"]["federation"]["clients"])


def margins(row: Row) -> dict[str, Any] | None:
    """Those that stations give their bits, if they were measured."""
    found: dict[str, Any] | None = (row.outcome.get("identity") or {}).get("margins")
    return found


# ── cells ──────────────────────────────────────────────────────────────────────────────────────────────────


def values(rows: Iterable[Row], value: Value) -> list[float]:
    """Of the rows that say it."""
    return [found for row in rows if (found := value(row)) is not None]


def cell(rows: Sequence[Row], value: Value, paper: Printed | None = None, digits: int = 2) -> str:
    """Mean and deviation over seeds, and the paper's in brackets; how many, where some rows do not say."""
    found = values(rows, value)
    some = f", n = {len(found)}" if 0 < len(found) < len(rows) else ""
    return beside(found, paper, digits, some)


def beside(found: Sequence[float], paper: Printed | None, digits: int, some: str = "") -> str:
    """Our values, and the paper's."""
    ours = (spread(found, digits) if found else "-") + some
    return ours if paper is None else f"{ours} ({printed(paper, digits)})"


def spread(found: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation; of one value there is none."""
    text = f"{fmean(found):.{digits}f}"
    return f"{text} ± {stdev(found):.{digits}f}" if len(found) > 1 else text


def printed(paper: Printed, digits: int) -> str:
    """The paper's value, in our digits."""
    text = f"{paper.mean:.{digits}f}"
    return text if paper.deviation is None else f"{text} ± {paper.deviation:.{digits}f}"


GROUP: Final = "fedzkp"  # which marks a group and nobody in it


def of_group(rows: Iterable[Row], dataset: str) -> list[Row]:
    """The system whose mark says that a model is a group's, on these data."""
    wanted = ("baselines", "marks", GROUP, dataset)
    keys = ("study", "part", "system", "dataset")
    return [row for row in rows if tuple(row.trial.get(key) for key in keys) == wanted]


def group_line(rows: Sequence[Row], paper: Printed) -> tuple[str, ...]:
    """Attribution, codewords and accuracy of a group's mark: one of N stations is guessed."""
    guessed = 100 / fmean(map(stations, rows))
    told = f"{guessed:.1f}: 1 of {stations(rows[0])} by construction ({guessed:.1f})"
    return told, *["-"] * 6, cell(rows, accuracy, paper, 1)


def proved(rows: Sequence[Row]) -> str:
    """Stations whose attribution `thm:attr` proves, of all."""
    within = sum(row.outcome["marks"]["within_radius"] for row in rows)
    return f"{within}/{sum(map(stations, rows))}"
