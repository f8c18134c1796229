"""The report on the public identity marks of a model: stations against codewords."""

from collections.abc import Sequence

from zktrace.report import numbers
from zktrace.report.heat import heat_key, heat_map
from zktrace.report.html import Html, code, facts, join, name, section, table, tag
from zktrace.report.page import page
from zktrace.report.svg import figure
from zktrace.tracing.attribution import Attribution


def attribution_html(found: Attribution) -> str:
    """The whole document."""
    names = [each.station for each in found.stations]
    summary = facts(
        (
            ("stations attributed to themselves", numbers.percent(found.attribution)),
            ("agreement with the own codeword", numbers.fixed(found.self_agreement)),
            ("agreement with other codewords", numbers.fixed(found.cross_talk)),
            ("bits of a codeword", found.bits),
            ("least distance of two codewords", f"{found.codeword_distance} bits"),
        )
    )
    warning = (
        "A match is statistical evidence that a codeword is present in the model, not of who put it there: "
        "public marks can be copied. A credential proof shows who holds it."
    )
    listed = table(
        ("station", "agrees", "best other", "attributed to", "bits off", "proved"),
        [
            (
                name(each.station),
                numbers.fixed(each.agreement),
                numbers.fixed(each.best_other),
                "several" if each.attributed is None else name(each.attributed),
                each.distance,
                "yes" if each.within_radius else "no",
            )
            for each in found.stations
        ],
        caption="Each station's component; proved: by its distance to all codewords",
        numeric=(1, 2, 4),
    )
    body = join(
        (
            section("Summary", tag("p", warning, class_="note"), summary),
            section(
                "Stations and codewords",
                tag("div", agreement_figure(found.matrix, names), listed, class_="plots"),
            ),
        )
    )
    subtitle = join(("Model ", name(found.model), ", ", code(found.digest)))
    return page(title="Identity marks in a model", subtitle=subtitle, body=body)


def agreement_figure(matrix: Sequence[Sequence[float]], names: Sequence[str]) -> Html:
    """The heat map of agreement, with its key."""
    picture = heat_map(
        matrix,
        rows=names,
        columns=names,
        title="Agreement of components and codewords",
        description=f"{len(names)} stations' components (rows) against {len(names)} codewords (columns).",
        x_label="rows: component read for a station; columns: codeword",
    )
    key = heat_key(low="0 (opposite)", middle="0.5 (chance)", high="1 (all bits agree)")
    words = (
        "Where marks hold, the framed diagonal is strong and everything else is near one half, the agreement "
        "of unrelated words."
    )
    return figure(picture, key, caption=words)
