"""Heat maps: shares as cells, with the numbers in them while there is room."""

import math
from collections.abc import Sequence

from zktrace.report.html import Html, join, tag
from zktrace.report.svg import WIDTH, label, picture


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
