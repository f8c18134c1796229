"""The report on a training run, from the files of its folder. Works on a run that is not finished, too."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from zktrace.primitives.files import write_atomic
from zktrace.report import numbers
from zktrace.report.attribution import agreement_figure
from zktrace.report.html import Child, Html, code, facts, join, name, section, table, tag
from zktrace.report.page import page
from zktrace.report.plots import Limit, Series, line_plot
from zktrace.report.run_folder import TrainingReport, finite, read_run, with_agreement
from zktrace.report.svg import Colour, Shape, legend

_REASONS: Final = 200  # rows of the table of absences


def write_training_report(folder: Path, out: Path, *, replace: bool = True) -> None:
    """Draw the run in `folder` to the file `out`."""
    run = with_agreement(read_run(folder), folder)
    write_atomic(out, training_html(run).encode(), replace=replace)


def training_html(run: TrainingReport) -> str:
    """The whole document."""
    planned = run.count("federation", "rounds")
    state = (
        f"{len(run.rounds)} rounds" if run.result else f"not finished: {len(run.rounds)} of {planned} rounds"
    )
    dataset = _dataset(run)
    body = join(
        (
            _summary(run, dataset),
            _curves(run),
            _marks(run),
            _missing(run),
            _settings(run),
        )
    )
    return page(title=run.title, subtitle=join((dataset, "; ", state)), body=body)


def _dataset(run: TrainingReport) -> str:
    """The dataset's own note; before there is one, what the preset says."""
    note = run.result.get("dataset")
    if isinstance(note, str):
        return note
    chosen = str(run.part("data").get("dataset", "unknown data"))
    return "simulated GNSS interference" if chosen == "gnss" else chosen


def _summary(run: TrainingReport, dataset: str) -> Html:
    result = run.result
    mean, half = finite(result.get("accuracy")), finite(result.get("accuracy_half_width"))
    rows: list[tuple[str, Child]] = [("data", dataset), ("seed", str(run.spec.get("seed", "?")))]
    if result:
        interval = "" if mean is None or half is None else f" ± {100 * half:.1f} (95 %)"
        rows.insert(0, ("accuracy on test episodes", numbers.percent(mean) + interval))
        rows.append(("identity marks", "written" if result.get("marked") else "none: the control"))
    simulated = "simulated" in dataset.lower()
    words = "Everything on this page comes from simulated data." if simulated else None
    return section("Result", tag("p", words, class_="note") if words else None, facts(rows))


def _curves(run: TrainingReport) -> Html | None:
    plots = []
    if run.epochs:
        shown = [(float(each.number), each.loss) for each in run.epochs]
        plots.append(_plot("Pre-training loss", "epoch", [("cross-entropy", shown, "purple", "square")]))
        right = [(float(each.number), each.accuracy) for each in run.epochs]
        plots.append(
            _plot("Pre-training accuracy", "epoch", [("on training images", right, "purple", "square")])
        )
    if run.rounds:
        at = [float(each.number + 1) for each in run.rounds]
        curves = {
            key: [(x, getattr(each, key)) for x, each in zip(at, run.rounds, strict=True)]
            for key in ("loss", "penalty", "accuracy", "held_out", "attribution")
        }
        known = {key for key, points in curves.items() if any(value is not None for _, value in points)}
        losses: list[_Curve] = [("task", curves["loss"], "blue", "circle")]
        if "penalty" in known:
            losses.append(("identity mark (weighted)", curves["penalty"], "orange", "triangle"))
        plots.append(_plot("Loss of the stations", "round", losses))
        accuracies: list[_Curve] = [("training episodes", curves["accuracy"], "blue", "circle")]
        if "held_out" in known:
            accuracies.append(("held-out episodes", curves["held_out"], "green", "diamond"))
        final = finite(run.result.get("accuracy"))
        limits = () if final is None else (Limit(label="test, after the last round", value=final),)
        plots.append(_plot("Accuracy", "round", accuracies, limits))
        if "attribution" in known:
            found: list[_Curve] = [("share of stations", curves["attribution"], "green", "diamond")]
            plots.append(_plot("Stations attributed to themselves", "round", found, y_range=(0.0, 1.05)))
    if not plots:
        return None
    listed = table(
        ("round", "trained", "left out", "loss", "mark", "accuracy", "held out", "attributed"),
        [
            (
                each.number + 1,
                len(each.trained),
                len(each.absent) + len(each.excluded),
                numbers.fixed(each.loss, decimals=4),
                numbers.fixed(each.penalty, decimals=4),
                numbers.percent(each.accuracy),
                numbers.percent(each.held_out),
                numbers.percent(each.attribution),
            )
            for each in run.rounds
        ],
        caption="Every round",
        numeric=range(8),
    )
    below = tag("details", tag("summary", f"All rounds as a table ({len(run.rounds)} rows)"), listed)
    return section("Curves", tag("div", *plots, class_="plots"), below if run.rounds else None)


_Curve: TypeAlias = tuple[str, Sequence[tuple[float, float | None]], Colour, Shape]


def _plot(
    title: str,
    x_label: str,
    curves: Sequence[_Curve],
    limits: Sequence[Limit] = (),
    *,
    y_range: tuple[float, float] | None = None,
) -> Html:
    series = [
        Series(label=label, points=points, colour=colour, shape=shape)
        for label, points, colour, shape in curves
    ]
    picture = line_plot(
        series,
        title=title,
        description=" ".join(_told(each) for each in series),
        x_label=x_label,
        limits=limits,
        y_range=y_range,
    )
    keys: list[tuple[str, Colour, Shape | None]] = [(each.label, each.colour, each.shape) for each in series]
    return tag("figure", picture, legend([*keys, *((each.label, "ink", None) for each in limits)]))


def _told(series: Series) -> str:
    """A curve in words: where it begins and ends."""
    known = [value for _, value in series.points if value is not None]
    if not known:
        return f"{series.label}: no values."
    return f"{series.label}: from {known[0]:.4g} to {known[-1]:.4g} over {len(known)} points."


def _marks(run: TrainingReport) -> Html | None:
    marks = run.result.get("marks")
    if not isinstance(marks, dict):
        return None
    value = {key: finite(marks.get(key)) for key in marks}
    proved = value.get("within_radius")
    rows = facts(
        (
            ("stations attributed to themselves", numbers.percent(value.get("attribution"))),
            ("agreement with the own codeword", numbers.fixed(value.get("self_agreement"))),
            ("agreement with other codewords", numbers.fixed(value.get("cross_talk"))),
            ("attributions proved by distance", numbers.NONE if proved is None else f"{proved:.0f}"),
            ("load (bits per scale)", numbers.plain(value.get("load"))),
            ("predicted agreement", numbers.fixed(value.get("predicted"))),
        )
    )
    drawn = agreement_figure(run.agreement, run.stations) if run.agreement else None
    return section("Identity marks", tag("div", drawn, rows, class_="plots"))


def _missing(run: TrainingReport) -> Html:
    rows = [
        (each.number + 1, _station(run, station), kind, why)
        for each in run.rounds
        for kind, left_out in (("absent", each.absent), ("excluded", each.excluded))
        for station, why in left_out
    ]
    never = run.result.get("never_trained")
    words = "Every station that was asked trained in every round."
    if rows:
        words = f"{len(rows)} times a station that was asked did not count in a round."
    if isinstance(never, list) and never:
        names = ", ".join(_station_text(run, each) for each in never[:50] if isinstance(each, int))
        words += f" Never trained: {names}."
    shown = table(
        ("round", "station", "", "reason"),
        _merged(rows)[:_REASONS],
        caption="Absent and excluded",
        numeric=(0,),
    )
    return section("Who was absent or excluded", tag("p", words), shown if rows else None)


def _merged(rows: Iterable[tuple[int, Html, str, str]]) -> list[tuple[Child, ...]]:
    """Rounds with the same station and reason share a row."""
    found: dict[tuple[Html, str, str], list[int]] = {}
    for number, station, kind, why in rows:
        found.setdefault((station, kind, why), []).append(number)
    return [(_ranges(when), *key) for key, when in found.items()]


def _ranges(rounds: Sequence[int]) -> str:
    """1, 2, 3, 7 as 1-3, 7."""
    parts: list[list[int]] = []
    for each in rounds:
        if parts and each == parts[-1][-1] + 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    return ", ".join(f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _station_text(run: TrainingReport, station: int) -> str:
    return run.stations[station] if 0 <= station < len(run.stations) else f"station {station}"


def _station(run: TrainingReport, station: int) -> Html:
    return name(_station_text(run, station))


def _settings(run: TrainingReport) -> Html:
    preset = run.spec.get("preset")
    rows = [
        (part, key, str(value))
        for part, values in (preset.items() if isinstance(preset, dict) else ())
        for key, value in (values.items() if isinstance(values, dict) else ())
    ]
    versions = run.result.get("versions")
    known: list[tuple[str, Child]] = (
        [(str(key), str(value)) for key, value in versions.items()] if isinstance(versions, dict) else []
    )
    for key, words in (("spec", "run"), ("words", "codewords")):
        value = (run.result if key == "spec" else run.spec).get(key)
        if isinstance(value, str):
            known.append((f"SHA-256 of the {words}", code(value)))
    listed = table(("section", "key", "value"), rows, caption="The preset of this run")
    return section(
        "Where it came from",
        facts(known),
        tag("details", tag("summary", f"All settings ({len(rows)})"), listed),
    )
