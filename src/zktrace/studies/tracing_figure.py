"""The figure of coalitions: who is traced, who is framed, and how far scores lie from the threshold."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from zktrace.certificates.lengths import candidate_threshold
from zktrace.studies.baselines_tables import PAPER_FRAMING, framing
from zktrace.studies.cells import DATASETS, papers
from zktrace.studies.figures import HUES, MARKERS, Curve, FigureData, Hue, Marker, Panel, Point, Reference
from zktrace.studies.rows import Row
from zktrace.studies.tracing_rows import CANDIDATE, NORMAL, TEN, Setting
from zktrace.studies.tracing_tables import PAPER_COLLUSION, SIZES

LEVEL: Final = 1e-3
_INNOCENT: Final[Mapping[str, Marker]] = {"gnss": "cross", "cifar10": "plus", "recordings": "star"}
_TOLD: Final = (("weight", NORMAL), ("feature", CANDIDATE))  # by which threshold the paper's figure decides


class Leaked(NamedTuple):
    """A suspect that these members put together, and what came of it."""

    members: int
    caught: int
    framed: int
    sigma: Mapping[str, Mapping[str, float | None]]

    @property
    def traced(self) -> bool:
        """Whether a member was named, and nobody else."""
        return self.caught > 0 and not self.framed


Leaks: TypeAlias = dict[tuple[str, str, str], list[Leaked]]


def leaks(rows: Iterable[Row]) -> Leaks:
    """Averages of the usual ten stations, by data, carriers and profile; several carriers at once last.

    A row has one coalition, or all of a size.
    """
    found: Leaks = defaultdict(list)
    for row in rows:
        trial = row.trial
        if not drawn(row):
            continue
        some = row.outcome["leaks"] if trial["part"] == "coalitions" else [trial | row.outcome]
        found[trial["dataset"], "+".join(trial["carriers"]), trial["profile"]] += [
            Leaked(
                members=len(each["members"]),
                caught=each["caught"],
                framed=each["framed"],
                sigma=each["sigma"],
            )
            for each in some
        ]
    return dict(sorted(found.items(), key=lambda each: (each[0][0], each[0][1].count("+"), *each[0])))


def drawn(row: Row) -> bool:
    """Whether the figure has a row's coalitions."""
    trial = row.trial
    leaked = trial["study"] == "tracing" and trial.get("part") in ("coalition", "coalitions")
    return leaked and Setting.of(trial).usual


_TRACED: Final[tuple[tuple[Hue, Marker], ...]] = (
    ("blue", "circle"),
    ("orange", "square"),
    ("green", "triangle"),
    ("purple", "diamond"),
    ("grey", "down"),
    ("blue", "plus"),
    ("orange", "star"),
)


def tracing_figure(rows: Sequence[Row]) -> FigureData | None:
    """`fig:tracing`: coalitions traced and innocents framed by size; scores against the threshold."""
    found = leaks(rows)
    if not found:
        return None
    sets = list(dict.fromkeys(key[1:] for key in found))
    looks = {key: _TRACED[number % len(_TRACED)] for number, key in enumerate(sets)}
    band = _band(rows)
    panels = [_traced(data, found, looks, band) for data in DATASETS if any(key[0] == data for key in found)]
    return FigureData(
        name="tracing",
        title="Coalitions traced, innocents framed, and the margin of scores",
        description="Share of coalitions of each size in which a member and nobody else was named, share in "
        "which an innocent was named, and the least owner's and greatest innocent's score of single copies. "
        "Ours are decided under certificates, the paper's by thresholds alone.",
        panels=(*panels, _margins(found)),
    )


def _traced(
    data: str,
    found: Leaks,
    looks: Mapping[tuple[str, str], tuple[Hue, Marker]],
    band: tuple[Reference, ...],
) -> Panel:
    curves, everybody = [], []
    for (where, *which), some in found.items():
        if where != data:
            continue
        hue, marker = looks[which[0], which[1]]
        points = tuple(_share(some, lambda each: each.traced))
        curves.append(Curve(label=f"{which[0]}, profile {which[1]}", points=points, hue=hue, marker=marker))
        everybody += some
    framed = tuple(_share(everybody, lambda each: each.framed > 0))
    curves.append(Curve(label="innocent framed, any", points=framed, hue="grey", marker="cross"))
    for carrier, rule in _TOLD:
        values = PAPER_COLLUSION.get((carrier, papers(data), TEN, rule), {})
        points = tuple((float(x), values[size]) for x, size in enumerate(SIZES) if size in values)
        if points:
            hue, marker = looks.get((carrier, "paper"), ("grey", "star"))
            curves.append(
                Curve(label=f"{carrier}, in the paper", points=points, hue=hue, marker=marker, paper=True)
            )
    return Panel(
        title=DATASETS[data],
        x="members of a coalition",
        y="share of coalitions",
        curves=tuple(curves),
        references=band,
        places=tuple(map(str, SIZES)),
        y_range=(-0.04, 1.08),
    )


def _band(rows: Sequence[Row]) -> tuple[Reference, ...]:
    """How often DeepMarks frames somebody by averaged copies: ours where there are rows, and the paper's."""
    counts = framing(rows)
    if counts is None:
        return ()
    ours = Reference(label="DeepMarks frames somebody", value=counts[0] / counts[1])
    paper = (Reference(label=f"DeepMarks {words}", value=value) for words, value in PAPER_FRAMING.items())
    return ours, *paper


def _share(some: Sequence[Leaked], holds: Callable[[Leaked], bool]) -> Iterable[Point]:
    """By size, where there are some of it."""
    for place, size in enumerate(SIZES):
        here = [holds(each) for each in some if each.members == size]
        if here:
            yield float(place), sum(here) / len(here)


def _margins(found: Leaks) -> Panel:
    """Scores of single copies in deviations of an innocent's, by carrier; of copies with one alone."""
    own: dict[tuple[str, str], list[float]] = defaultdict(list)
    other: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (data, carriers, profile), some in found.items():
        for leak in (each for each in some if each.members == 1 and "+" not in carriers):
            for carrier, each in leak.sigma.items():
                key = f"{carrier}, {profile}", data
                for into, name in ((own, "least_member"), (other, "greatest_other")):
                    value = each[name]
                    into[key] += [] if value is None else [value]
    places = tuple(sorted({key[0] for key in own}))
    curves = []
    for data in DATASETS:
        keys = [(place, (each, data)) for place, each in enumerate(places)]
        least = tuple((float(place), min(own[key])) for place, key in keys if own.get(key))
        most = tuple((float(place), max(other[key])) for place, key in keys if other.get(key))
        look: dict[str, Any] = {"hue": HUES[data], "joined": False}
        if least:
            label = f"least owner, {DATASETS[data]}"
            curves.append(Curve(label=label, points=least, marker=MARKERS[data], **look))
        if most:
            label = f"greatest innocent, {DATASETS[data]}"
            curves.append(Curve(label=label, points=most, marker=_INNOCENT[data], **look))
    threshold = candidate_threshold(length=1, recipients=TEN, level=LEVEL)
    return Panel(
        title="Scores of single copies",
        x="carrier, profile",
        y="deviations of an innocent's score",
        curves=tuple(curves),
        references=(Reference(label="candidate threshold", value=threshold),),
        places=places,
    )


def tracing_figure_words(rows: Sequence[Row]) -> str:
    """Coalitions in all, and innocents among the named."""
    found = [each for some in leaks(rows).values() for each in some]
    traced, framed = sum(each.traced for each in found), sum(each.framed > 0 for each in found)
    return (
        f"{len(found)} coalitions of one to eight: in {traced} a member and nobody else was named, in "
        f"{framed} an innocent (paper: none). The candidate threshold is 4.3 deviations for ten stations "
        "and a budget of 1/1000."
    )
