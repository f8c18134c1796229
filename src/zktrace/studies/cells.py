"""Cells that several tables have: data by name, and what investigations by carrier came to."""

from collections.abc import Iterable
from typing import Any, Final

from zktrace.carriers import NAMES
from zktrace.studies.rows import Row

DATASETS: Final = {"gnss": "GNSS, simulated", "cifar10": "CIFAR-10", "recordings": "GNSS, recorded"}


def papers(dataset: str) -> str:
    """The paper's data of the same kind: its GNSS data are recorded, ours are simulated or recorded."""
    return "cifar10" if dataset == "cifar10" else "gnss"


def column_names(rows: Iterable[Row]) -> tuple[str, ...]:
    """What was read in some of these rows: carriers in the order of their table, and all together."""
    known = {column for row in rows for column in row.outcome["columns"]}
    return (*(name for name in NAMES if name in known), "all")


def named(rows: list[Row], column: str) -> str:
    """Runs that named somebody, and the guilty's score of the decisive look in the weakest run."""
    found = [row.outcome["columns"][column] for row in rows if column in row.outcome["columns"]]
    if not found:
        return "-"
    count = f"{sum(bool(each['named']) and not each['framed'] for each in found)}/{len(found)}"
    scores = [deciding_score(each) for each in found]
    known = [each for each in scores if each is not None]
    return f"{count} ({min(known):.1f})" if known else count


def framed(rows: Iterable[Row]) -> int:
    """Investigations, by whatever carrier, that named an innocent."""
    return sum(column["framed"] > 0 for row in rows for column in row.outcome["columns"].values())


def deciding_score(column: dict[str, Any]) -> float | None:
    """The largest score of somebody guilty, on any carrier of the look that decided."""
    decided = column["sigma"].get(column["look"], {}) if column["read"] else {}
    found = [each["greatest_member"] for each in decided.values() if each["greatest_member"] is not None]
    return max(found, default=None)


def taught(students: dict[str, Any] | None) -> str:
    """How long a student was taught, and what sets its images apart."""
    if students is None:
        return ""
    images = "" if students["samples"] == 16_000 else f", {students['samples'] or 'all'} images"
    return f", {students['epochs']} epochs{images}{', probes inside' if students['inside'] else ''}"
