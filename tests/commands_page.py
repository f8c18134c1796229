"""docs/commands.md: every command and option, as the command line itself describes them.

python -m tests.commands_page            # print the page
python -m tests.commands_page --write    # and put it there
"""

import argparse
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path

import click
import typer

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"

HEAD = """\
# Commands

Every command with its arguments and options. This page is made from the command line's own help by
`python -m tests.commands_page --write`, and a test compares the two. The words are explained in the
[glossary](glossary.md); [README](README.md) says which page to read first.

- `zktrace COMMAND --help` says the same on a terminal. `zktrace --version` prints the version.
- Every command takes `--json`: it then prints one machine-readable object.
- `--workspace` may be left out inside a workspace: it is looked for from the current folder upwards.
- `zktrace --debug COMMAND ...` shows a traceback when something fails.

| exit code | means |
|---|---|
| 0 | done, or upheld |
| 1 | examined and rejected |
| 2 | wrong usage, unreadable input, or cannot tell |
| 3, 4 | of `trace` alone: a lead, no evidence |
| 70 | a fault of this package |
| 130, 141 | interrupted; nobody reads the output |
"""

COMMON = ("--json",)  # said once, at the top


class Shown:
    """One command as the page shows it."""

    def __init__(self, path: tuple[str, ...], command: click.Command, panel: str) -> None:
        self.name = " ".join(("zktrace", *path))
        self.command = command
        self.panel = panel  # whom it is for

    @property
    def arguments(self) -> list[click.Parameter]:
        return [each for each in self.command.params if each.param_type_name == "argument"]

    @property
    def options(self) -> list[click.Parameter]:
        return [each for each in self.command.params if each.param_type_name == "option"]


@cache
def root() -> click.Group:
    """The command line itself."""
    from zktrace.cli.app import app

    tree = typer.main.get_command(app)
    assert isinstance(tree, click.Group)
    return tree


def commands() -> list[Shown]:
    """All commands, by whom they are for, in the order of the command line."""
    found = [
        Shown(path, command, str(getattr(top, "rich_help_panel", "")))
        for name, top in root().commands.items()
        for path, command in leaves((name,), top)
    ]
    panels = dict.fromkeys(each.panel for each in found)
    return [each for panel in panels for each in found if each.panel == panel]


def leaves(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Commands under a name; a group that does something by itself is one of them."""
    if isinstance(command, click.Group):
        if command.invoke_without_command:
            yield path, command
        for name, inner in command.commands.items():
            yield from leaves((*path, name), inner)
    else:
        yield path, command


def metavar(parameter: click.Parameter) -> str:
    """What stands for the value: a choice is spelled out, a switch has none."""
    if parameter.param_type_name == "argument":
        name = getattr(parameter, "metavar", None) or (parameter.name or "").upper()
        name = name if parameter.nargs == 1 or name.endswith("...") else f"{name}..."
        return name if parameter.required else f"[{name}]"
    if getattr(parameter, "is_flag", False):
        return ""
    if isinstance(parameter.type, click.Choice):
        return " | ".join(str(each) for each in parameter.type.choices)
    return getattr(parameter, "metavar", None) or (parameter.type.name or "text").upper().removesuffix(
        " RANGE"
    )


def default(parameter: click.Parameter) -> str:
    """What holds if nothing is said; a switch is off, an option without a default says so in its help."""
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value in ("", [], ()) or callable(value):
        return ""
    if getattr(parameter, "is_flag", False):
        return (
            f"`{parameter.opts[0] if value else parameter.secondary_opts[0]}`"
            if parameter.secondary_opts
            else ""
        )
    each = value if isinstance(value, list | tuple) else [value]
    return ", ".join(f"`{one.value if isinstance(one, Enum) else one}`" for one in each)


def cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def section(shown: Shown) -> str:
    """One command: what it does, how it is called, and what its options are."""
    usage = " ".join([shown.name, *(metavar(each) for each in shown.arguments)])
    must = [f"{each.opts[0]} {metavar(each)}" for each in shown.options if each.required]
    lines = [
        f"### {shown.name}",
        "",
        *wrapped(shown.command.help or ""),
        "",
        f"    {' '.join([usage, *must])}",
        "",
    ]
    rows = []
    for each in [*shown.arguments, *shown.options]:
        if set(each.opts) & set(COMMON):
            continue
        value = metavar(each)
        names = ", ".join(each.opts + each.secondary_opts)
        name = f"`{value}`" if each in shown.arguments else f"`{names} {value}`" if value else f"`{names}`"
        rows.append(f"| {cell(name)} | {cell(default(each))} | {cell(getattr(each, 'help', None) or '')} |")
    table = ["| option | default | |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join([*lines, *table])


def wrapped(text: str, width: int = 118) -> list[str]:
    """Paragraphs of a help text as lines of a page."""
    paragraphs = [
        textwrap.fill(" ".join(part.split()), width, break_long_words=False, break_on_hyphens=False)
        for part in text.split("\n\n")
    ]
    return "\n\n".join(paragraphs).splitlines()


def page() -> str:
    """The whole page."""
    out, panel = [HEAD], ""
    for shown in commands():
        if shown.panel != panel:
            panel = shown.panel
            out.append(f"## {panel}\n")
        out.append(section(shown))
    return "\n".join(out).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print docs/commands.md.")
    parser.add_argument("--write", action="store_true", help="write the page")
    if parser.parse_args().write:
        PAGE.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
