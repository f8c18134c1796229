"""Commands that are imported when they are used: help on all of them is written from their titles alone."""

import copy
import inspect
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command or a group of commands is, whom it is for, and the first sentences of its help."""

    place: str  # module:name, within this room
    panel: str
    title: str

    def load(self, name: str) -> click.Command:
        """The command itself."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(f"zktrace.cli.{module}"), attribute)
        around = typer.Typer()
        around.callback()(lambda: None)  # a group, even of one command
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name, rich_help_panel=self.panel)
        else:
            around.command(name, rich_help_panel=self.panel)(found)
        _reflow(around)
        return typer.main.get_group(around).commands[name]

    def heading(self, name: str) -> click.Command:
        """What a list of commands shows of it."""
        return TyperCommand(name, help=self.title, rich_help_panel=self.panel)


class Shelf(MutableMapping[str, click.Command]):
    """Commands by name. Looking one up imports it."""

    def __init__(self, entries: Mapping[str, Command]) -> None:
        self._entries = entries
        self._loaded: dict[str, click.Command] = {}

    def headings(self) -> dict[str, click.Command]:
        """Names and titles, with nothing behind them."""
        return {name: entry.heading(name) for name, entry in self._entries.items()}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            self._loaded[name] = self._entries[name].load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._entries, *self._loaded)))

    def __len__(self) -> int:
        return len(set(self._entries) | set(self._loaded))

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._loaded


def shelved(entries: Mapping[str, Command]) -> type[TyperGroup]:
    """The kind of group whose commands are these."""

    class ShelvedGroup(TyperGroup):
        def __init__(self, *, commands: object = None, **settings: Any) -> None:  # noqa: ANN401
            super().__init__(**settings)
            self._shelf = Shelf(entries)
            self.commands = self._shelf

        def list_commands(self, ctx: click.Context) -> list[str]:
            return list(self.commands)

        def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """Of the group: its commands are listed by their titles."""
            shown = copy.copy(self)
            shown.commands = self._shelf.headings()
            TyperGroup.format_help(shown, ctx, formatter)

    return ShelvedGroup


def _reflow(tree: typer.Typer) -> None:
    """Paragraphs of docstrings as one line each: the terminal's width breaks them, not the source's."""
    for command in tree.registered_commands:
        text = inspect.cleandoc(command.help or getattr(command.callback, "__doc__", None) or "")
        command.help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    for group in tree.registered_groups:
        if group.typer_instance is not None:
            _reflow(group.typer_instance)
