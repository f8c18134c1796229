"""Hostile text in our messages: one line, printable, bounded."""


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
