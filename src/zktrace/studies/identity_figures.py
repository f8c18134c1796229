"""Figures of identity marks: what is left of codewords under load and under attack."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, pstdev
from typing import Any, Final

from zktrace.studies.attack_tables import PAPER_ATTACKS, PaperCell
from zktrace.studies.cells import DATASETS, papers
from zktrace.studies.figures import (
    HUES,
    MARKERS,
    Curve,
    FigureData,
    Hue,
    Marker,
    Panel,
    Point,
    Reference,
    dataset_of,
)
from zktrace.studies.identity_paper import BITS, SCALES, SURVIVAL
from zktrace.studies.rows import Row

_Printed = tuple[float, float, float, float, float]


def _paper(data: str) -> list[_Printed]:
    """tab:survival: load, diagnostic, own codeword, attribution, its standard deviation."""
    return [
        (
            round(stations * BITS / SCALES, 2),
            cell["predicted"].mean,
            cell["own"].mean,
            cell["attribution"].mean / 100,
            (cell["attribution"].deviation or 0.0) / 100,
        )
        for (told, stations), cell in SURVIVAL.items()
        if told == data
    ]


def loads(rows: Iterable[Row]) -> dict[str, dict[float, list[Mapping[str, Any]]]]:
    """Marks of trained federations by data and load, of studies that change only how many take part."""
    found: dict[str, dict[float, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        study, marks = row.trial["study"], row.outcome.get("marks")
        alike = study == "federation" or (
            study == "stressors" and str(row.trial.get("variant", "")).startswith("stations-")
        )
        if alike and marks and row.outcome.get("marked", True):
            found[dataset_of(row)][round(float(marks["load"]), 2)].append(marks)
    return found


def _over_load(
    name: str, groups: Mapping[float, list[Mapping[str, Any]]]
) -> tuple[tuple[Point, ...], tuple[float, ...]]:
    ordered = sorted(groups.items())
    values = [[float(each[name]) for each in some] for _, some in ordered]
    points = tuple((load, mean(each)) for (load, _), each in zip(ordered, values, strict=True))
    return points, tuple(pstdev(each) for each in values)


def survival_figure(rows: Sequence[Row]) -> FigureData | None:
    """`fig:survival`: attribution, own codeword and diagnostic against the load."""
    found = loads(rows)
    if not found:
        return None
    whole = []
    for data in (each for each in DATASETS if each in found or _paper(each)):
        look: dict[str, Any] = {"hue": HUES[data], "marker": MARKERS[data]}
        if data in found:
            points, spread = _over_load("attribution", found[data])
            whole.append(Curve(label=f"{DATASETS[data]}, ours", points=points, spread=spread, **look))
        if told := _paper(data):
            points, spread = tuple((x[0], x[3]) for x in told), tuple(x[4] for x in told)
            whole.append(
                Curve(label=f"{_plain(data)}, paper", points=points, spread=spread, paper=True, **look)
            )
    first = Panel(
        title="Attribution",
        x="identity load",
        y="stations attributed",
        curves=tuple(whole),
        references=(Reference(label="rank", value=1.0, upright=True),),
        y_range=(0.0, 1.08),
    )
    return FigureData(
        name="survival",
        title="Attribution and agreement against the identity load",
        description="Attribution, agreement with one's own codeword, and what the diagnostic predicts, "
        "against the load: codeword bits of all stations over BatchNorm scales.",
        panels=(first, *(_agreement(data, found[data]) for data in DATASETS if data in found)),
    )


def _agreement(data: str, groups: Mapping[float, list[Mapping[str, Any]]]) -> Panel:
    told = _paper(papers(data))
    curves = [
        Curve(label="own codeword, ours", points=_over_load("self_agreement", groups)[0]),
        Curve(
            label="diagnostic, ours",
            points=_over_load("predicted", groups)[0],
            hue="purple",
            marker="diamond",
        ),
    ]
    if told:
        curves += [
            Curve(label="own codeword, paper", points=tuple((x[0], x[2]) for x in told), paper=True),
            Curve(
                label="diagnostic, paper",
                points=tuple((x[0], x[1]) for x in told),
                hue="purple",
                marker="diamond",
                paper=True,
            ),
        ]
    return Panel(
        title=DATASETS[data],
        x="identity load",
        y="bits that agree",
        curves=tuple(curves),
        references=(Reference(label="chance", value=0.5),),
        y_range=(0.4, 1.05),
    )


def survival_figure_words(rows: Sequence[Row]) -> str:
    """Loads that were run, and whether the diagnostic stays below."""
    told = []
    for data, groups in loads(rows).items():
        below = sum(each["predicted"] <= each["self_agreement"] for some in groups.values() for each in some)
        count = sum(map(len, groups.values()))
        at = ", ".join(f"{load:g}" for load in sorted(groups))
        told.append(
            f"{DATASETS[data]}: federations at load {at}; own agreement is above the diagnostic in "
            f"{below} of {count} (paper: in every cell)."
        )
    return " ".join(told)


def _plain(data: str) -> str:
    """The paper's data, which are recorded."""
    return "GNSS" if data == "gnss" else DATASETS[data]


_ERASED: Final = 0.6  # agreement below which little is left
_ATTACKS: Final[tuple[tuple[str, Hue, Marker], ...]] = (
    ("clean", "grey", "circle"),
    ("channels pruned, 50 %", "blue", "square"),
    ("noise, 2.0", "orange", "triangle"),
    ("quantised, 2 bits", "green", "diamond"),
    ("PGD, 0.1", "purple", "down"),
    ("layers 3 and 4 reset", "blue", "plus"),
    ("trained on, 100 episodes", "orange", "cross"),
    ("distilled, 80 epochs", "green", "star"),
)


def attacked(rows: Iterable[Row], cell: PaperCell, data: str) -> dict[str, list[Row]]:
    """Rows of one attack of the paper's table on shared models, by what the paper leaves open."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        trial = row.trial
        aimed = trial["study"] == "attacks" and trial["target"] == "identity" and trial["dataset"] == data
        if aimed and cell.about(trial):
            rest = {key: each for key, each in trial["parameters"].items() if key not in cell.parameters}
            found[", ".join(f"{key} {each}" for key, each in sorted(rest.items()))].append(row)
    return dict(found)


def _own(rows: Iterable[Row]) -> float:
    return mean(float(row.outcome["marks"]["self_agreement"]) for row in rows)


def tradeoff_figure(rows: Sequence[Row]) -> FigureData | None:
    """`fig:tradeoff`: accuracy against agreement with one's own codeword, attack by attack."""
    panels = []
    for data in DATASETS:
        cells = PAPER_ATTACKS[papers(data)]
        ours, theirs = [], []
        for cell, (label, hue, marker) in zip(cells, _ATTACKS, strict=True):
            look: dict[str, Any] = {"hue": hue, "marker": marker, "joined": False}
            points = tuple(
                (_own(some), 100 * mean(float(row.outcome["accuracy"]) for row in some))
                for some in attacked(rows, cell, data).values()
            )
            if points:
                ours.append(Curve(label=label, points=points, **look))
            _, agrees, accuracy = cell.means
            told = ((agrees, accuracy),)
            theirs.append(Curve(label="" if points else label, points=told, paper=True, **look))
        if ours:
            panels.append(
                Panel(
                    title=DATASETS[data],
                    x="bits that agree with one's own codeword",
                    y="accuracy, %",
                    curves=(*ours, *theirs),
                    references=(Reference(label="erased", value=0.5, upright=True),),
                )
            )
    if not panels:
        return None
    return FigureData(
        name="tradeoff",
        title="Accuracy against what is left of the mark",
        description="Each attack on the shared model as a point: agreement with one's own codeword, and "
        "accuracy. High accuracy at an agreement of one half would be a mark erased for nothing.",
        panels=tuple(panels),
    )


def tradeoff_words(rows: Sequence[Row]) -> str:
    """Which attacks erase the mark."""
    told = []
    for data in DATASETS:
        cells = PAPER_ATTACKS[papers(data)]
        gone = [
            f"{label}{f', {rest}' if rest else ''} ({_own(some):.2f})"
            for cell, (label, _, _) in zip(cells, _ATTACKS, strict=True)
            for rest, some in attacked(rows, cell, data).items()
            if _own(some) < _ERASED
        ]
        if any(attacked(rows, cell, data) for cell in cells):
            told.append(
                f"{DATASETS[data]}: agreement falls below {_ERASED} by {', '.join(gone) or 'no attack'}."
            )
    return " ".join([*told, "Paper: by the reset of layers 3 and 4, and by distillation."])
