"""The public part of a registry in one file, for auditors.

A line with the format's name, one line an entry (its canonical bytes, which hold no line end), and a line
with the head. The same log always gives the same file.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from zktrace.errors import InvalidLog, LimitExceeded, MalformedFile
from zktrace.primitives.files import open_regular, write_atomic
from zktrace.registry.log import Head
from zktrace.registry.records import ENTRY_LIMIT, Entry
from zktrace.registry.registry import Registry, Snapshot, verified

MAGIC: Final = b"zkt-registry-v1"
FILE_LIMIT: Final = 1 << 30  # bytes
ENTRIES_LIMIT: Final = 1 << 22
PAGE: Final = 128  # entries that are read at a time for a reader who takes time


def write_export(registry: Registry, path: Path, *, replace: bool = False) -> Head:
    """Write all entries and the head they have; the file is checked as a whole before it is written."""
    lines = registry.lines()
    _, head = verified(lines)
    write_atomic(path, _lines((MAGIC, *lines, head.to_text().encode())), replace=replace)
    return head


def export_of(snapshot: Snapshot) -> Iterator[bytes]:
    """The file that `write_export` would write of a snapshot, piece by piece: it costs a page of entries.

    Each page is read when it is asked for, and compared with the snapshot. If another log stands there by
    then, InvalidLog is raised: the file breaks off without its head, and `read_export` takes none without.
    """
    yield MAGIC + b"\n"
    size = snapshot.ledger.size
    for start in range(0, size, PAGE):
        yield b"".join(_lines(snapshot.lines(range(start, min(start + PAGE, size)))))
    yield snapshot.head.to_text().encode() + b"\n"


def read_export(path: Path, *, extends: Head | None = None) -> tuple[list[Entry], Head]:
    """Entries and head of an exported registry.

    MalformedFile if it is not one; InvalidLog if an entry breaks a rule, if the head is not that of the
    entries, or if the log does not extend the older head.
    """
    with open(open_regular(path, limit=FILE_LIMIT), "rb") as handle:
        lines, last = _split(handle, what=str(path))
    stated = Head.from_text(last.decode("ascii", "backslashreplace"))
    if stated.size != len(lines):
        raise InvalidLog(f"the file has {len(lines)} entries, its head says {stated.size}")
    entries, head = verified(lines, extends=extends)
    if head != stated:
        raise InvalidLog("the head in the file is not that of its entries")
    return entries, head


def _lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield part + b"\n"


def _split(handle: BinaryIO, *, what: str) -> tuple[list[bytes], bytes]:
    """The lines between the first, which names the format, and the last, which is the head."""
    if handle.readline(len(MAGIC) + 1) != MAGIC + b"\n":
        raise MalformedFile(f"{what}: does not begin with {MAGIC.decode()!r}")
    lines: list[bytes] = []
    while line := handle.readline(ENTRY_LIMIT + 2):
        if not line.endswith(b"\n"):
            raise MalformedFile(
                f"{what}: line {len(lines) + 2} is cut off or longer than {ENTRY_LIMIT} bytes"
            )
        if len(lines) > ENTRIES_LIMIT:
            raise LimitExceeded(f"{what}: more than {ENTRIES_LIMIT} entries")
        lines.append(line[:-1])
    if not lines:
        raise MalformedFile(f"{what}: has no head")
    return lines[:-1], lines[-1]
