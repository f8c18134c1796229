"""docs/reproduction.md and its figures are what the saved rows come to."""

import pytest

from reproduction_page import FIGURES, PAGE, figures, page, rows_for
from zktrace.studies.exhibits import EXHIBITS


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
