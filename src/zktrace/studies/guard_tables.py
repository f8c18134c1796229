"""Tables of guarded federations, drawn from saved rows."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean
from typing import Any, Final

from zktrace.studies.cells import DATASETS
from zktrace.studies.equivalence import equivalence
from zktrace.studies.markdown import markdown
from zktrace.studies.model_tables import NETWORKS
from zktrace.studies.rows import Row

MARGINS: Final = {"gnss": 1.0, "recordings": 1.0, "cifar10": 0.5}  # points of accuracy, the paper's
SHOWS: Final = 4.4  # deviations, about what names somebody at the default budget


def guard_utility_table(rows: Iterable[Row]) -> str:
    """By network and data: accuracy with a guard and without, and the difference over pairs of one seed."""
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in _of(rows, "utility"):
        trial = row.trial
        place = found[trial["network"], trial["dataset"]][trial["seed"]]
        place[trial["design"]] = 100 * row.outcome["accuracy"]
    lines = []
    for (network, dataset), seeds in found.items():
        pairs = {seed: each for seed, each in seeds.items() if {"guarded", "unguarded"} <= set(each)}
        if len(pairs) < 2:
            continue
        test = equivalence([each["guarded"] - each["unguarded"] for each in pairs.values()], MARGINS[dataset])
        lines.append(
            (
                NETWORKS.get(network, network),
                DATASETS[dataset],
                ", ".join(map(str, pairs)),
                f"{mean(each['unguarded'] for each in pairs.values()):.2f} %",
                f"{mean(each['guarded'] for each in pairs.values()):.2f} %",
                f"{test.mean:+.2f} ({test.low:+.2f} to {test.high:+.2f})",
                f"{test.margin:g}",
                f"{'yes' if test.shown else 'not shown'} (p = {test.chance:.2g})",
            )
        )
    head = (
        "network",
        "data",
        "seeds",
        "unguarded",
        "guarded",
        "difference in points (95 % interval)",
        "margin",
        "as good",
    )
    return markdown(head, lines)


def guard_tracing_table(rows: Iterable[Row]) -> str:
    """By kind of leak, over all runs: cases in which exactly the leakers were named."""
    found = defaultdict[tuple[str, str], list[Row]](list)
    for row in _of(rows, "tracing"):
        found[_leak(row.trial), row.trial["dataset"]].append(row)
    lines = []
    for (leak, dataset), some in found.items():
        after = defaultdict[str, list[Row]](list)
        for row in some:
            after[row.trial["after"]].append(row)
        lines.append(
            (
                leak,
                DATASETS[dataset],
                "; ".join(f"{how} {_whole(each)}" for how, each in after.items()),
                f"{sum(row.outcome['caught'] for row in some)}/{sum(row.outcome['of'] for row in some)}",
                f"{min(row.outcome['least'] for row in some):.1f}",
                str(sum(row.outcome["framed"] for row in some)),
            )
        )
    head = (
        "leak",
        "data",
        "named whole, by what was done afterwards",
        "leakers named",
        "weakest score",
        "framed",
    )
    return markdown(head, lines)


def _leak(trial: dict[str, Any]) -> str:
    """What a row is about, for people."""
    if trial["leak"] == "coalition":
        rounds = "copies of one round" if trial["rounds"] == "one" else "copies of different rounds"
        return f"{trial['size']} stations, {rounds}"
    if trial["leak"] == "mean over rounds":
        return f"mean of a station's last {trial['rounds']} copies"
    if trial["leak"] == "local training":
        return f"a copy after {trial['episodes']} local episodes"
    if trial["leak"] == "trained on":
        return f"a copy trained on for {trial['episodes']} episodes"
    return "broadcast"


def guard_residues_table(rows: Iterable[Row]) -> str:
    """By design, data and size: what the last shared model keeps of participants' marks."""
    last: dict[tuple[str, str, str, int], Row] = {}
    for row in _of(rows, "residues"):
        key = row.trial["design"], row.trial["dataset"], row.trial["network"], row.trial["seed"]
        if key not in last or last[key].trial["round"] < row.trial["round"]:
            last[key] = row
    groups = defaultdict[tuple[str, str, str], list[Row]](list)
    for (design, dataset, network, _), row in last.items():
        groups[design, dataset, network].append(row)
    lines = []
    for (design, dataset, network), some in sorted(groups.items()):
        shares = [mean(row.outcome["participants"]) for row in some]
        noise = mean(row.outcome["others_deviation"] for row in some)
        each = mean(shares) / noise if noise else 0.0
        lines.append(
            (
                design,
                DATASETS[dataset],
                network,
                f"{some[0].outcome['weights'] / 1e6:.2f} M",
                f"{some[0].trial['round']}",
                ", ".join(str(row.trial["seed"]) for row in some),
                f"{100 * mean(shares):+.3f} %",
                f"{100 * noise:.3f} %",
                f"{each:+.2f}",
                _showing(some, each) if design == "subtracted" else "-",
                f"{sum(bool(row.outcome['named']) for row in some)}/{len(some)}",
            )
        )
    head = (
        "design",
        "data",
        "network",
        "weights that carry",
        "rounds",
        "seeds",
        "left of a participant's mark",
        "deviation over rows of nobody",
        "in deviations",
        "would show from, at least",
        "shared models that name somebody",
    )
    return markdown(head, lines)


def _showing(rows: list[Row], deviations: float) -> str:
    """How many weights a model has at least in which a residue of this share is read as a mark.

    Noise falls with the root of their number. The residue is taken as large as it may be: two standard errors
    of the mean over all participants beyond it.
    """
    count = sum(len(row.outcome["participants"]) for row in rows)
    most = abs(deviations) + 2 / count**0.5
    return f"{rows[0].outcome['weights'] * (SHOWS / most) ** 2 / 1e6:,.0f} M weights"


def _of(rows: Iterable[Row], part: str) -> list[Row]:
    return [row for row in rows if row.trial["study"] == "guard" and row.trial["part"] == part]


def _whole(rows: list[Row]) -> str:
    return f"{sum(row.outcome['whole'] for row in rows)}/{sum(row.outcome['cases'] for row in rows)}"
