"""docs/reproduction.md and its figures are what the saved rows come to."""

from dataclasses import replace

import pytest

from reproduction_page import FIGURES, PAGE, figures, page, rows_for
from zktrace.studies.exhibits import EXHIBITS, Exhibit
from zktrace.studies.figures import FigureData
from zktrace.studies.provenance import dataset_in
from zktrace.studies.rows import Row


def test_the_page_is_drawn_from_the_saved_rows() -> None:
    assert PAGE.read_text() == page(), "draw it again: python -m tests.reproduction_page --write"


def test_the_figures_are_drawn_from_the_saved_rows() -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    drawn = figures()
    assert {each.name for each in FIGURES.glob("*.svg")} == set(drawn)
    for name, text in drawn.items():
        assert (FIGURES / name).read_text() == text, f"{name}: python -m tests.reproduction_page --write"


def test_a_table_never_mixes_files_of_one_study() -> None:
    for each in EXHIBITS:
        rows, names = rows_for(each)
        assert len(names) <= len(each.studies)
        assert bool(rows) == bool(names)


def recorded(row: Row, data: str = "recordings") -> Row:
    """The same row, had its simulated GNSS data been recorded."""
    trial = dict(row.trial)
    if "dataset" in trial:
        trial["dataset"] = data
    if "preset" in trial:
        trial["preset"] = trial["preset"] | {"data": trial["preset"]["data"] | {"dataset": data}}
    return replace(row, trial=trial)


def shapes(figure: FigureData | None) -> list[list[tuple[object, ...]]]:
    """Points of each panel, whatever data are called and look like."""
    if figure is None:
        return []
    told = [{(each.points, each.paper) for each in panel.curves} for panel in figure.panels]
    return [sorted(each) for each in told]


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda each: each.anchor)
def test_recorded_gnss_stands_beside_the_papers_gnss(exhibit: Exhibit) -> None:
    given = [row for row in rows_for(exhibit)[0] if dataset_in(row.trial) == "gnss"]
    if not given:
        pytest.skip("it has no rows of simulated GNSS")
    found = [recorded(row) for row in given]
    assert shapes(exhibit.figure(found)) == shapes(exhibit.figure(given))
    ours, theirs = exhibit.table(given), exhibit.table(found)
    assert str(theirs).replace("GNSS, recorded", "GNSS") == str(ours).replace("GNSS, simulated", "GNSS")
    assert "(paper " not in exhibit.words(given) or "(paper " in exhibit.words(found)
