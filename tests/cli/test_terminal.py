"""What a person meets who asks for help: commands by who uses them."""

import os
import subprocess
import sys

from zktrace.cli.app import JUDGE, OPERATOR, RESEARCHER, STATION, app


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
