"""The documentation is under test: its commands run and print what it says, number by number."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import drawn_tables

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

# What is masked, and nothing else is: hashes, whole or shortened, floats in hexadecimal, dates, and times.
_MASKED = re.compile(
    r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12,63}\.\.\."
    r"|0x[0-9a-f.]+p[-+]\d+"
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?"
    r"|\b\d+(?:\.\d+)? (?:ms|s)\b"
)
# A number that differs from run to run, because keys are fresh, is not on the page: `...` stands there.
_LEFT_OUT = re.escape("...")
_NUMBER = r"-?\\d+(?:\\.\\d+)?(?:e[-+]\\d+)?"
# `<!-- $ command -->` in a page is run and not shown: what an example needs before it begins.
_COMMANDS = re.compile(r"```console\n(.*?)```|<!-- \$ (.*?) -->", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """(command, expected output) of every `$` line in the page's console blocks, in order.

    None is expected of a command that is not shown.
    """
    pairs: list[tuple[str, str | None]] = []
    for block, unseen in _COMMANDS.findall(page.read_text()):
        if unseen:
            pairs.append((unseen, None))
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = f"{command[:-1]}{more}"
            pairs.append((command, expected))
    return pairs


def normal(text: str) -> str:
    return _MASKED.sub("#", text).strip()


def says(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says; a number left out may break lines elsewhere."""
    wanted, found = normal(expected), normal(printed)
    if "..." not in wanted:
        return wanted == found
    pattern = re.sub(re.escape(_LEFT_OUT), _NUMBER, re.escape(" ".join(wanted.split())))
    return re.fullmatch(pattern, " ".join(found.split())) is not None


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
        printed = ran.stdout + ran.stderr
        if expected is None:
            assert ran.returncode == 0, f"{command}: {printed}"
        elif not says(expected, printed):
            assert normal(printed) == normal(expected), command


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("3 copies of r1 made", "2 copies of r1 made"),
        ("score 432.98", "score 432.97"),
        ("at most 1/1000 (0.001)", "at most 9/1000 (0.001)"),
        ("proof, 66134 bytes, 51 ms", "proof, 66135 bytes, 51 ms"),
        ("5 stations", "5 s"),
        ("score ..., threshold", "score unknown, threshold"),
        ("score ...", "score 1\n2"),
        ("head of 12", "head of " + "a" * 64),
    ],
)
def test_another_number_is_noticed(expected: str, printed: str) -> None:
    assert not says(expected, printed)


@pytest.mark.parametrize(
    ("expected", "printed"),
    [
        ("a" * 64 + " by alpha", "b" * 64 + " by alpha"),
        ("0123456789abcdef... is it", "fedcba9876543210... is it"),
        ("tilt 0x1.8p-3", "tilt 0x1.9p-13"),
        ("at 2026-01-31T12:00:00Z, 51 ms", "at 2027-12-01T01:02:03Z, 7.5 ms"),
        ("score ..., threshold ...", "score 432.98, threshold 91"),
    ],
)
def test_hashes_dates_times_and_what_is_left_out_may_differ(expected: str, printed: str) -> None:
    assert says(expected, printed)


def test_the_tour_is_found() -> None:
    assert len(blocks(ROOT / "README.md")) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_policies_for_a_judge_are_the_default_and_one_that_asks_for_everything() -> None:
    from zktrace.court.policy import Policy

    usual, strict = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "judging.md").read_text(), re.DOTALL)
    assert Policy.from_toml(usual.encode()) == Policy()
    for text in (usual, strict):
        assert re.findall(r"^\w+", text, re.MULTILINE) == list(Policy.__dataclass_fields__)
    wants = Policy.from_toml(strict.encode())
    switches = [name for name in Policy.__dataclass_fields__ if name.startswith(("require_", "accept_"))]
    assert all(getattr(wants, name) is name.startswith("require_") for name in switches)


@pytest.mark.parametrize(
    ("page", "table"),
    [(page, each) for page in PAGES for each in drawn_tables.tables(page)],
    ids=lambda value: str(value)[:60],
)
def test_tables_are_drawn_from_the_saved_rows(page: Path, table: drawn_tables.Drawn) -> None:
    assert table.again() == table.shown, f"{page.name}: python -m tests.drawn_tables --write"


def test_all_that_is_said_to_be_drawn_is() -> None:
    said = sum(page.read_text().count("<!-- drawn by: zktrace study table results/") for page in PAGES)
    assert said == sum(len(list(drawn_tables.tables(page))) for page in PAGES) > 20
