"""Inline SVG: scales, axes and ticks, points, lines, keys. Colours are the page's CSS variables.

Nothing is told by colour alone: series differ in the shape of their marks, cells can carry their numbers, and
every picture has a title and a description for those who do not see it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from zktrace.primitives.text import one_line
from zktrace.report.html import Child, Html, join, tag

WIDTH = 440.0  # of every picture in its own units, about CSS pixels on a phone

Shape: TypeAlias = Literal["circle", "square", "triangle", "diamond", "ring"]
Colour: TypeAlias = Literal["blue", "orange", "green", "purple", "grey", "ink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values low..high onto positions start..stop."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return round(self.start + min(1.0, max(0.0, part)) * (self.stop - self.start), 2)


def ticks(low: float, high: float, *, count: int = 6) -> list[float]:
    """At most about `count` round values (1, 2, 2.5, 5 times a power of ten) within low..high."""
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (step * factor) <= count)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def span(values: Iterable[float], *, zero: bool = False, margin: float = 0.06) -> tuple[float, float]:
    """A range that shows all values that are numbers, with some air."""
    known = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low < 1e-12 * max(1.0, abs(low), abs(high)):
        return low - (abs(low) * 0.1 or 0.5), high + (abs(high) * 0.1 or 0.5)
    air = margin * (high - low)
    return (low if zero and low == 0 else low - air), (high if zero and high == 0 else high + air)


def apart(places: Sequence[float], least: float) -> list[float]:
    """The same places, in the same order of size, moved down until no two are nearer than `least`."""
    moved = list(places)
    reached = -math.inf
    for number in sorted(range(len(places)), key=lambda each: places[each]):
        moved[number] = reached = max(places[number], reached + least)
    return moved


def picture(height: float, *children: Child, title: str, description: str, width: float = WIDTH) -> Html:
    """An SVG element of the usual width."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        preserveAspectRatio="xMidYMid meet",
    )


def label(
    x: float, y: float, words: str, *, anchor: str = "start", class_: str | None = None, limit: int = 60
) -> Html:
    """Text at a place; the rest of a long one is in the table beside the plot."""
    shown = one_line(words, limit=limit + 3)
    shown = shown if len(shown) <= limit else shown[: limit - 1] + "…"
    return tag("text", shown, x=round(x, 2), y=round(y, 2), text_anchor=anchor, class_=class_)


def mark(
    shape: Shape, x: float, y: float, *, colour: Colour, size: float = 4.0, name: str | None = None
) -> Html:
    """A point. Shapes have about the same area."""
    fill = f"var(--{colour})"
    told = None if name is None else tag("title", name)
    if shape == "circle":
        return tag("circle", told, cx=x, cy=y, r=size, fill=fill, class_="mark")
    if shape == "ring":
        return tag(
            "circle", told, cx=x, cy=y, r=size - 0.5, fill="var(--card)", stroke=fill, stroke_width=1.6
        )
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "triangle": ((0, -1.3), (1.25, 0.95), (-1.25, 0.95)),
        "diamond": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    }[shape]
    reach = size * 0.92
    path = " ".join(f"{x + dx * reach:.2f},{y + dy * reach:.2f}" for dx, dy in corners)
    return tag("polygon", told, points=Html(path), fill=fill, class_="mark")


def segment(x1: float, y1: float, x2: float, y2: float, *, class_: str) -> Html:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def across(scale: Scale, *, left: float, right: float) -> Html:
    """Horizontal grid lines with their values at the left."""
    return join(
        join(
            (
                segment(left, scale(v), right, scale(v), class_="grid"),
                label(left - 6, scale(v) + 3.5, _tick(v), anchor="end"),
            )
        )
        for v in ticks(scale.low, scale.high)
    )


def upright(scale: Scale, *, top: float, bottom: float, whole: bool = False) -> Html:
    """Values below the plot, with grid lines if `top` is above `bottom`."""
    found = [v for v in ticks(scale.low, scale.high, count=6) if not whole or v == int(v)]
    return join(
        join(
            (
                segment(scale(v), top, scale(v), bottom, class_="grid"),
                label(scale(v), bottom + 14, _tick(v), anchor="middle"),
            )
        )
        for v in found
    )


def _tick(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-12 else value:.6g}"


def legend(entries: Iterable[tuple[str, Colour, Shape | None]]) -> Html:
    """What the marks mean, as a list below a plot. Without a shape: a dashed line."""
    items = []
    for words, colour, shape in entries:
        dashes = "5 3" if shape is None else None
        stroke = f"var(--{colour})"
        line = tag("line", x1=1, y1=6, x2=25, y2=6, stroke=stroke, stroke_width=1.8, stroke_dasharray=dashes)
        point = None if shape is None else mark(shape, 13, 6, colour=colour)
        key = tag("svg", line, point, viewBox="0 0 26 12", aria_hidden="true")
        items.append(tag("li", key, tag("span", words)))
    return tag("ul", *items, class_="legend")


def figure(drawing: Html, *children: Child, caption: Child) -> Html:
    """A picture with its key and a sentence."""
    return tag("figure", drawing, *children, tag("figcaption", caption))
