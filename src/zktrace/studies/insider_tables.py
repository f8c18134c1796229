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
        *(f"{name}: score in deviations, before → after" for name in carriers),
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
    if trial["profile"] == "informed" and trial["knows"] != "copy":
        large = "as large as" if trial["factor"] == 1 else f"{trial['factor']:g} times"
        told.append(f"marks {large} a copy's")
    told += [f"pushed to {trial['push']:g}"] if trial.get("push") else []
    return ", ".join(told) or "-"


def _own(rows: list[Row], name: str) -> str:
    """The insider's score on a carrier: median before and after, of several its least and greatest too."""
    before = [row.outcome["before"][name]["own"].get(name) for row in rows if name in row.outcome["before"]]
    after = [row.outcome["columns"][name]["own"].get(name) for row in rows if name in row.outcome["columns"]]
    known = [each for each in after if each is not None]
    if not known or any(each is None for each in before):
        return "-"
    span = f" ({min(known):.1f} to {max(known):.1f})" if len(known) > 1 else ""
    return f"{median(before):.1f} → {median(known):.1f}{span}"


def _percent(rows: list[Row], name: str) -> str:
    return f"{100 * mean(row.outcome[name] for row in rows):.1f} %"


def _papers(trial: dict[str, Any], copies: float) -> str:
    """The paper's own insider writes by the hinge alone, along the operator's directions."""
    alike = trial["profile"] == "paper" and trial["knows"] == "directions" and not trial.get("push")
    return _PAPER.get((trial["kind"], copies), "-") if alike else "-"


def steered(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by law, size, way and strength, in the order of lines: seeds of one kind stand together."""
    found = defaultdict[tuple[Any, ...], list[Row]](list)
    for row in rows:
        if row.trial["study"] == "steering":
            found[_steering(row.trial)].append(row)
    return {key: found[key] for key in sorted(found)}


def total(rows: Iterable[Row], name: str) -> int:
    """Coalitions of which something holds; `trials` are all of them."""
    return sum(row.trial[name] if name == "trials" else row.outcome[name] for row in rows)


def steering_table(rows: Iterable[Row]) -> str:
    """By law, size, way and strength: coalitions traced, innocents named, the members' scores."""
    lines = []
    for some in steered(rows).values():
        trial, trials = some[0].trial, total(some, "trials")
        lines.append(
            (
                trial["law"],
                str(trial["size"]),
                trial["steering"] if trial["strength"] else "nobody",
                f"{trial['strength']:g}",
                str(len({row.trial["seed"] for row in some})),
                f"{_over_trials(some, 'own_flips'):.2f}",
                f"{_over_trials(some, 'greatest'):.1f}",
                f"{total(some, 'traced')}/{trials}",
                f"{total(some, 'caught') / trials:.2f}",
                str(total(some, "framed")),
                str(total(some, "leads")),
            )
        )
    head = (
        "law",
        "members",
        "steered by",
        "share of positions",
        "seeds",
        "own flips",
        "greatest score, mean",
        "traced",
        "members named, mean",
        "framed",
        "innocent leads",
    )
    return f"{markdown(head, lines)}\n\nThe paper's: {_PAPER_STEERED}."


def _over_trials(rows: list[Row], name: str) -> float:
    """A mean of rows, each with the weight of its coalitions."""
    return float(sum(row.outcome[name] * row.trial["trials"] for row in rows) / total(rows, "trials"))


def _steering(trial: dict[str, Any]) -> tuple[Any, ...]:
    return (
        trial["law"] != "tardos",
        trial["size"],
        trial["strength"] > 0,
        trial["steering"] if trial["strength"] else "",
        trial["strength"],
    )
