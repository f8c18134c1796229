"""What a person meets who asks for help: commands by who uses them."""

import os
import subprocess
import sys

import click
import pytest
import typer

from zktrace.cli.app import COMMANDS, JUDGE, OPERATOR, RESEARCHER, STATION, WITNESS, app, run


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


def test_every_command_is_somebodys_in_the_order_of_the_life_cycle() -> None:
    assert list(dict.fromkeys(each.panel for each in COMMANDS.values())) == [
        STATION,
        OPERATOR,
        WITNESS,
        JUDGE,
        RESEARCHER,
    ]


def test_the_list_of_commands_tells_what_each_says_of_itself() -> None:
    tree = typer.main.get_command(app)
    assert isinstance(tree, click.Group)
    assert list(tree.commands) == list(COMMANDS)
    for name, command in tree.commands.items():
        assert (command.help or "").split("\n\n")[0] == COMMANDS[name].title
        assert getattr(command, "rich_help_panel", None) == COMMANDS[name].panel


def test_help_imports_no_command() -> None:
    code = "import sys; from zktrace.cli.app import run; assert run(['--help']) == 0; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert "zktrace.cli.app" in loaded
    assert not {f"zktrace.cli.{each.place.partition(':')[0]}" for each in COMMANDS.values()} & loaded


def test_a_command_that_is_nearly_there_is_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trac"]) == 2
    assert "'trace'" in capsys.readouterr().err
