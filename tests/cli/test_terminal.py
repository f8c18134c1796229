"""What a person at a terminal meets: help by who uses a command, whole words, a verdict that stands out."""

import os
import pty
import subprocess
import sys

import pytest

from zktrace.cli.app import JUDGE, OPERATOR, RESEARCHER, STATION, app
from zktrace.cli.output import on_terminal


def test_commands_stand_under_who_uses_them() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "zktrace", "--help"],
        env=os.environ | {"COLUMNS": "80", "TERMINAL_WIDTH": "80"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert max(len(line) for line in shown.splitlines()) <= 80
    panel = ""
    found: dict[str, str] = {}
    for line in shown.splitlines():
        if line.startswith("╭─ "):
            panel = line.removeprefix("╭─ ").partition(" ─")[0]
        elif line.startswith("│ ") and line[2] not in " -":
            found[line[2:].split()[0]] = panel
    assert (found["credential"], found["judge"], found["study"]) == (STATION, JUDGE, RESEARCHER)
    assert {found[name] for name in ("init", "train", "dispatch", "trace", "status", "cases")} == {OPERATOR}
    assert "Commands" not in found.values()  # nobody's


def test_every_command_is_somebodys() -> None:
    panels = {STATION, OPERATOR, JUDGE, RESEARCHER}
    assert {each.rich_help_panel for each in app.registered_commands + app.registered_groups} == panels


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("short enough", ["short enough"]),
        ("  " + "word " * 20, ["  word word word word word", *["    word word word word word"] * 3]),
        ("a" * 50, ["a" * 50]),
        ("check it: zktrace judge " + "x " * 30, ["check it: zktrace judge " + "x " * 30]),
        ("CERTIFIED: bravo", ["\x1b[1mCERTIFIED: bravo\x1b[0m"]),
        ("", [""]),
    ],
)
def test_lines_are_cut_between_words(line: str, expected: list[str]) -> None:
    assert on_terminal(line, width=30)[: len(expected)] == expected


def test_a_pipe_gets_lines_as_they_are_and_a_terminal_whole_words() -> None:
    text = "word " * 40
    code = f"from zktrace.cli.output import say; say({text!r})"
    environment = os.environ | {"COLUMNS": "80"}
    piped = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert piped.stdout == text + "\n"
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", code], env=environment, stdout=follower, check=True)
    os.close(follower)
    shown = os.read(leader, 4096).decode().replace("\r\n", "\n").splitlines()
    os.close(leader)
    assert len(shown) > 1
    assert all(len(line) <= 80 and set(line.split()) == {"word"} for line in shown)
