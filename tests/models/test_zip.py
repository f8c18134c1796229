"""Zip archives: one reading, or none."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable

import pytest

from models.forge import scarce_memory, stored_zip
from zktrace.errors import Error, LimitExceeded, MalformedModel
from zktrace.models import Limits
from zktrace.models.zip_members import Member, read_directory, stored_members

LIMITS = Limits()
MEMBERS = {"a": b"first member", "b/c": b"", "d": b"third"}


def read(data: bytes, limits: Limits = LIMITS) -> dict[str, Member]:
    view = memoryview(data)
    return stored_members(view, read_directory(view, limits), again="store it")


def contents(data: bytes, limits: Limits = LIMITS) -> dict[str, bytes]:
    return {name: bytes(member.checked()) for name, member in read(data, limits).items()}


def refusal(data: bytes, kind: type[Error] = MalformedModel, limits: Limits = LIMITS) -> str:
    with pytest.raises(kind) as caught, scarce_memory():
        contents(data, limits)
    return str(caught.value)


def central(data: bytes, at: int) -> int:
    """Where the directory entry number `at` begins."""
    place = -1
    for _ in range(at + 1):
        place = data.index(b"PK\x01\x02", place + 1)
    return place


def patched(data: bytes, at: int, form: str, *values: int) -> bytes:
    copy = bytearray(data)
    struct.pack_into(form, copy, at, *values)
    return bytes(copy)


def streamed() -> bytes:
    """An archive with data descriptors, as written to a pipe."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            self.data += data
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
    return bytes(pipe.data)


def forced_zip64() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in MEMBERS.items():
            with archive.open(name, "w", force_zip64=True) as handle:
                handle.write(data)
    return buffer.getvalue()


@pytest.mark.parametrize("make", [lambda: stored_zip(MEMBERS), streamed, forced_zip64])
def test_members_are_found_where_a_zip_tool_finds_them(make: Callable[[], bytes]) -> None:
    data = make()
    assert contents(data) == MEMBERS
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == MEMBERS


def test_a_member_whose_crc_is_wrong_is_refused() -> None:
    data = stored_zip(MEMBERS)
    assert "CRC-32" in refusal(data.replace(b"third", b"Third"))


def test_a_compressed_member_is_refused_with_the_remedy() -> None:
    assert "store it" in refusal(stored_zip(MEMBERS, method=zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"prefix" + data,
        lambda data: data + b"x",
        lambda data: data[:-1],
        lambda data: data[:22],
        lambda data: b"",
        lambda data: patched(data, len(data) - 2, "<H", 5) + b"hello",
        lambda data: patched(data, len(data) - 18, "<H", 1),
        lambda data: patched(data, len(data) - 14, "<HH", 2, 2),
        lambda data: patched(data, len(data) - 14, "<HH", 4, 4),
        lambda data: patched(data, len(data) - 14, "<HH", 2, 3),
        lambda data: patched(data, len(data) - 10, "<I", 7),
        lambda data: patched(data, len(data) - 6, "<I", 7),
        lambda data: patched(data, len(data) - 6, "<I", 0xFFFFFFFF),
    ],
    ids=[
        "prefix",
        "suffix",
        "cut",
        "start only",
        "nothing",
        "comment",
        "disk",
        "fewer entries",
        "more entries",
        "two counts",
        "directory size",
        "directory offset",
        "offset 64",
    ],
)
def test_the_frame_must_be_exact(change: Callable[[bytes], bytes]) -> None:
    refusal(change(stored_zip(MEMBERS)))


@pytest.mark.parametrize(
    ("entry", "field", "form", "values"),
    [
        (0, 8, "<H", (1,)),  # encrypted
        (0, 8, "<H", (1 << 5,)),  # a flag nobody sets
        (0, 8, "<H", (1 << 3,)),  # a descriptor that is not there
        (0, 10, "<H", (8,)),  # deflated
        (0, 16, "<I", (0,)),  # crc
        (0, 20, "<II", (13, 13)),  # one byte more: into the next member
        (0, 20, "<II", (11, 11)),  # one byte less: a gap
        (0, 20, "<II", (12, 1 << 30)),  # two sizes
        (0, 20, "<II", (1 << 30, 12)),
        (0, 20, "<II", (1 << 31, 1 << 31)),
        (0, 20, "<II", (0xFFFFFFFF, 0xFFFFFFFF)),  # zip64 without its field
        (0, 28, "<H", (0,)),  # no name
        (0, 30, "<H", (60000,)),  # an extra field beyond the directory
        (0, 34, "<H", (1,)),  # another disk
        (1, 42, "<I", (0,)),  # overlaps the first member
        (2, 42, "<I", (1,)),
        (2, 42, "<I", (1 << 31,)),
        (0, 46, "<B", (ord("x"),)),  # another name than the local header
        (0, 46, "<B", (0xE9,)),  # not ASCII
    ],
)
def test_a_directory_entry_that_lies_is_refused(
    entry: int, field: int, form: str, values: tuple[int, ...]
) -> None:
    data = stored_zip(MEMBERS)
    refusal(patched(data, central(data, entry) + field, form, *values))


@pytest.mark.parametrize(
    ("field", "form", "value"),
    [
        (0, "<I", 0),
        (6, "<H", 8),
        (8, "<H", 8),
        (14, "<I", 1),
        (18, "<I", 1),
        (22, "<I", 1),
        (26, "<H", 0),
        (30, "<B", 0),
    ],
)
def test_a_local_header_that_contradicts_the_directory_is_refused(field: int, form: str, value: int) -> None:
    refusal(patched(stored_zip(MEMBERS), field, form, value))


@pytest.mark.parametrize(
    ("flags", "reason"), [(1, "encrypted"), (1 << 6, "encrypted"), (1 << 13, "encrypted"), (1 << 5, "flags")]
)
def test_flags_are_refused_even_if_both_headers_have_them(flags: int, reason: str) -> None:
    data = patched(stored_zip(MEMBERS), 6, "<H", flags)
    assert reason in refusal(patched(data, central(data, 0) + 8, "<H", flags))


def resized(data: bytes, size: int) -> bytes:
    """The first member made to end elsewhere, consistently: both headers, the CRC of what it covers."""
    begin = 30 + len("a")
    crc = zlib.crc32(data[begin : begin + size])
    data = patched(data, 14, "<III", crc, size, size)
    return patched(data, central(data, 0) + 16, "<III", crc, size, size)


def test_members_may_neither_overlap_nor_leave_gaps() -> None:
    data = stored_zip(MEMBERS)
    assert contents(resized(data, 12)) == MEMBERS
    assert "overlap" in refusal(resized(data, 13))
    assert "overlap" in refusal(resized(data, 60))
    assert "unexplained" in refusal(resized(data, 11))


def test_nothing_may_stand_before_the_first_member() -> None:
    buffer = io.BytesIO(b"#!/bin/sh\n")
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("a", b"first")
    with zipfile.ZipFile(buffer) as archive:
        assert archive.read("a") == b"first"
    assert "does not begin" in refusal(buffer.getvalue())


def test_two_entries_for_the_same_bytes_are_refused() -> None:
    data = stored_zip({"a": b"same", "b": b"same"})
    first = data.index(b"PK\x01\x02")
    second = central(data, 1)
    offset = struct.unpack_from("<I", data, first + 42)[0]
    refusal(patched(data, second + 42, "<I", offset))


def test_the_directory_is_bounded() -> None:
    data = stored_zip({str(at): b"" for at in range(50)})
    refusal(data, LimitExceeded, Limits(max_members=49))
    refusal(data, LimitExceeded, Limits(max_header_bytes=2000))
    assert len(read(data)) == 50


def torch_zip() -> bytes:
    """An archive with both end records."""
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    torch.save({"w": torch.zeros(2)}, buffer)
    return bytes(buffer.getvalue())


@pytest.mark.parametrize("shift", range(0, 76, 4))
def test_a_damaged_64_bit_end_record_is_refused_or_without_effect(shift: int) -> None:
    data = torch_zip()
    expected = contents(data)
    at = data.index(b"PK\x06\x06") + shift
    try:
        found = contents(patched(data, at, "<I", 0x01010101))
    except Error:
        return
    assert found == expected


@pytest.mark.parametrize(("back", "form", "values"), [(14, "<HH", (1, 1)), (10, "<I", (7,)), (6, "<I", (7,))])
def test_the_short_end_record_must_agree_with_the_long_one(
    back: int, form: str, values: tuple[int, ...]
) -> None:
    data = torch_zip()
    assert "disagree" in refusal(patched(data, len(data) - back, form, *values))
