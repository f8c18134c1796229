"""Plots as inline SVG: axes and ticks, points, lines, bars, cells. Colours are the page's CSS variables.

Nothing is told by colour alone: series differ in the shape of their marks, cells can carry their numbers, and
every picture has a title and a description for those who do not see it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from zktrace.primitives.rounding import down
from zktrace.primitives.text import one_line
from zktrace.report.html import NAME_LIMIT, Child, Html, join, tag

WIDTH = 440.0  # of every picture in its own units, about CSS pixels on a phone
_REACH = 3.5  # deviations of a law that are drawn
LABEL_LIMIT = 15  # characters of a name beside a plot; the table has the whole of it

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points joined by a line, in the order of x; a point without a value interrupts it."""

    label: str
    points: Sequence[tuple[float, float | None]]
    colour: Colour = "blue"
    shape: Shape = "circle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One value and its label, if it has one."""

    label: str
    value: float
    strong: bool = False
    colour: Colour = "grey"
    shape: Shape = "circle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A value to compare with, drawn across the plot."""

    label: str
    value: float
    dashed: bool = True


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


def _limit_line(x1: float, y1: float, x2: float, y2: float, limit: Limit) -> Html:
    return tag(
        "line",
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        stroke="var(--ink)",
        stroke_width=1.3,
        stroke_dasharray="5 3" if limit.dashed else None,
    )


def _across(scale: Scale, *, left: float, right: float) -> Html:
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


def _upright(scale: Scale, *, top: float, bottom: float, whole: bool = False) -> Html:
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


def line_plot(
    series: Sequence[Series],
    *,
    title: str,
    description: str,
    x_label: str,
    y_range: tuple[float, float] | None = None,
    limits: Sequence[Limit] = (),
) -> Html:
    """Curves over a common axis; y is named by the title above the plot."""
    left, right, top, bottom, height = 46.0, WIDTH - 14, 26.0, 206.0, 246.0
    known = [v for each in series for _, v in each.points if v is not None and math.isfinite(v)]
    low, high = y_range or span([*known, *(limit.value for limit in limits)])
    places = [x for each in series for x, _ in each.points]
    first, last = (min(places), max(places)) if places else (0.0, 1.0)
    across = Scale(low=first, high=last if last > first else first + 1, start=left + 6, stop=right - 6)
    upward = Scale(low=low, high=high, start=bottom, stop=top)
    return picture(
        height,
        label(left, 13, title, class_="strong"),
        _across(upward, left=left, right=right),
        segment(left, bottom, right, bottom, class_="axis"),
        _upright(across, top=bottom, bottom=bottom, whole=True),
        label((left + right) / 2, height - 6, x_label, anchor="middle"),
        *(_limit_line(left, upward(each.value), right, upward(each.value), each) for each in limits),
        *(_curve(each, across, upward) for each in series),
        title=title,
        description=description,
    )


def _curve(series: Series, across: Scale, upward: Scale) -> Html:
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, value in series.points:
        if value is None or not math.isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append((across(x), upward(value)))
    stroke = f"var(--{series.colour})"
    lines = [
        tag(
            "polyline",
            points=Html(" ".join(f"{x:g},{y:g}" for x, y in piece)),
            fill="none",
            stroke=stroke,
            stroke_width=1.8,
            stroke_linejoin="round",
        )
        for piece in pieces
        if len(piece) > 1
    ]
    every = max(1, len(series.points) // 30)
    marks = [
        mark(series.shape, x, y, colour=series.colour, size=3.4)
        for piece in pieces
        for number, (x, y) in enumerate(piece)
        if number % every == 0 or number == len(piece) - 1
    ]
    return tag("g", *lines, *marks)


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


def dot_plot(
    dots: Sequence[Dot],
    *,
    title: str,
    description: str,
    x_label: str,
    limits: Sequence[Limit] = (),
    law: float | None = None,
) -> Html:
    """One row a label: for some dozens of values. Above them the normal law of mean 0 and deviation `law`."""
    row, top = 20.0, 28.0 + 13.0 * len(limits)
    left, right = 118.0, WIDTH - 16
    hill = 44.0 if law is not None and 0.0 < law < math.inf else 0.0
    first = top + hill
    bottom = first + row * max(0 if hill else 1, len(dots))
    reach = (-_REACH * law, _REACH * law) if hill and law is not None else ()
    scale = _value_scale(dots, limits, left + 4, right, also=reach)
    parts: list[Html] = [label(8, 13, title, class_="strong")]
    parts.append(_upright(scale, top=top, bottom=bottom))
    parts.append(label((left + right) / 2, bottom + 32, x_label, anchor="middle"))
    for number, limit in enumerate(limits):
        x, y = scale(limit.value), top - 13.0 * (len(limits) - number) + 8
        last = number == len(limits) - 1 and x + 6 * len(limit.label) < right
        parts.insert(2, _limit_line(x, y - 6, x, bottom, limit))  # below every label
        place, side = (x + 5, "start") if last else (x - 5, "end")
        parts.append(label(place, y + 2, limit.label, anchor=side, class_="halo"))
    if hill and law is not None:
        parts += [_hill(law, scale, top=top + 4, bottom=first - 4)]
        parts.append(label(left - 8, first - 8, "any innocent", anchor="end", limit=LABEL_LIMIT))
    zero = scale(max(scale.low, min(scale.high, 0.0)))
    for number, dot in enumerate(dots):
        y = first + row * (number + 0.5)
        style = "strong" if dot.strong else None
        parts.append(label(left - 8, y + 4, dot.label, anchor="end", class_=style, limit=LABEL_LIMIT))
        if math.isfinite(dot.value):
            x = scale(dot.value)
            stem = f"var(--{dot.colour})"
            parts.append(tag("line", x1=zero, y1=y, x2=x, y2=y, stroke=stem, stroke_width=1.4, opacity=0.55))
            told = _named(dot)
            parts.append(mark(dot.shape, x, y, colour=dot.colour, size=5, name=told))
    return picture(bottom + 40, *parts, title=title, description=description)


def _hill(deviation: float, scale: Scale, *, top: float, bottom: float) -> Html:
    """The density of a normal law of mean 0."""
    places = [_REACH * step / 30 for step in range(-30, 31)]
    path = " ".join(
        f"{scale(place * deviation):g},{bottom - (bottom - top) * math.exp(-place * place / 2):.2f}"
        for place in places
    )
    fill = tag("polygon", points=Html(path), fill="var(--grey)", fill_opacity=0.28)
    return join(
        (fill, tag("polyline", points=Html(path), fill="none", stroke="var(--grey)", stroke_width=1.4))
    )


def scatter_plot(
    dots: Sequence[Dot],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    limits: Sequence[Limit] = (),
) -> Html:
    """Values in their order, for hundreds; the strong ones carry their label."""
    left, right, top, bottom, height = 46.0, WIDTH - 14, 42.0, 262.0, 302.0
    upward = _value_scale(dots, limits, bottom, top)
    across = Scale(low=0, high=max(1, len(dots) - 1), start=left + 6, stop=right - 6)
    parts: list[Html] = [label(left, 13, title, class_="strong"), label(left, 28, y_label)]
    parts.append(_across(upward, left=left, right=right))
    parts.append(_upright(across, top=bottom, bottom=bottom, whole=True))
    parts.append(label((left + right) / 2, height - 6, x_label, anchor="middle"))
    for limit in limits:
        parts.append(_limit_line(left, upward(limit.value), right, upward(limit.value), limit))
        parts.append(label(right, upward(limit.value) - 4, limit.label, anchor="end", class_="halo"))
    quiet = [(n, dot) for n, dot in enumerate(dots) if not dot.strong and math.isfinite(dot.value)]
    loud = [(n, dot) for n, dot in enumerate(dots) if dot.strong and math.isfinite(dot.value)]
    for number, dot in quiet:
        x, y = across(number), upward(dot.value)
        parts.append(tag("circle", cx=x, cy=y, r=1.8, fill=f"var(--{dot.colour})", opacity=0.7))
    for number, dot in loud:
        x, y = across(number), upward(dot.value)
        parts.append(mark(dot.shape, x, y, colour=dot.colour, size=5, name=_named(dot)))
        if len(loud) <= 12:
            side = "end" if x > (left + right) / 2 else "start"
            place = x - 9 if side == "end" else x + 9
            parts.append(label(place, y + 4, dot.label, anchor=side, class_="strong", limit=LABEL_LIMIT))
    return picture(height, *parts, title=title, description=description)


def _named(dot: Dot) -> str:
    """What a mark says when it is pointed at."""
    return f"{one_line(dot.label, limit=NAME_LIMIT)}: {down(dot.value)}"


def _value_scale(
    dots: Sequence[Dot], limits: Sequence[Limit], start: float, stop: float, *, also: Sequence[float] = ()
) -> Scale:
    low, high = span([*(dot.value for dot in dots), *(limit.value for limit in limits), *also], zero=True)
    return Scale(low=low, high=high, start=start, stop=stop)


def steps_plot(steps: Sequence[str], *, failed: int | None, title: str, description: str) -> Html:
    """Steps in their order: those passed with a tick, the one that failed (counted from 1) with a cross."""
    left, top, side = 8.0, 26.0, 34.0
    pitch = (WIDTH - 2 * left - side) / max(1, len(steps) - 1)
    parts: list[Html] = [label(left, 13, title, class_="strong")]
    for number in range(1, len(steps) + 1):
        x = round(left + (number - 1) * min(pitch, side + 14), 2)
        done, bad = failed is None or number < failed, number == failed
        colour = "var(--green)" if done else "var(--orange)" if bad else "var(--line)"
        box = {"x": x, "y": top, "width": side, "height": side, "rx": 5}
        parts.append(
            tag("rect", tag("title", steps[number - 1]), **box, fill="none", stroke=colour, stroke_width=1.6)
        )
        strokes = ((9, 18, 15, 24, 26, 11),) if done else ((10, 10, 24, 24), (24, 10, 10, 24)) if bad else ()
        for stroke in strokes:
            points = " ".join(
                f"{x + dx:g},{top + dy:g}" for dx, dy in zip(stroke[::2], stroke[1::2], strict=True)
            )
            parts.append(tag("polyline", points=Html(points), fill="none", stroke=colour, stroke_width=2.6))
        parts.append(label(x + side / 2, top + side + 15, str(number), anchor="middle"))
    return picture(top + side + 22, *parts, title=title, description=description)


def histogram(values: Sequence[float], *, title: str, description: str, x_label: str, bins: int = 32) -> Html:
    """How many values fall where. Bars below zero are hollow, so that the sign shows without colour."""
    left, right, top, bottom, height = 46.0, WIDTH - 14, 26.0, 206.0, 246.0
    known = [value for value in values if math.isfinite(value)]
    reach = max((abs(value) for value in known), default=1.0) or 1.0
    counts = [0] * (2 * (bins // 2))  # a bin never holds both signs
    for value in known:
        counts[min(len(counts) - 1, int((value / reach + 1) / 2 * len(counts)))] += 1
    across = Scale(low=-reach, high=reach, start=left, stop=right)
    upward = Scale(low=0, high=max(1, *counts) * 1.05, start=bottom, stop=top)
    each = (right - left) / len(counts)
    bars = [
        tag(
            "rect",
            x=round(left + each * number + 0.5, 2),
            y=upward(count),
            width=round(each - 1, 2),
            height=round(bottom - upward(count), 2),
            fill="var(--blue)" if number >= len(counts) // 2 else "var(--card)",
            stroke="var(--blue)" if number >= len(counts) // 2 else "var(--orange)",
            stroke_width=1.2,
        )
        for number, count in enumerate(counts)
        if count
    ]
    return picture(
        height,
        label(left, 13, title, class_="strong"),
        _across(upward, left=left, right=right),
        *bars,
        segment(left, bottom, right, bottom, class_="axis"),
        _upright(across, top=bottom, bottom=bottom),
        label((left + right) / 2, height - 6, x_label, anchor="middle"),
        title=title,
        description=description,
    )


def heat_map(
    matrix: Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    description: str,
    x_label: str,
    middle: float = 0.5,
) -> Html:
    """Shares 0..1 as cells: blank at `middle`, blue above, orange with a corner below; a framed diagonal.

    Up to 12 columns a cell carries its number; up to 40 rows and columns carry their names.
    """
    count = max(1, len(columns))
    named, numbered = max(len(rows), count) <= 40, count <= 12
    left, top = (104.0 if named else 30.0), (30.0 if not named else 92.0)
    size = (WIDTH - left - 10) / count
    bottom = top + size * max(1, len(rows))
    parts: list[Html] = [label(8, 13, title, class_="strong")]
    area = {"x": left, "y": top, "width": round(size * count, 2), "height": round(bottom - top, 2)}
    parts.append(tag("rect", **area, fill="var(--wash)"))
    for i, values in enumerate(matrix):
        for j, value in enumerate(values):
            parts.append(_cell(left + j * size, top + i * size, size, value, middle, numbered=numbered))
    for i in range(min(len(rows), count)):
        parts.append(
            tag(
                "rect",
                x=round(left + i * size + 0.5, 2),
                y=round(top + i * size + 0.5, 2),
                width=round(size - 1, 2),
                height=round(size - 1, 2),
                fill="none",
                stroke="var(--ink)",
                stroke_width=1.4 if size > 8 else 0.6,
            )
        )
    if named:
        parts += [_row_name(each, left, top, size, i) for i, each in enumerate(rows)]
        parts += [_column_name(each, left, top, size, j) for j, each in enumerate(columns)]
    parts.append(label(left, bottom + 16, x_label))
    return picture(bottom + 24, *parts, title=title, description=description)


def _row_name(words: str, left: float, top: float, size: float, number: int) -> Html:
    return label(left - 6, top + (number + 0.5) * size + 3.5, words, anchor="end", limit=15)


def _column_name(words: str, left: float, top: float, size: float, number: int) -> Html:
    x, y = left + (number + 0.5) * size + 3.5, top - 6
    return tag("g", label(0, 0, words, limit=11), transform=f"translate({x:.2f} {y:.2f}) rotate(-90)")


def _cell(x: float, y: float, size: float, value: float, middle: float, *, numbered: bool) -> Html:
    """One share. Opacity is its distance from the middle."""
    if not math.isfinite(value):
        return Html("")
    above = value >= middle
    depth = min(1.0, abs(value - middle) / (max(middle, 1 - middle) or 1.0))
    gap = 0.5 if size > 8 else 0.0
    box = {"x": round(x + gap, 2), "y": round(y + gap, 2), "width": round(size - 2 * gap, 2)}
    colour = "var(--heat)" if above else "var(--cold)"
    parts = [tag("rect", **box, height=box["width"], fill=colour, fill_opacity=round(depth, 2))]
    if not above and depth >= 0.1 and size > 8:
        corner = (
            f"{x + size - 1:.2f},{y + 1:.2f} {x + size - 7:.2f},{y + 1:.2f} {x + size - 1:.2f},{y + 7:.2f}"
        )
        parts.append(tag("polygon", points=Html(corner), fill="var(--cold)"))
    if numbered:
        shown = "1" if value >= 0.9995 else f"{value:.2f}".removeprefix("0")
        style = "on" if depth > 0.55 else "cell"
        parts.append(label(x + size / 2, y + size / 2 + 4, shown, anchor="middle", class_=style))
    return join(parts)


def heat_key(*, low: str, middle: str, high: str) -> Html:
    """What the colours of a heat map mean."""
    steps = [(-1.0, low), (0.0, middle), (1.0, high)]
    items = []
    for depth, words in steps:
        fill = "var(--heat)" if depth > 0 else "var(--cold)"
        boxes = (
            tag("rect", x=7, y=0, width=12, height=12, fill="var(--wash)", stroke="var(--line)"),
            tag("rect", x=7, y=0, width=12, height=12, fill=fill, fill_opacity=abs(depth)),
        )
        items.append(
            tag("li", tag("svg", *boxes, viewBox="0 0 26 12", aria_hidden="true"), tag("span", words))
        )
    return tag("ul", *items, class_="legend")


def figure(drawing: Html, *children: Child, caption: Child) -> Html:
    """A picture with its key and a sentence."""
    return tag("figure", drawing, *children, tag("figcaption", caption))
