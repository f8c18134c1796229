"""Prose on a terminal: wrapped between words, a verdict in bold."""

import shutil
import sys
import textwrap
from typing import Final

from zktrace.cli.output import say
from zktrace.primitives.text import one_line

WIDTH: Final = 80
_LINE_LIMIT: Final = 10_000


def tell(text: str, *, strong: bool = False, hanging: int = 0) -> None:
    """Lines for a person, wrapped; `strong` ones are bold where that can be shown. Nothing is nothing.

    The rest of a line that is broken starts `hanging` places deeper. What is to be pasted, commands and
    paths, goes through `say` instead: it must stay one line.
    """
    if not text:
        return
    shown = wrapped(text, columns(), hanging=hanging)
    if not strong or not sys.stdout.isatty():
        say(shown)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(shown, style="bold"))


def columns() -> int:
    """WIDTH, or what there is if that is less."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH


def sign(ok: bool) -> str:
    """A tick or a cross, or words where there is no such character."""
    try:
        "\N{CHECK MARK}\N{BALLOT X}".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "ok" if ok else "NO"
    return "\N{CHECK MARK}" if ok else "\N{BALLOT X}"


def wrapped(text: str, width: int = WIDTH, *, hanging: int = 0) -> str:
    """Each line broken between words; what follows is indented like it, a list's item two places deeper."""
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width, hanging))


def _parts(line: str, width: int, hanging: int) -> list[str]:
    shown = one_line(line, limit=_LINE_LIMIT)
    if len(shown) <= width:
        return [shown]
    indent = shown[: len(shown) - len(shown.lstrip())]
    deeper = "  " if shown.lstrip().startswith("- ") else " " * hanging
    return textwrap.wrap(
        shown,
        max(width, len(indent) + 20),
        subsequent_indent=indent + deeper,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [shown]
