"""Tables of published systems beside each other, with the paper's cells (`tab:baselines`, `tab:kd`).

What a system can do is said by what was measured: shares of copies, of coalitions, of keys. Nothing is typed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Final

from zktrace.baselines.listing import LISTED, SOURCES, SUPPORT
from zktrace.studies.cells import DATASETS, column_names, named, papers
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row

STUDY: Final = "baselines"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSystem:
    """What the paper has for a system."""

    accuracy: Mapping[str, str]  # by data
    mark: Mapping[str, str]
    distilled: Mapping[str, str]  # share of ten seeds that keep it
    payload: str


def _paper(gnss: str, cifar10: str, payload: str) -> PaperSystem:
    cells = {"gnss": gnss.split(), "cifar10": cifar10.split()}
    accuracy, mark, distilled = ({data: each[k] for data, each in cells.items()} for k in range(3))
    return PaperSystem(accuracy=accuracy, mark=mark, distilled=distilled, payload=payload)


PAPER: Final[Mapping[str, PaperSystem]] = {  # tab:baselines, tab:kd
    "fedzkp": _paper(".939 .999 0/10", ".847 .986 0/10", "interactive"),
    "fedtracker": _paper(".926 1.00 .10", ".838 1.00 .10", "2.3 MB"),
    "duw": _paper(".922 1.00 .30", ".825 1.00 1.00", "1.5 MB"),
    "fedipr": _paper(".925 .997 0/10", ".849 .980 0/10", "2.3 MB"),
    "waffle": _paper(".933 .218 .30", ".846 .289 .00", "0.3 MB"),
    "deepmarks": _paper("- - -", "- - -", "-"),
    "zk-trace": _paper(".934 .98 0/10", ".849 1.00 0/10", "0.6 MB"),  # identity marks, weight carrier
}
KD_DATA: Final = {"gnss": "GNSS", "recordings": DATASETS["recordings"], "cifar10": "CIFAR-10"}
PAPER_KD_OWN: Final = {"weight": "0/10", "feature": "10/10"}  # tab:kd, of each of them
PAPER_FRAMING: Final = {"in the paper, all": 0.50, "in the paper, within its design": 0.58}  # of DeepMarks
DESIGNED: Final = 5  # colluders of the code that DeepMarks has here

_Parts = dict[str, list[Row]]


def _papers(name: str) -> PaperSystem:
    """What the paper has of a system; of one that it has not, nothing."""
    return PAPER.get(name, _paper("- - -", "- - -", "-"))


def grouped(rows: Iterable[Row]) -> dict[tuple[str, str], _Parts]:
    """Rows by data and system, each by part; in the order of both tables."""
    found: dict[tuple[str, str], _Parts] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.trial["study"] == STUDY:
            found[row.trial["dataset"], row.trial["system"]][row.trial["part"]].append(row)
    keys = [(data, name) for data in DATASETS for name in LISTED]
    return {key: found[key] for key in keys if key in found}


def retained(system: str, outcome: Mapping[str, Any], member: int) -> bool:
    """Whether a suspect still says what the system is for: whose copy it is, or that it is theirs."""
    if LISTED[system].names_recipients:
        return bool(outcome["named"] == [member])
    return bool(outcome["present"])


def baselines_table(rows: Iterable[Row]) -> str:
    """By data and system: what it costs, what it says, and how often it names an innocent."""
    head = (
        "data",
        "system",
        "seeds",
        "accuracy (paper)",
        "without marks",
        "mark (paper)",
        "copies told by their mark",
        "early leak told",
        "rewrites that leave it",
        "attacks that leave it",
        "distilled (paper)",
        "coalitions: traced, innocent named",
        "unmarked models: somebody named, mark claimed",
        "by queries",
        "proof",
        "payload, with support set (paper)",
    )
    lines = [_line(data, name, parts) for (data, name), parts in grouped(rows).items() if parts["marks"]]
    return markdown(head, lines)


def _line(data: str, name: str, parts: _Parts) -> tuple[str, ...]:
    some, paper = [row.outcome for row in parts["marks"]], _papers(name)
    return (
        DATASETS[data],
        name,
        ", ".join(str(row.trial["seed"]) for row in parts["marks"]),
        f"{_spread([each['accuracy'] for each in some])} ({paper.accuracy.get(papers(data), '-')})",
        f"{mean(each['accuracy_unmarked'] - each['accuracy_shared'] for each in some):+.3f}",
        f"{_spread([each['mark'] for each in some])} ({paper.mark.get(papers(data), '-')})",
        _copies(name, some),
        _told(name, [(each["early"], each["member"]) for each in some]),
        _told(name, [(found, each["member"]) for each in some for found in each["rewrites"].values()]),
        _told(name, _attacked(parts)),
        f"{_told(name, _distilled(parts))} ({paper.distilled.get(papers(data), '-')})",
        _coalitions(name, parts["coalitions"]),
        _innocents(parts["innocents"]),
        _queries(some),
        _proof(some),
        f"{_size(some[0]['payload'])} ({paper.payload})",
    )


def _spread(values: Sequence[float]) -> str:
    """Mean, and deviation where there are several."""
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def _copies(name: str, some: Sequence[Mapping[str, Any]]) -> str:
    if not LISTED[name].names_recipients:
        return "none: all are alike"
    every = [(found, k) for each in some for k, found in enumerate(each["copies"])]
    return f"{sum(found['named'] == [k] for found, k in every)}/{len(every)}"


def _told(name: str, found: Sequence[tuple[Mapping[str, Any], int]]) -> str:
    """How many suspects of one leaker each are still told."""
    if not found:
        return "-"
    framed = sum(each["framed"] > 0 for each, _ in found)
    count = f"{sum(retained(name, each, member) for each, member in found)}/{len(found)}"
    return count + (f", {framed} name an innocent" if framed else "")


def member_of(row: Row) -> int:
    """Whose copy a student learned from, and whose leaked."""
    return int(row.trial["seed"] % row.trial["preset"]["federation"]["clients"])


def _attacked(parts: _Parts) -> list[tuple[Mapping[str, Any], int]]:
    return [
        (found, member_of(row))
        for row in parts["attacks"]
        for found in row.outcome["attacks"]
        if found["family"] != "none"
    ]


def _distilled(parts: _Parts) -> list[tuple[Mapping[str, Any], int]]:
    return [(row.outcome, member_of(row)) for row in parts["distillation"]]


def _coalitions(name: str, rows: Sequence[Row]) -> str:
    every = [each for row in rows for each in row.outcome["coalitions"]]
    if not every or not LISTED[name].names_recipients:
        return "-"
    count = sum(each["count"] for each in every)
    return f"{sum(each['traced'] for each in every)}, {sum(each['framed'] for each in every)} of {count}"


def _innocents(rows: Sequence[Row]) -> str:
    if not rows:
        return "-"
    keys = sum(row.trial["keys"] for row in rows)
    return (
        ", ".join(str(sum(row.outcome[each] for row in rows)) for each in ("named", "claimed"))
        + f" of {keys}"
    )


def _queries(some: Sequence[Mapping[str, Any]]) -> str:
    asked = [each["queries"] for each in some if each["queries"] is not None]
    if not asked:
        return "not read"
    claimed = sum(bool(each["present"]) for each in asked)
    return f"{mean(each['mark'] for each in asked):.2f}, claimed {claimed}/{len(asked)}"


def _proof(some: Sequence[Mapping[str, Any]]) -> str:
    """Whether a station's proof is accepted, and whether another station or another model can have it."""
    tried = [each["proof"] for each in some if each["proof"] is not None]
    if not tried:
        return "none"
    counts = [sum(each[key] for each in tried) for key in ("accepted", "borrowed", "replayed")]
    return f"accepted {counts[0]}/{len(tried)}, borrowed {counts[1]}, replayed {counts[2]}"


def _size(payload: Mapping[str, int]) -> str:
    alone = sum(size for part, size in payload.items() if part != SUPPORT)
    more = f", {(alone + payload[SUPPORT]) / 1e6:.2f}" if SUPPORT in payload else ""
    return f"{alone / 1e6:.2f}{more} MB"


def kd_table(rows: Iterable[Row]) -> str:
    """By system, then by carrier of ours: students that keep the native mark, and how good they are."""
    rows = list(rows)
    found, lines = grouped(row for row in rows if row.trial.get("part") == "distillation"), []
    columns = _kd_columns(rows)
    for name in LISTED:
        cells = []
        for data in columns:
            some = found.get((data, name), {}).get("distillation", [])
            paper = _papers(name).distilled.get(papers(data), "-")
            kept = [(row.outcome, member_of(row)) for row in some]
            accuracy = f", {mean(row.outcome['accuracy'] for row in some):.3f}" if some else ""
            cells.append(f"{_told(name, kept)}{accuracy} ({paper})")
        if any(key[1] == name for key in found):
            given = [(row.trial["epochs"], row.trial["samples"]) for row in rows_of(found, name)]
            lines.append((name, LISTED[name].place, *_taught(given), *cells))
    head = (f"{KD_DATA[data]}, accuracy (paper)" for data in columns)
    own = _own_students(rows, columns)
    return markdown(("system", "carrier", "epochs", "images", *head), [*lines, *own])


def _kd_columns(rows: Iterable[Row]) -> list[str]:
    """Simulated GNSS and CIFAR-10, and recordings where there are some."""
    found = {row.trial.get("dataset") for row in rows}
    missing = {"gnss"} - found if "recordings" in found else {"recordings"}
    return [data for data in KD_DATA if data not in missing]


def _own_students(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The same of copies with all carriers of a profile, each read by itself (rows of `attacks`)."""
    students = [
        row
        for row in rows
        if row.trial["study"] == "attacks" and row.trial["family"] == "distill" and "columns" in row.outcome
    ]
    lines = []
    for profile in dict.fromkeys(row.trial["target"] for row in students):
        some = [row for row in students if row.trial["target"] == profile]
        for name in column_names(some)[:-1]:
            given = [(row.trial["parameters"]["epochs"], row.trial["samples"]) for row in some]
            cells = [_own_cell([r for r in some if r.trial["dataset"] == data], name) for data in columns]
            lines.append((f"zk-trace, profile {profile}", name, *_taught(given), *cells))
    return lines


def _own_cell(some: list[Row], name: str) -> str:
    accuracy = f", {mean(row.outcome['accuracy'] for row in some):.3f}" if some else ""
    return f"{named(some, name)}{accuracy} ({PAPER_KD_OWN.get(name, '-')})"


def _taught(given: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """Epochs and images of students."""
    epochs, images = (sorted(set(each)) for each in zip(*given, strict=True))
    return ", ".join(map(str, epochs)), ", ".join(f"{each:,}" for each in images)


def rows_of(found: Mapping[tuple[str, str], _Parts], name: str) -> list[Row]:
    """Of one system, on all data."""
    return [row for key, parts in found.items() if key[1] == name for some in parts.values() for row in some]


def baselines_coalitions_table(rows: Iterable[Row]) -> str:
    """By system that names recipients, by strategy and size: coalitions traced, and those that frame."""
    lines = []
    for (data, name), parts in grouped(rows).items():
        if not LISTED[name].names_recipients:
            continue
        every = [each for row in parts["coalitions"] for each in row.outcome["coalitions"]]
        for strategy in dict.fromkeys(each["strategy"] for each in every):
            alike = [each for each in every if each["strategy"] == strategy]
            cells = [_size_cell(alike, size) for size in sorted({each["size"] for each in every})]
            lines.append((DATASETS[data], name, strategy, *cells))
    sizes = sorted(
        {each["size"] for row in rows_with(rows, "coalitions") for each in row.outcome["coalitions"]}
    )
    head = ("data", "system", "strategy", *(f"k = {size}: traced, framed, of" for size in sizes))
    return markdown(head, lines)


def rows_with(rows: Iterable[Row], part: str) -> list[Row]:
    """The rows of a part."""
    return [row for row in rows if row.trial["study"] == STUDY and row.trial["part"] == part]


def _size_cell(alike: Sequence[Mapping[str, Any]], size: int) -> str:
    some = [each for each in alike if each["size"] == size]
    return ", ".join(str(sum(each[key] for each in some)) for key in ("traced", "framed", "count"))


def framing(rows: Iterable[Row], *, within: bool = False) -> tuple[int, int] | None:
    """Averaged copies under DeepMarks: coalitions that frame somebody, of how many; `within` its design."""
    plain = [
        each
        for row in rows_with(rows, "coalitions")
        if row.trial["system"] == "deepmarks"
        for each in row.outcome["coalitions"]
        if each["strategy"] == "mean" and (not within or each["size"] <= DESIGNED)
    ]
    return (sum(each["framed"] for each in plain), sum(each["count"] for each in plain)) if plain else None


def baseline_parameters_table(_: Iterable[Row]) -> str:
    """Every parameter of every system, and where its value comes from."""
    from zktrace.baselines.table import SYSTEMS  # noqa: PLC0415  (needs torch)

    lines = [
        (name, f"`{each.name}`", str(each.value), SOURCES[each.source], each.why)
        for name, kind in SYSTEMS.items()
        for each in kind().parameters()
    ]
    return markdown(("system", "parameter", "value", "value is", "what it is"), lines)
