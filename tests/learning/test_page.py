"""The page on learning is executed."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_the_examples_of_the_page_hold() -> None:
    ran = doctest.testfile(str(PAGE), module_relative=False)
    assert ran.attempted > 0
    assert ran.failed == 0
