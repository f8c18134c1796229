"""The scores of a case: stations against thresholds, and how the readout is spread."""

import math
from collections.abc import Sequence
from typing import Final

from zktrace.report import numbers
from zktrace.report.case_values import CarrierSection, CaseReport, StationScore
from zktrace.report.html import Html, name, section, table, tag
from zktrace.report.plots import Dot, Limit, dot_plot, histogram, scatter_plot
from zktrace.report.svg import Colour, Shape, figure, legend

ROWS_WITH_NAMES: Final = 40  # more stations than this are drawn as a cloud
DRAWN: Final = 2000  # stations in a plot or table; the highest scores are kept


def carrier_section(part: CarrierSection) -> Html:
    """What one carrier says: a plot, the readout, and the scores as a table."""
    drawn = _highest(part.scores)
    left_out = len(part.scores) - len(drawn)
    plots = [_score_figure(part, drawn, left_out)]
    if part.readout:
        plots.append(_readout(part))
    rows = [
        (name(each.station), numbers.down(each.score), _status(each)) for each in sorted(drawn, key=_by_score)
    ]
    listed = table(
        ("station", part.unit, ""), rows, caption=f"Scores on the {part.carrier} carrier", numeric=(1,)
    )
    return section(
        f"Carrier: {part.carrier}",
        tag("p", part.description),
        tag("div", *plots, class_="plots"),
        tag("details", tag("summary", f"Scores as a table ({len(rows)} rows)"), listed) if rows else None,
    )


def case_figure(case: CaseReport) -> Html:
    """The scores of the first carrier against their thresholds: a case at a glance."""
    part = case.carriers[0]
    drawn = _highest(part.scores)
    return _score_figure(part, drawn, len(part.scores) - len(drawn))


def _highest(scores: Sequence[StationScore]) -> list[StationScore]:
    """At most DRAWN of them, the named and the highest, in the order of the roster."""
    if len(scores) <= DRAWN:
        return list(scores)
    order = sorted(range(len(scores)), key=lambda i: (not scores[i].named, *_by_score(scores[i])))
    return [scores[i] for i in sorted(order[:DRAWN])]


def _by_score(each: StationScore) -> tuple[float, str]:
    return (math.inf if math.isnan(each.score) else -each.score, each.station)


def _status(each: StationScore) -> str:
    words = ("named", each.named), ("lead", each.lead and not each.named), ("revoked", each.revoked)
    return ", ".join(word for word, holds in words if holds)


def _score_figure(part: CarrierSection, drawn: Sequence[StationScore], left_out: int = 0) -> Html:
    """Scores against thresholds, and beside them how an innocent's score is spread."""
    known = (
        ("certified, opposite", part.opposite, False),
        ("candidate threshold", part.candidate, True),
        ("certified threshold", part.threshold, False),
    )
    limits = [
        Limit(label=label, value=value, dashed=dashed)
        for label, value, dashed in known
        if value is not None and math.isfinite(value)
    ]
    dots = [_dot(each) for each in drawn]
    named = [each.station for each in drawn if each.named]
    told = f"Thresholds and {len(dots)} scores; named: {', '.join(named[:20]) or 'nobody'}."
    title = f"Scores and thresholds, {part.carrier} carrier"
    crowd = len(dots) > ROWS_WITH_NAMES
    if crowd:
        picture = scatter_plot(
            dots,
            title=title,
            description=told,
            x_label="stations",
            y_label=part.unit,
            limits=limits,
        )
    else:
        picture = dot_plot(
            dots, title=title, description=told, x_label=part.unit, limits=limits, law=part.deviation
        )
    keys: list[tuple[str, Colour, Shape | None]] = []
    keys += [("named", "blue", "diamond")] if named else []
    keys += [("lead", "orange", "triangle")] if any(each.lead and not each.named for each in drawn) else []
    keys += [("not named", "grey", "circle")] if any(not (each.named or each.lead) for each in drawn) else []
    return figure(picture, legend(keys) if keys else None, caption=_score_words(part, left_out, crowd=crowd))


def _score_words(part: CarrierSection, left_out: int, *, crowd: bool) -> str:
    words = [
        "No certificate was found for this carrier: no score can be certified."
        if part.threshold is None
        else "A station is named only if its score lies beyond the certified threshold."
    ]
    if part.deviation is not None and not crowd:
        words.append(
            "The hill shows how the score of any innocent station is spread, by the law of the code."
        )
    if part.others:
        whose = f"{part.others} other stations" if part.scores else f"the {part.others} stations"
        words.append(f"Not shown: the scores of {whose}, which would give rows away.")
    if left_out:
        words.append(f"{left_out} further stations with lower scores are not drawn.")
    return " ".join(words)


def _dot(each: StationScore) -> Dot:
    if each.named:
        return Dot(label=each.station, value=each.score, strong=True, colour="blue", shape="diamond")
    if each.lead:
        return Dot(label=each.station, value=each.score, strong=True, colour="orange", shape="triangle")
    return Dot(label=each.station, value=each.score)


def _readout(part: CarrierSection) -> Html:
    picture = histogram(
        part.readout,
        title=f"Readout, {part.carrier} carrier",
        description=f"Histogram of {len(part.readout)} values read from the suspect.",
        x_label=part.readout_unit,
    )
    spread = f"How the {len(part.readout)} values read from the suspect are spread (number of positions)."
    words = f"{spread} {part.readout_caption}".rstrip()
    return figure(picture, caption=words)
