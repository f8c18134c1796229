"""The documentation is under test: its commands run and print what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")])

# what differs from run to run: long hexadecimal names, floats in hexadecimal, and numbers
_VARYING = re.compile(r"\b[0-9a-f]{64}\b|0x[0-9a-f.]+p[-+]\d+|\d+")


def blocks(page: Path) -> list[tuple[str, str]]:
    """(command, expected output) of every `$` line in the page's console blocks, in order."""
    pairs: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            pairs.append((command, expected))
    return pairs


def normal(text: str) -> str:
    return _VARYING.sub("#", text).strip()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_it_says(page: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "110"}
    for command, expected in blocks(page):
        ran = subprocess.run(  # noqa: S602
            command,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert normal(ran.stdout + ran.stderr) == normal(expected), command


def test_the_tour_is_found() -> None:
    assert len(blocks(ROOT / "README.md")) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


_DRAWN = re.compile(r"<!-- drawn by: zktrace study table (\S+) --kind (\S+) -->\n\n(.*?)\n\n", re.DOTALL)
TABLES = [(page, *found) for page in PAGES for found in _DRAWN.findall(page.read_text())]


@pytest.mark.parametrize(("page", "rows", "kind", "shown"), TABLES, ids=lambda value: str(value)[:40])
def test_tables_are_drawn_from_the_saved_rows(page: Path, rows: str, kind: str, shown: str) -> None:
    from zktrace.studies.rows import Rows
    from zktrace.studies.tables import TABLES as KINDS

    assert KINDS[kind](Rows(ROOT / rows).read()) == shown, f"{page.name}: draw it again"
