"""Figures as data: panels with curves. Nothing is drawn here.

Filled marks on full lines are ours, open marks on broken lines the paper's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from zktrace.studies.rows import Row

Hue: TypeAlias = Literal["blue", "orange", "green", "purple", "grey"]
Marker: TypeAlias = Literal[
    "circle", "square", "triangle", "diamond", "down", "plus", "cross", "star", "none"
]
Point: TypeAlias = tuple[float, float]

# one look for each set of data, in every figure
HUES: Final[Mapping[str, Hue]] = {"gnss": "orange", "cifar10": "blue", "recordings": "green"}
MARKERS: Final[Mapping[str, Marker]] = {"gnss": "square", "cifar10": "circle", "recordings": "triangle"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points in the order of x, with their standard deviations where there are some."""

    label: str  # empty: the key leaves it out
    points: tuple[Point, ...]
    spread: tuple[float, ...] = ()
    hue: Hue = "blue"
    marker: Marker = "circle"
    joined: bool = True
    paper: bool = False  # the paper's: open marks, a broken line


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A value to compare with, drawn across a panel."""

    label: str
    value: float
    upright: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plot. With `places`, x counts them from 0."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    references: tuple[Reference, ...] = ()
    places: tuple[str, ...] = ()
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureData:
    """Panels side by side, and what they show for those who do not see them."""

    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]


def dataset_of(row: Row) -> str:
    """The data of a row, whichever way its study writes it."""
    return str(row.trial.get("dataset") or row.trial["preset"]["data"]["dataset"])
