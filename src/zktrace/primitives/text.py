"""Text in our messages: hostile text on one line, printable and bounded; names in a sentence."""

from collections.abc import Sequence


def shown(text: str, *, limit: int = 80) -> str:
    """`text` quoted and escaped to printable ASCII, cut after `limit` characters."""
    quoted = ascii(text[:limit])
    if len(text) > limit or len(quoted) > limit + 2:
        return quoted[: limit + 1] + "..."
    return quoted


def one_line(text: str, *, limit: int = 500) -> str:
    """`text` with everything unprintable escaped, cut after `limit` characters."""
    line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 3] + "..."


def listing(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def copies_of(names: Sequence[str]) -> str:
    """Whose copies: a headline's end."""
    return f"{names[0]}'s copy" if len(names) == 1 else f"the copies of {listing(names)}"
