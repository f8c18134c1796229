"""Packed rows of a large roster in a file that is mapped, not read.

The file can always be made again from the key; it saves the seconds that a million rows take. Opening
checks the header, the size, and a few rows against the code. It cannot check every row that way, so
whoever names a recipient derives that recipient's row from the key again (`RowCache.check`).
"""

import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from zktrace.codes.checks import whole
from zktrace.codes.rows import BLOCK, INDEX_LIMIT, Code
from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.encoding import ByteReader
from zktrace.primitives.files import open_regular, write_atomic
from zktrace.primitives.gf2 import Bits

Progress = Callable[[int, int], None]  # rows done, rows in all

CACHE_MAGIC: Final = b"zkt-rows-v1"
HEADER_BYTES: Final = 64
_SIZE_LIMIT: Final = 1 << 46  # bytes
_SAMPLE: Final = 16  # rows compared with the code when a file is opened


@dataclass(frozen=True, kw_only=True, eq=False)
class RowCache:
    """Rows 0..count-1 of a code, as in `Code.rows`, read-only and mapped from a file."""

    path: Path
    code: Code
    rows: Bits

    @property
    def count(self) -> int:
        """Rows in the file."""
        return len(self.rows)

    @classmethod
    def build(
        cls,
        path: Path,
        code: Code,
        count: int,
        *,
        progress: Progress | None = None,
        replace: bool = False,
    ) -> Self:
        """Write rows 0..count-1 to `path`, whole or not at all, with mode 0600, and open the file."""
        count = whole(count, "the number of rows", 1, INDEX_LIMIT)
        write_atomic(path, _pieces(code, count, progress), secret=True, replace=replace)
        return cls.open(path, code)

    @classmethod
    def open(cls, path: Path, code: Code) -> Self:
        """Map a cache of `code`, or MalformedFile if the file is anything else."""
        with open(open_regular(path, limit=_SIZE_LIMIT), "rb") as handle:
            count = _read_header(handle.read(HEADER_BYTES), path, code)
            size, wanted = os.fstat(handle.fileno()).st_size, HEADER_BYTES + count * code.row_bytes
            if size != wanted:
                raise MalformedFile(f"{path}: {size} bytes, but {count} rows take {wanted}")
            mapped = mmap.mmap(handle.fileno(), wanted, access=mmap.ACCESS_READ)
        rows = np.frombuffer(mapped, dtype=np.uint8, offset=HEADER_BYTES).reshape(count, code.row_bytes)
        cache = cls(path=path, code=code, rows=rows)
        cache.check({round(i * (count - 1) / (_SAMPLE - 1)) for i in range(_SAMPLE)})
        return cache

    def check(self, indices: Iterable[int]) -> None:
        """Compare rows with the code; MalformedFile if one differs."""
        wanted = sorted(indices)
        if wanted and not 0 <= wanted[0] <= wanted[-1] < self.count:
            raise InputError(f"{self.path}: holds rows 0..{self.count - 1}, not {wanted[0]}..{wanted[-1]}")
        differs = (self.rows[wanted] != self.code.rows(wanted)).any(axis=1)
        if differs.any():
            raise MalformedFile(f"{self.path}: row {wanted[int(np.argmax(differs))]} is damaged")


def _header(code: Code, count: int) -> bytes:
    head = CACHE_MAGIC.ljust(16, b"\0") + code.fingerprint
    return head + code.length.to_bytes(8, "big") + count.to_bytes(8, "big")


def _read_header(data: bytes, path: Path, code: Code) -> int:
    """The number of rows, if the header is one of this code."""
    reader = ByteReader(data, what=str(path), error=MalformedFile)
    reader.expect(CACHE_MAGIC.ljust(16, b"\0"))
    fingerprint = reader.take(len(code.fingerprint), "the fingerprint")
    length = int.from_bytes(reader.take(8, "the length"), "big")
    count = int.from_bytes(reader.take(8, "the number of rows"), "big")
    if fingerprint != code.fingerprint:
        raise reader.fail("rows of another code")
    if length != code.length:
        raise reader.fail(f"rows of {length} bits, the code has {code.length}")
    if not 1 <= count <= INDEX_LIMIT:
        raise reader.fail(f"claims {count} rows")
    return count


def _pieces(code: Code, count: int, progress: Progress | None) -> Iterator[bytes | memoryview]:
    """The file from front to end."""
    yield _header(code, count)
    done = 0
    for block in code.blocks(0, count, BLOCK):
        yield block.data
        done += len(block)
        if progress is not None:
            progress(done, count)
