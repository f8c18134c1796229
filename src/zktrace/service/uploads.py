"""Files that visitors send: streamed to the disk within a limit, and opened by nobody here.

A form of a browser and a bare body are read alike. What was sent is a file under a name of ours; the sender's
name for it is text.
"""

import os
import secrets
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from zktrace.errors import Denied, LimitExceeded, MalformedFile, Refused, Unavailable
from zktrace.primitives.text import one_line
from zktrace.service.visitors import Visitor

FIELD_LIMIT: Final = 1 << 14  # bytes of a field of a form
FIELDS_LIMIT: Final = 32
HEADERS_LIMIT: Final = 16  # of a part of a form
NAME_LIMIT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came: the fields of a form, and the one file."""

    fields: Mapping[str, str]
    path: Path | None
    name: str = ""  # as its sender calls it
    size: int = 0


async def received(request: Request, visitor: Visitor, place: Path, *, limit: int, csrf: bool = True) -> Sent:
    """The form of a request, its file on the disk; the file is gone if anything is wrong with it.

    The field `csrf` has to come before the file: nothing is written for a form of somebody else's making.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise Denied("a file is sent as multipart/form-data", status=415)
    form = _Form(visitor=visitor, place=place, limit=limit, csrf=csrf)
    try:
        parser = MultipartParser(boundary, form.callbacks())
        with kept_by_the_disk():
            async for chunk in request.stream():
                parser.write(chunk)
            parser.finalize()
        return form.sent()
    except FormParserError as error:
        form.drop()
        raise MalformedFile(f"the form cannot be read ({one_line(str(error), limit=100)})") from None
    except BaseException:
        form.drop()
        raise


async def saved(stream: AsyncIterator[bytes], place: Path, *, limit: int) -> tuple[Path, int]:
    """A bare body as a file, and its size."""
    path, handle = _new_file(place)
    size = 0
    try:
        with kept_by_the_disk(), handle:
            async for chunk in stream:
                size = _grown(size, chunk, limit)
                handle.write(chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path, size


@contextmanager
def kept_by_the_disk() -> Iterator[None]:
    """Unavailable if it is not."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"the upload cannot be kept ({(error.strerror or 'unknown reason').lower()})"
        ) from error


def sweep(place: Path, wanted: Collection[str], *, older: float = 24 * 3600) -> int:
    """Remove what was left of uploads whose service was killed: files that no job is about, a day old."""
    gone = 0
    for each in place.iterdir():
        with suppress(OSError):
            if str(each) not in wanted and each.stat().st_mtime < time.time() - older:
                each.unlink()
                gone += 1
    return gone


def _new_file(place: Path) -> tuple[Path, BinaryIO]:
    path = place / secrets.token_hex(16)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    return path, open(descriptor, "wb")


def _grown(size: int, chunk: bytes, limit: int) -> int:
    if size + len(chunk) > limit:
        raise LimitExceeded(f"more than {limit} bytes were sent")
    return size + len(chunk)


@dataclass
class _Form:
    """A form on its way, part by part."""

    visitor: Visitor
    place: Path
    limit: int
    csrf: bool
    fields: dict[str, str] = field(default_factory=dict)
    path: Path | None = None
    name: str = ""
    size: int = 0
    _handle: BinaryIO | None = None
    _headers: dict[bytes, bytes] = field(default_factory=dict)
    _key: bytes = b""
    _value: bytes = b""
    _part: str | None = None  # name of a plain field
    _data: bytes = b""

    def callbacks(self) -> Any:  # noqa: ANN401
        """For the parser."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._write,
            "on_part_end": self._end,
        }

    def sent(self) -> Sent:
        """All of it; what came of a part without an end is not what was sent."""
        if self._handle is not None:
            raise MalformedFile("the form ends in the middle of its file")
        if self.csrf:
            self._check()
        return Sent(fields=self.fields, path=self.path, name=self.name, size=self.size)

    def drop(self) -> None:
        """Nothing is kept."""
        if self._handle is not None:
            self._handle.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _check(self) -> None:
        self.visitor.check_csrf(self.fields.get("csrf", ""))

    def _begin(self) -> None:
        self._headers, self._key, self._value, self._part, self._data = {}, b"", b"", None, b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._key += data[start:end]
        _bounded(self._key)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        _bounded(self._value)

    def _header_end(self) -> None:
        if len(self._headers) >= HEADERS_LIMIT:
            raise LimitExceeded(f"a part of a form with more than {HEADERS_LIMIT} headers")
        self._headers[self._key.lower()] = self._value
        self._key, self._value = b"", b""

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            if len(self.fields) >= FIELDS_LIMIT:
                raise LimitExceeded(f"a form of more than {FIELDS_LIMIT} fields")
            self._part = name
            return
        if self.csrf:
            self._check()
        if self.path is not None:
            raise Refused("one file is sent at a time")
        self.name = one_line(options[b"filename"].decode("utf-8", "replace"), limit=NAME_LIMIT)
        self.path, self._handle = _new_file(self.place)

    def _write(self, data: bytes, start: int, end: int) -> None:
        piece = data[start:end]
        if self._part is not None:
            self._data += piece
            _bounded(self._data)
        elif self._handle is not None:
            self.size = _grown(self.size, piece, self.limit)
            self._handle.write(piece)

    def _end(self) -> None:
        if self._part is not None:
            self.fields[self._part] = self._data.decode("utf-8", "replace")
        elif self._handle is not None:
            self._handle.close()
            self._handle = None


def _bounded(data: bytes) -> None:
    if len(data) > FIELD_LIMIT:
        raise LimitExceeded(f"a field of a form of more than {FIELD_LIMIT} bytes")
