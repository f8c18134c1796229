"""Tables of insiders and of steered words, drawn from saved rows."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean, median
from typing import Any, Final

from zktrace.carriers import NAMES
from zktrace.studies.cells import DATASETS
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row

_PROFILES: Final = ("paper", "informed")
_KINDS: Final = {
    "negation": "negation",
    "fresh": "fresh row",
    "hybrid": "hybrid",
    "replacement": "replacement",
    "adaptive": "hybrid, stops by its own score",
    "noise": "noise on every matrix",
    "retrain": "trained on",
    "low-rank": "half of the singular directions",
    "rounding": "4 bits",
}
KNOWS: Final = {"directions": "row, directions", "row": "row", "copy": "copy"}
_PAPER: Final = {  # kind and budget in copies -> what the paper says of twenty runs
    ("negation", 1.0): "0/20",
    ("fresh", 1.0): "0/20",
    ("hybrid", 1.0): "5/20",
    ("hybrid", 2.0): "20/20",
    ("hybrid", 4.0): "0/20",
}
_PAPER_STEERED: Final = "400 steered trials: nobody framed; every pair traced"


def insiders_table(rows: Iterable[Row]) -> str:
    """By data, profile, insider, knowledge and effort: who escaped and was named, beside the paper's."""
    groups = defaultdict[tuple[Any, ...], list[Row]](list)
    for row in rows:
        if row.trial["study"] == "insiders":
            groups[_insider(row.trial)].append(row)
    some = [row for found in groups.values() for row in found]
    carriers = [name for name in NAMES if any(name in row.outcome["columns"] for row in some)]
    lines = []
    for (place, profile, kind, knows, effort), found in sorted(groups.items()):
        own = [_own(found, name) for name in carriers]
        lines.append(
            (
                list(DATASETS.values())[place],
                list(_PROFILES)[profile],
                list(_KINDS.values())[kind],
                KNOWS[knows],
                _effort(found[0].trial),
                f"{sum(row.outcome['escaped'] for row in found)}/{len(found)}",
                f"{sum(row.outcome['named'] for row in found)}/{len(found)}",
                str(sum(row.outcome["framed"] > 0 for row in found)),
                *own,
                f"{_percent(found, 'accuracy')} ({_percent(found, 'copy_accuracy')})",
                _papers(found[0].trial, effort[0]),
            )
        )
    head = (
        "data",
        "profile",
        "insider",
        "knows",
        "effort",
        "escaped",
        "named",
        "framed",
        *carriers,
        "accuracy (copy)",
        "the paper's escapes",
    )
    return markdown(head, lines)


def _insider(trial: dict[str, Any]) -> tuple[Any, ...]:
    """What rows of one line have in common, in the order of lines."""
    effort = (trial["episodes"] / trial["unit"], trial["factor"], trial.get("push", 0.0))
    return (
        list(DATASETS).index(trial["dataset"]),
        _PROFILES.index(trial["profile"]),
        list(_KINDS).index(trial["kind"]),
        trial["knows"],
        effort,
    )


def _effort(trial: dict[str, Any]) -> str:
    """For people."""
    told = [f"{trial['episodes']} episodes"] if trial["episodes"] else []
    told += (
        [f"{trial['factor']:g} marks"] if trial["profile"] == "informed" and trial["knows"] != "copy" else []
    )
    told += [f"pushed to {trial['push']:g}"] if trial.get("push") else []
    return ", ".join(told) or "-"


def _own(rows: list[Row], name: str) -> str:
    """The insider's score on a carrier: median before, and after with its least and greatest."""
    before = [row.outcome["before"][name]["own"].get(name) for row in rows if name in row.outcome["before"]]
    after = [row.outcome["columns"][name]["own"].get(name) for row in rows if name in row.outcome["columns"]]
    known = [each for each in after if each is not None]
    if not known or any(each is None for each in before):
        return "-"
    return f"{median(before):.1f} → {median(known):.1f} ({min(known):.1f} to {max(known):.1f})"


def _percent(rows: list[Row], name: str) -> str:
    return f"{100 * mean(row.outcome[name] for row in rows):.1f} %"


def _papers(trial: dict[str, Any], copies: float) -> str:
    """The paper's own insider writes by the hinge alone, along the operator's directions."""
    alike = trial["profile"] == "paper" and trial["knows"] == "directions" and not trial.get("push")
    return _PAPER.get((trial["kind"], copies), "-") if alike else "-"


def steering_table(rows: Iterable[Row]) -> str:
    """By law, size, way and strength: coalitions traced, innocents named, the members' scores."""
    found = sorted((row for row in rows if row.trial["study"] == "steering"), key=_steering)
    lines = [
        (
            row.trial["law"],
            str(row.trial["size"]),
            row.trial["steering"] if row.trial["strength"] else "nobody",
            f"{row.trial['strength']:g}",
            f"{row.outcome['own_flips']:.2f}",
            f"{row.outcome['greatest']:.1f}",
            f"{row.outcome['traced']}/{row.trial['trials']}",
            f"{row.outcome['caught'] / row.trial['trials']:.2f}",
            str(row.outcome["framed"]),
            str(row.outcome["leads"]),
        )
        for row in found
    ]
    head = (
        "law",
        "members",
        "steered by",
        "share of positions",
        "own flips",
        "greatest score, mean",
        "traced",
        "members named, mean",
        "framed",
        "innocent leads",
    )
    return f"{markdown(head, lines)}\n\nThe paper's: {_PAPER_STEERED}."


def _steering(row: Row) -> tuple[Any, ...]:
    trial = row.trial
    return (
        trial["law"] != "tardos",
        trial["size"],
        trial["strength"] > 0,
        trial["steering"],
        trial["strength"],
    )
