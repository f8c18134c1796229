"""Figures drawn by Matplotlib as SVG: the same bytes each time, text as text, colours of the page.

A figure is drawn in the light colours of the style sheet; each of them then becomes its variable, so that a
page, or the style of a file of its own, can turn it dark.
"""

import html
import io
import re
from dataclasses import replace
from functools import cache
from typing import Any, Final

from zktrace.report.html import Html
from zktrace.report.page import style
from zktrace.studies.figures import Curve, FigureData, Panel

_MARKS: Final = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "down": "v",
    "plus": "P",
    "cross": "X",
    "star": "*",
    "none": "",
}
_LARGE: Final = {"triangle": 1.15, "down": 1.15, "star": 1.5, "cross": 1.1}  # of about the same area
_WIDE, _HIGH = 4.1, 3.1  # inches of a panel
_SHORT: Final = 26  # characters
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif"
_SETTINGS: Final = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "zktrace",
    "font.family": "DejaVu Sans",  # comes with Matplotlib: for the layout alone
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "path.simplify": False,
}


@cache
def palette(*, dark: bool = False) -> dict[str, str]:
    """Colours of the style sheet by their names."""
    blocks = re.findall(r":root \{(.*?)\}", style(), re.DOTALL)
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[1 if dark else 0]))


def svg_file(figure: FigureData) -> str:
    """A file of its own, light or dark by what its reader prefers."""
    light, dark = (
        ";".join(f"--{name}:{value}" for name, value in palette(dark=each).items()) for each in (False, True)
    )
    rules = f"svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}"
    drawn = _drawn(figure).replace("</desc>", f"</desc><style>{rules}</style>", 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{drawn}\n'


def svg_panels(figure: FigureData) -> list[Html]:
    """A picture for each panel, for a page that has the style sheet."""
    alone = (
        replace(figure, name=f"{figure.name}-{number}", title=panel.title, panels=(panel,))
        for number, panel in enumerate(figure.panels)
    )
    return [Html(_drawn(each)) for each in alone]


def _drawn(figure: FigureData) -> str:
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with rc_context(_SETTINGS):
        count = len(figure.panels)
        sheet = Figure(figsize=(_WIDE * count, _HIGH + 0.2 * _keys(figure)), layout="constrained")
        FigureCanvasSVG(sheet)
        for axes, panel in zip(sheet.subplots(1, count, squeeze=False)[0], figure.panels, strict=True):
            _panel(axes, panel)
        sheet.patch.set_facecolor(palette()["card"])
        file = io.StringIO()
        sheet.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _finished(file.getvalue(), figure)


def _keys(figure: FigureData) -> int:
    """Lines of the longest key."""
    return max(-(-len(_labels(each)) // _abreast(each)) for each in figure.panels)


def _labels(panel: Panel) -> list[str]:
    """What the key of a panel has to say."""
    return [*(each.label for each in panel.references), *(each.label for each in panel.curves if each.label)]


def _abreast(panel: Panel) -> int:
    """Columns of a key: two, if what it says is short."""
    return 1 if max(map(len, _labels(panel))) > _SHORT else 2


def _panel(axes: Any, panel: Panel) -> None:  # noqa: ANN401
    """One plot with its key below."""
    colours = palette()
    axes.set_facecolor(colours["card"])
    axes.set_title(panel.title, color=colours["ink"])
    axes.set_xlabel(panel.x, color=colours["soft"])
    axes.set_ylabel(panel.y, color=colours["soft"])
    axes.tick_params(colors=colours["soft"])
    axes.grid(visible=True, color=colours["grid"], linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colours["grey"])
    for each in panel.references:
        draw = axes.axvline if each.upright else axes.axhline
        draw(each.value, color=colours["ink"], linestyle=":", linewidth=1.2, label=each.label)
    for curve in panel.curves:
        _curve(axes, curve)
    if panel.places:
        axes.set_xticks(range(len(panel.places)), _broken(panel.places))
        axes.set_xlim(-0.4, len(panel.places) - 0.6)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=_abreast(panel), labelcolor=colours["soft"]
    )


def _broken(places: tuple[str, ...]) -> list[str]:
    """Long names over two lines."""
    return [each.replace(", ", ",\n").replace("+", "+\n") for each in places]


def _curve(axes: Any, curve: Curve) -> None:  # noqa: ANN401
    colours = palette()
    colour = colours[curve.hue]
    across, up = zip(*curve.points, strict=True)
    axes.errorbar(
        across,
        up,
        yerr=curve.spread if any(curve.spread) else None,
        label=curve.label or "_",  # Matplotlib leaves such a name out of the key
        color=colour,
        linestyle=("--" if curve.paper else "-") if curve.joined else "none",
        linewidth=1.2 if curve.paper else 1.8,
        marker=_MARKS[curve.marker],
        markersize=(8.0 if curve.paper else 6.0) * _LARGE.get(curve.marker, 1.0),
        zorder=2 if curve.paper else 3,  # ours inside the paper's, where both are in one place
        markerfacecolor=colours["card"] if curve.paper else colour,
        markeredgecolor=colour,
        capsize=2.5,
        elinewidth=1.0,
    )


def _finished(drawn: str, figure: FigureData) -> str:
    """Without a prologue and a size; names of its own, variables for colours, words for who does not see."""
    text = drawn[drawn.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(?<= id=")|(?<=url\(#)|(?<=href="#)', f"{figure.name}-", text)
    text = text.replace("'DejaVu Sans'", _FONT)
    for name, value in palette().items():
        if name not in ("page", "heat", "cold", "on-heat", "wash"):
            text = text.replace(f": {value}", f": var(--{name})")
    words = f"<title>{html.escape(figure.title)}</title><desc>{html.escape(figure.description)}</desc>"
    return re.sub(r"<svg([^>]*)>", rf'<svg\1 role="img">{words}', text, count=1)
