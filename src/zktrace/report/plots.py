"""Plots of a report: curves, scores against limits, steps, histograms, drawn with `zktrace.report.svg`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from zktrace.primitives.rounding import down
from zktrace.primitives.text import one_line
from zktrace.report.html import NAME_LIMIT, Html, join, tag
from zktrace.report.svg import (
    WIDTH,
    Colour,
    Scale,
    Shape,
    across,
    apart,
    label,
    mark,
    picture,
    segment,
    span,
    upright,
)

_REACH = 3.5  # deviations of a law that are drawn
_LINE = 13.0  # between names that would lie upon each other
LABEL_LIMIT = 15  # characters of a name beside a plot; the table has the whole of it


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
    along = Scale(low=first, high=last if last > first else first + 1, start=left + 6, stop=right - 6)
    upward = Scale(low=low, high=high, start=bottom, stop=top)
    return picture(
        height,
        label(left, 13, title, class_="strong"),
        across(upward, left=left, right=right),
        segment(left, bottom, right, bottom, class_="axis"),
        upright(along, top=bottom, bottom=bottom, whole=True),
        label((left + right) / 2, height - 6, x_label, anchor="middle"),
        *(_limit_line(left, upward(each.value), right, upward(each.value), each) for each in limits),
        *(_curve(each, along, upward) for each in series),
        title=title,
        description=description,
    )


def _curve(series: Series, along: Scale, upward: Scale) -> Html:
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, value in series.points:
        if value is None or not math.isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append((along(x), upward(value)))
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
    parts.append(upright(scale, top=top, bottom=bottom))
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
    along = Scale(low=0, high=max(1, len(dots) - 1), start=left + 6, stop=right - 6)
    parts: list[Html] = [label(left, 13, title, class_="strong"), label(left, 28, y_label)]
    parts.append(across(upward, left=left, right=right))
    parts.append(upright(along, top=bottom, bottom=bottom, whole=True))
    parts.append(label((left + right) / 2, height - 6, x_label, anchor="middle"))
    lines = [upward(limit.value) for limit in limits]
    for limit, y, words in zip(limits, lines, apart(lines, _LINE), strict=True):
        parts.append(_limit_line(left, y, right, y, limit))
        parts.append(label(right, words - 4, limit.label, anchor="end", class_="halo"))
    quiet = [(n, dot) for n, dot in enumerate(dots) if not dot.strong and math.isfinite(dot.value)]
    loud = [(n, dot) for n, dot in enumerate(dots) if dot.strong and math.isfinite(dot.value)]
    for number, dot in quiet:
        x, y = along(number), upward(dot.value)
        parts.append(tag("circle", cx=x, cy=y, r=1.8, fill=f"var(--{dot.colour})", opacity=0.7))
    marks = [(along(number), upward(dot.value)) for number, dot in loud]
    for (_, dot), (x, y) in zip(loud, marks, strict=True):
        parts.append(mark(dot.shape, x, y, colour=dot.colour, size=5, name=_named(dot)))
    if len(loud) <= 12:
        for (_, dot), (x, _), y in zip(loud, marks, apart([y for _, y in marks], _LINE), strict=True):
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
    along = Scale(low=-reach, high=reach, start=left, stop=right)
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
        across(upward, left=left, right=right),
        *bars,
        segment(left, bottom, right, bottom, class_="axis"),
        upright(along, top=bottom, bottom=bottom),
        label((left + right) / 2, height - 6, x_label, anchor="middle"),
        title=title,
        description=description,
    )
