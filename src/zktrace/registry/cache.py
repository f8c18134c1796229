"""A ledger's state in a file, so that a new process reads only the entries that came since.

It is a cache and nothing more. It can always be made again from the log, it is never handed out, and nothing
that verifies a log reads it. Whatever is wrong with the file - cut, changed, of another version or of another
log, not readable, not writable - it counts as missing. Layout, in docs/spec/registry.md: a line with the
version, a line of JSON, the columns, and SHA-256 over all of it.
"""

import hashlib
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from zktrace.errors import Error, MalformedFile
from zktrace.primitives import merkle
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.fields import Declared, listed, octets, whole
from zktrace.primitives.files import claimed, read_bounded, sweep, write_atomic
from zktrace.registry.columns import COLUMNS, Columns, Numbers, numbers
from zktrace.registry.forms import Digest
from zktrace.registry.ledger import BUDGET_BITS, Ledger
from zktrace.registry.log import SIZE_LIMIT

MAGIC: Final = b"zkt-ledger-v2\n"  # another number whenever the rules or the columns change
FILE_LIMIT: Final = 1 << 31  # bytes
LEAST: Final = 256  # new entries that are worth a file
SHARE: Final = 256  # or this part of the log, if that is more: about when reading takes longer than writing
SAMPLE: Final = 16  # entries that are compared with the log
_HEADER_LIMIT: Final = 1 << 16
_PARTS: Final = len(COLUMNS) + list(COLUMNS.values()).count(list[bytes])  # those have their lengths, too
_CHECKSUM: Final = hashlib.sha256().digest_size

Pick = Callable[[Sequence[int]], list[bytes]]
Whole = Annotated[bytes, octets(1, BUDGET_BITS // 8 + 1)]  # a number, big-endian


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(Declared):
    """What a file is of, and how it is cut."""

    what: ClassVar = "cache"
    size: Annotated[int, whole(1, SIZE_LIMIT)]
    root: Digest
    spent: Whole  # numerator of the budget spent
    of: Whole  # its denominator
    columns: Annotated[tuple[int, ...], listed(whole(0, FILE_LIMIT), low=_PARTS, high=_PARTS)]  # bytes


def due(known: int, size: int) -> bool:
    """Whether a log of `size` entries is worth a new file where there is one of `known` (0: none)."""
    return size - known >= max(LEAST, known // SHARE)


def load(path: Path, pick: Pick) -> Ledger | None:
    """The ledger in the file, if it is one of the log that `pick` reads; else None."""
    try:
        ledger = decoded(read_bounded(path, limit=FILE_LIMIT))
        return ledger if _is_of(ledger, pick) else None
    except Error:
        return None


def save(path: Path, ledger: Ledger) -> None:
    """Write the file, for its owner alone, if that can be done and nobody else is just doing it."""
    with suppress(Error), claimed(path.parent, busy="a cache is just being written", mode=0o700):
        sweep(path)
        write_atomic(path, encoded(ledger), secret=True, replace=True)


def _is_of(ledger: Ledger, pick: Pick) -> bool:
    """Whether the log has the ledger's last entry, its first, and some between, all at their places."""
    leaves, last = ledger.leaves, ledger.size - 1
    places = sorted({round(i * last / (SAMPLE - 1)) for i in range(SAMPLE)})
    return [merkle.leaf_hash(data) for data in pick(places)] == [leaves[place] for place in places]


def encoded(ledger: Ledger) -> list[bytes]:
    """The pieces of the file."""
    columns = ledger.columns
    levels = columns.tree.levels(ledger.size)
    parts = [*levels]
    for name, kind in COLUMNS.items():
        column = getattr(columns, name)
        if kind is Numbers:
            parts.append(_number_bytes(column))
        elif kind == list[str]:
            parts.append("\n".join(column).encode())
        else:
            parts += [_number_bytes(array("Q", map(len, column))), b"".join(column)]
    header = Header(
        size=ledger.size,
        root=ledger.root,
        spent=_whole_bytes(ledger.spent.numerator),
        of=_whole_bytes(ledger.spent.denominator),
        columns=tuple(len(each) for each in parts[len(levels) :]),
    )
    pieces = [MAGIC, to_json(header.as_json()) + b"\n", *parts]
    checksum = hashlib.sha256()
    for each in pieces:
        checksum.update(each)
    return [*pieces, checksum.digest()]


def decoded(data: bytes) -> Ledger:
    """The ledger of a file, or MalformedFile."""
    end = max(len(data) - _CHECKSUM, 0)
    if not data.startswith(MAGIC) or hashlib.sha256(memoryview(data)[:end]).digest() != data[end:]:
        raise MalformedFile("cache: not a whole one of this version")
    line, _, _ = data[len(MAGIC) : len(MAGIC) + _HEADER_LIMIT].partition(b"\n")
    header = Header.from_json(from_json(line, what="cache"))
    levels = [(header.size >> height) * merkle.HASH_BYTES for height in range(header.size.bit_length())]
    cuts = list(accumulate([*levels, *header.columns], initial=len(MAGIC) + len(line) + 1))
    if cuts[-1] != end:
        raise MalformedFile("cache: columns of other lengths than it says")
    parts = iter([data[one:two] for one, two in pairwise(cuts)])
    tree = merkle.Tree([next(parts) for _ in levels])
    columns = Columns(**{name: _column(kind, parts) for name, kind in COLUMNS.items()}, tree=tree)
    spent = Fraction(int.from_bytes(header.spent, "big"), int.from_bytes(header.of, "big"))
    ledger = Ledger(columns, spent=spent)
    if ledger.root != header.root:
        raise MalformedFile("cache: not the tree that it says")
    if sum((each.budget for each in ledger.investigations.values()), Fraction(0)) != spent:
        raise MalformedFile("cache: more or less was spent than it says")
    return ledger


def _column(kind: object, parts: Iterator[bytes]) -> Any:  # noqa: ANN401
    if kind is Numbers:
        return _read_numbers(next(parts))
    if kind == list[str]:
        try:
            text = next(parts).decode()
        except UnicodeDecodeError:
            raise MalformedFile("cache: a column of texts that are none") from None
        return text.split("\n") if text else []
    cuts, joined = list(accumulate(_read_numbers(next(parts)), initial=0)), next(parts)
    return [joined[one:two] for one, two in pairwise(cuts)]


def _whole_bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big")


def _number_bytes(column: Numbers) -> bytes:
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _read_numbers(data: bytes) -> Numbers:
    column = numbers()
    if len(data) % column.itemsize:
        raise MalformedFile("cache: a column of numbers that is cut")
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column
