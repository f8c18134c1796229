"""Tables and paragraphs of Markdown, as `zktrace.studies.tables` writes them, as HTML."""

import re

from zktrace.report.html import Html, code, join, table, tag

_NUMBER = re.compile(r"[-+]?[\d.,]+(e-?\d+)?( %| pp|/\d+)?|-")


def blocks(text: str, *, caption: str) -> Html:
    """Paragraphs and tables, which an empty line divides."""
    return join(_block(each, caption) for each in text.strip().split("\n\n"))


def _block(text: str, caption: str) -> Html:
    lines = text.splitlines()
    if not all(line.startswith("|") for line in lines):
        return tag("p", inline(" ".join(lines)))
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    numeric = [
        column for column in range(len(head)) if rows and all(_NUMBER.fullmatch(row[column]) for row in rows)
    ]
    names = [each.replace("`", "") for each in head]
    return table(names, [[inline(cell) for cell in row] for row in rows], caption=caption, numeric=numeric)


def inline(text: str) -> Html:
    """Words, with code between backticks."""
    return join(code(part) if number % 2 else part for number, part in enumerate(text.split("`")))
