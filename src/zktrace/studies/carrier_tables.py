"""Tables that compare carriers, drawn from saved rows, with the paper's cells beside ours.

twocarrier   `tab:twocarrier`: what each carrier withstands and costs
kdclass      `tab:kdclass`: the feature carrier after each kind of distillation
copy-cost    recall of each class that copies lose, in the original label space (`sub:stressors`)
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from zktrace.carriers import CARRIERS, NAMES, PROFILES
from zktrace.studies.cells import DATASETS, papers, taught
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row
from zktrace.studies.tracing_rows import (
    AVERAGE,
    CANDIDATE,
    CERTIFIED,
    NORMAL,
    TEN,
    LeakRow,
    Setting,
    averages,
    by_setting,
    costs,
    per_seed,
    rate,
    rules_of,
    seeds,
    spread,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCarrier:
    """What the paper has of one of its two carriers on one dataset."""

    length: int
    design: int
    most: int  # the largest coalition size of which all are traced
    kd: str
    cost: float  # points of accuracy
    rule: str = NORMAL  # the threshold by which it is traced
    shared: int = 0  # the same of the shared model


PAPER_TWO: Final = {
    ("weight", "gnss"): PaperCarrier(length=512, design=2, most=2, kd="0/10", cost=4.5),
    ("weight", "cifar10"): PaperCarrier(length=512, design=2, most=2, kd="0/10", cost=4.5),
    ("feature", "gnss"): PaperCarrier(length=2048, design=3, most=5, kd="10/10", cost=4.8, rule=CANDIDATE),
    ("feature", "cifar10"): PaperCarrier(length=2048, design=3, most=8, kd="10/10", cost=6.1, rule=CANDIDATE),
}
PAPER_KDCLASS: Final = {  # attacker -> what a student copies, survival on both datasets together
    "features": ("feature matching", "feature geometry", 20),
    "deeper": ("feature matching, 34 layers", "feature geometry", 19),
    "logits": ("soft labels only", "output function", 0),
    "isometry": ("feature isometry", "output function", 0),
}
PAPER_RUNS: Final = 20  # of each
LOSS: Final = "{} loss, pp (negative: gain)"  # head of a column
_LARGEST: Final = 8  # coalition of the paper
PAPER_RECALL: Final = {"gnss": (0.932, 0.823), "cifar10": (0.844, 0.799)}  # clean control, copies
TARGET: Final = 0.5  # points of accuracy that a copy in our profile may cost,
TARGETS: Final = {"feature": 1.0}  # of one carrier another,
TOGETHER: Final = 2.0  # and of all carriers at once
_PAPER_CLASSES: Final = {"gnss": "10.9 (0.9 to 18.0)", "cifar10": "4.4 (about even)"}


def twocarrier_table(rows: Iterable[Row]) -> str:
    """By data and carrier: the largest coalition that is always traced, students, and what copies cost."""
    rows = list(rows)
    paid, lines = costs(rows), []
    for setting, leaks in averages(by_setting(rows)).items():
        if "+" in setting.carriers or not setting.plain:
            continue
        paper = PAPER_TWO.get(setting.papers) if setting.usual and not setting.ours else None
        lengths = sorted({each.decode["length"] for each in leaks if "length" in each.decode})
        cost = spread([row.outcome["mean_cost_pp"] for row in paid.get(setting, [])])
        lines.append(
            (
                *setting.cells,
                str(seeds(leaks)),
                _of(", ".join(map(str, lengths)) or "-", paper, "length"),
                _of(str(CARRIERS[setting.carriers].colluders), paper, "design"),
                _of(shown_most(leaks, told_by(setting)), paper, "most"),
                shown_most(leaks, CERTIFIED),
                _of(survived(rows, setting), paper, "kd"),
                _of(cost, paper, "cost"),
                _of("0", paper, "shared"),
            )
        )
    head = (
        *("data", "stations", "carrier", "profile", "seeds", "positions (paper)", "design c (paper)"),
        *("max k, threshold alone (paper)", "max k, certificate", "students of features (paper)"),
        *(LOSS.format("copy") + " (paper)", "shared model's cost, pp (paper)"),
    )
    return markdown(head, lines)


def told_by(setting: Setting) -> str:
    """The threshold by which the paper traces on a carrier."""
    paper = PAPER_TWO.get(setting.papers)
    return paper.rule if paper else NORMAL


def _of(ours: str, paper: PaperCarrier | None, name: str) -> str:
    return ours if paper is None else f"{ours} ({getattr(paper, name)})"


def most_traced(leaks: list[LeakRow], rule: str) -> int | None:
    """The largest size up to which every coalition is traced; None where rows do not tell of a rule."""
    if rule not in rules_of(leaks):
        return None
    found = 0
    for size in sorted({each.size for each in leaks}):
        if rate((each for each in leaks if each.size == size), rule) != 1:
            break
        found = size
    return found


def shown_most(leaks: list[LeakRow], rule: str) -> str:
    """The same for people, who are told if no larger size was tried."""
    found, tried = most_traced(leaks, rule), max(each.size for each in leaks)
    if found is None:
        return "-"
    return f"{found}, none larger tried" if found == tried < _LARGEST else str(found)


def survived(rows: Iterable[Row], setting: Setting) -> str:
    """Students of the longest training, of attacks on copies: those whose teacher's owner is named."""
    told = [
        row
        for row in rows
        if row.trial["study"] == "attacks"
        and (row.trial["target"], row.trial["family"]) == (setting.profile, "distill")
        and row.trial["dataset"] == setting.dataset
        and row.trial["preset"]["federation"]["clients"] == setting.stations
    ]
    longest = max((row.trial["parameters"]["epochs"] for row in told), default=0)
    found = column_of((row for row in told if row.trial["parameters"]["epochs"] == longest), setting.carriers)
    return f"{_survivals(found)}, {longest} epochs" if found else "-"


def _survivals(found: list[dict[str, Any]]) -> str:
    return f"{sum(bool(each['caught']) and not each['framed'] for each in found)}/{len(found)}"


def kdclass_table(rows: Iterable[Row]) -> str:
    """By distiller: students whose teacher's owner is named, in both profiles; the paper's by threshold."""
    groups = kdclass_groups(rows)
    lines = []
    for attacker, (words, copied, paper) in PAPER_KDCLASS.items():
        for (dataset, who, way), found in groups.items():
            if who != attacker:
                continue
            ours, theirs = found.get("informed", []), found.get("paper", [])
            seen = [str(len({row.trial["seed"] for row in some})) for some in (theirs, ours)]
            cells = [_column(theirs, "feature"), _column(ours, "feature"), _column(ours, "all")]
            lines.append((DATASETS[dataset], words + way, copied, *seen, *cells, f"{paper}/{PAPER_RUNS}"))
    head = (
        *("data", "distiller", "student copies", "seeds, paper's profile", "seeds, informed"),
        *("feature, paper's profile", "feature, informed", "all carriers, informed"),
        "the paper's feature, both data sets",
    )
    return markdown(head, lines)


def kdclass_groups(rows: Iterable[Row]) -> dict[tuple[str, str, str], dict[str, list[Row]]]:
    """Rows of disguises by data, attacker and how students are taught, then by profile."""
    groups: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.trial["study"] == "disguise" and row.trial["attacker"] in PAPER_KDCLASS:
            way = taught(row.trial.get("students"))
            groups[row.trial["dataset"], row.trial["attacker"], way][row.trial["profile"]].append(row)
    order = list(DATASETS)
    return {key: groups[key] for key in sorted(groups, key=lambda each: (order.index(each[0]), *each[1:]))}


def _column(rows: list[Row], name: str) -> str:
    found = column_of(rows, name)
    return _survivals(found) if found else "-"


def column_of(rows: Iterable[Row], name: str) -> list[dict[str, Any]]:
    """What one carrier alone, or all, said of each suspect that was read on it."""
    return [row.outcome["columns"][name] for row in rows if name in row.outcome["columns"]]


def copy_cost_table(rows: Iterable[Row]) -> str:
    """By data and class: recall of the shared model, and points of it that copies of each kind lose."""
    groups: dict[Setting, dict[tuple[str, str], list[Row]]] = defaultdict(dict)
    for setting, some in costs(rows).items():
        told = [row for row in some if "recall" in row.outcome]
        if told and setting.strategy == AVERAGE:
            where = setting._replace(carriers="", profile="")
            groups[where].setdefault((setting.profile, setting.carriers), []).extend(told)
    kinds = sorted({kind for found in groups.values() for kind in found}, key=_kind_order)
    lines = []
    for where, found in groups.items():
        data = where.data if where.stations == TEN else f"{where.data}, {where.stations} stations"
        every = [row for some in found.values() for row in some]
        for name in dict.fromkeys(name for row in every for name in row.outcome["recall"]["classes"]):
            losses = [spread(class_losses(found.get(kind, []), name), 1) for kind in kinds]
            lines.append((data, str(name), spread(_recalls(every, name)), *losses, "-"))
        lines += _summary(data, found, kinds, papers(where.dataset) if where.usual else None)
    head = ("data", "class", "recall, shared model", *(LOSS.format(f"{who}, {what}:") for who, what in kinds))
    return markdown((*head, "the paper's, pp (range)"), lines)


def _summary(
    data: str,
    found: Mapping[tuple[str, str], list[Row]],
    kinds: list[tuple[str, str]],
    paper: str | None,
) -> list[tuple[str, ...]]:
    """Lines below the classes: their mean, which is the rise of far_proxy too, and few-shot episodes.

    Beside them the paper's, on its data of the same kind.
    """
    every = [row for some in found.values() for row in some]
    shared = spread(per_seed((row.trial["seed"], 1 - row.outcome["far_proxy"]["shared"]) for row in every))
    few = spread(per_seed((row.trial["seed"], row.outcome["shared"]) for row in every))
    lost = [spread([mean_loss(row) for row in found.get(kind, [])], 1) for kind in kinds]
    cost = [spread([row.outcome["mean_cost_pp"] for row in found.get(kind, [])], 1) for kind in kinds]
    costs_of = {carrier: each.cost for (carrier, of), each in PAPER_TWO.items() if of == paper}
    told = ", ".join(f"{carrier} {cost}" for carrier, cost in costs_of.items())
    aims = [f"{target(carriers):g}" if profile != "paper" else "-" for profile, carriers in kinds]
    return [
        (data, "mean of classes", shared, *lost, "-" if paper is None else _PAPER_CLASSES[paper]),
        (data, "five-way episodes", few, *cost, told or "-"),
        (data, "five-way episodes: our target, at most", "-", *aims, "-"),
    ]


def target(carriers: str) -> float:
    """Points of accuracy that a copy in our profile may cost."""
    return TOGETHER if "+" in carriers else TARGETS.get(carriers, TARGET)


def mean_loss(row: Row) -> float:
    """Points of recall that copies lose, every class alike: what far_proxy gains."""
    return float(100 * (row.outcome["far_proxy"]["copies"] - row.outcome["far_proxy"]["shared"]))


def class_losses(rows: list[Row], name: str) -> list[float]:
    """Points of recall of one class that copies lose, of each row that has it."""
    found = []
    for recall in (row.outcome["recall"] for row in rows):
        if name in recall["classes"]:
            at = recall["classes"].index(name)
            found.append(100 * (recall["shared"][at] - recall["copies"][at]))
    return found


def _recalls(rows: list[Row], name: str) -> list[float]:
    """Of the shared models, each once: all rows of a seed have the same."""
    pairs = [
        (row.trial["seed"], row.outcome["recall"]["shared"][row.outcome["recall"]["classes"].index(name)])
        for row in rows
        if name in row.outcome["recall"]["classes"]
    ]
    return per_seed(pairs)


def _kind_order(kind: tuple[str, str]) -> tuple[Any, ...]:
    profile, carriers = kind
    names, parts = list(NAMES), carriers.split("+")
    return -list[str](PROFILES).index(profile), len(parts), [names.index(each) for each in parts]
