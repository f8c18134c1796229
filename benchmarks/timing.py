"""What the benchmarks share: times of repeated runs, and a report as a table and as JSON."""

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured quantity, and the bound it should keep (None: for information)."""

    name: str
    value: float
    unit: str
    bound: str = ""
    holds: bool | None = None


def walls_ms(call: Callable[[], object], *, repeat: int = 11, warm_up: int = 2) -> list[float]:
    """Wall times of `call` in milliseconds, the least first: on a machine that is shared it says most."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)


def median_ms(call: Callable[[], object], *, repeat: int = 11, warm_up: int = 2) -> float:
    """Median wall time of `call` in milliseconds."""
    return statistics.median(walls_ms(call, repeat=repeat, warm_up=warm_up))


def least_ms(call: Callable[[], object], *, repeat: int = 25) -> float:
    """Least processor time of `call` in milliseconds: what it takes, whatever else the machine does."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def at_most(name: str, value: float, unit: str, bound: float) -> Row:
    """A row that should stay below a bound."""
    return Row(name=name, value=value, unit=unit, bound=f"<= {bound:g}", holds=value <= bound)


def at_least(name: str, value: float, unit: str, bound: float) -> Row:
    """A row that should stay above a bound."""
    return Row(name=name, value=value, unit=unit, bound=f">= {bound:g}", holds=value >= bound)


def report(title: str, rows: list[Row]) -> None:
    """The table for a person, then one line of JSON."""
    table = Table(title=title)
    for column in ("quantity", "measured", "bound", ""):
        table.add_column(column, justify="left" if column == "quantity" else "right")
    for row in rows:
        mark = "" if row.holds is None else ("holds" if row.holds else "BROKEN")
        table.add_row(row.name, f"{row.value:.4g} {row.unit}", row.bound, mark)
    Console().print(table)
    print(json.dumps({"benchmark": title, "rows": [asdict(row) for row in rows]}))
