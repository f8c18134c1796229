"""Zip archives whose members are stored, not compressed: where each member's bytes lie.

Far stricter than a zip tool, because an archive that two programs read differently is an attack. The file
must be exactly: members from offset 0 on, one after the other without a gap; the central directory; its end
record, without a comment. Each local header must repeat what the directory says. Nothing is decompressed,
so nothing can inflate.
"""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models.limits import Limits
from zktrace.primitives.text import shown

MAGIC = b"PK\x03\x04"

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<4sIQI")
_DESCRIPTOR = b"PK\x07\x08"
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
_HAS_DESCRIPTOR = 1 << 3
_UTF8 = 1 << 11
_STORED = 0
_NEWEST = 63  # version of the format, 6.3
_FOLDER = 0x10  # among the attributes of DOS
_ZIP64 = 1
# Extra fields that say nothing about name or content: times, owners, torch's padding. Others do: 0x7075 holds
# a name that newer readers prefer.
_HARMLESS = frozenset((0x5455, 0x7875, 0x4246))


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryLine:
    """One line of the central directory."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int  # bytes in the file
    size: int  # bytes after decompression
    offset: int  # of the local header


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The central directory: its entries in the order of their offsets, and where it begins."""

    entries: tuple[DirectoryLine, ...]
    begin: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A stored member: its bytes as a view of the archive, and the CRC-32 they should have."""

    name: str
    data: memoryview
    crc: int

    def checked(self) -> memoryview:
        """The bytes, whose CRC-32 has been found right."""
        found = zlib.crc32(self.data)
        if found != self.crc:
            raise MalformedModel(
                f"zip member {shown(self.name)}: CRC-32 {found:08x}, the directory says {self.crc:08x}"
            )
        return self.data


def read_directory(data: memoryview, limits: Limits) -> Directory:
    """The central directory of a whole archive. Looks at no member yet."""
    count, size, begin, end = _find_directory(data)
    if count > limits.max_members:
        raise LimitExceeded(f"{count} zip members, the limit is {limits.max_members}")
    if size > limits.max_header_bytes:
        raise LimitExceeded(f"zip directory of {size} bytes, the limit is {limits.max_header_bytes}")
    if begin + size != end:
        raise MalformedModel("the zip directory does not end where its end record begins")
    entries = []
    at = begin
    for _ in range(count):
        entry, at = _entry(data, at, end)
        entries.append(entry)
    if at != end:
        raise MalformedModel(f"the zip directory has {end - at} bytes after its last entry")
    if len({entry.name for entry in entries}) != count:
        raise MalformedModel("two zip members have the same name")
    return Directory(entries=tuple(sorted(entries, key=lambda entry: entry.offset)), begin=begin)


def _find_directory(data: memoryview) -> tuple[int, int, int, int]:
    """Number of entries, size and offset of the directory, and the offset of the record that ends it."""
    at = len(data) - _END.size
    if at < 0 or bytes(data[at : at + 4]) != b"PK\x05\x06":
        raise MalformedModel("no zip end record at the end of the file (cut off, or something appended)")
    _, disk, first, here, count, size, begin, comment = _END.unpack_from(data, at)
    if comment or disk or first or here != count:
        raise MalformedModel("a zip archive with a comment or in several parts")
    locator = at - _LOCATOR64.size
    if locator < 0 or bytes(data[locator : locator + 4]) != b"PK\x06\x07":
        return count, size, begin, at
    return _find_directory64(data, locator, short=(count, size, begin))


def _find_directory64(
    data: memoryview, locator: int, *, short: tuple[int, int, int]
) -> tuple[int, int, int, int]:
    """The same from the 64-bit end record, which must agree with the short one where that one can tell."""
    _, disk, at, disks = _LOCATOR64.unpack_from(data, locator)
    if disk or disks != 1 or at + _END64.size != locator:
        raise MalformedModel("the 64-bit end record of the zip archive is not where it should be")
    magic, rest, _, _, disk, first, here, count, size, begin = _END64.unpack_from(data, at)
    if magic != b"PK\x06\x06" or rest != _END64.size - 12 or disk or first or here != count:
        raise MalformedModel("the 64-bit end record of the zip archive is damaged")
    for said, full, meant in zip(short, (_FULL16, _FULL32, _FULL32), (count, size, begin), strict=True):
        if said not in (meant, full):
            raise MalformedModel("the two end records of the zip archive disagree")
    return count, size, begin, at


def _entry(data: memoryview, at: int, end: int) -> tuple[DirectoryLine, int]:
    """The directory entry at `at`, and where the next one begins."""
    if at + _CENTRAL.size > end:
        raise MalformedModel("the zip directory ends inside an entry")
    magic, _, needs, flags, method, _, _, crc, packed, size, *more = _CENTRAL.unpack_from(data, at)
    name_size, extra_size, comment_size, disk, _, attributes, offset = more
    name_at = at + _CENTRAL.size
    after = name_at + name_size + extra_size + comment_size
    if magic != b"PK\x01\x02" or disk or after > end:
        raise MalformedModel("the zip directory has a damaged entry")
    if needs & 0xFF > _NEWEST or attributes & _FOLDER:  # zipfile reads no such member, torch reads nothing
        raise MalformedModel("a zip member is marked as a folder, or needs a newer reader")
    raw_name = bytes(data[name_at : name_at + name_size])
    extra = _extras(data[name_at + name_size : name_at + name_size + extra_size])
    size, packed, offset = _widen(extra, (size, packed, offset))
    entry = DirectoryLine(
        name=_decode(raw_name, flags),
        raw_name=raw_name,
        flags=flags,
        method=method,
        crc=crc,
        packed=packed,
        size=size,
        offset=offset,
    )
    return entry, after


def _decode(raw: bytes, flags: int) -> str:
    try:
        return raw.decode("utf-8" if flags & _UTF8 else "ascii")
    except UnicodeDecodeError as error:
        raise MalformedModel(f"zip member {shown(ascii(raw))}: the name is not UTF-8") from error


def _widen(extra: Mapping[int, memoryview], values: tuple[int, ...]) -> tuple[int, ...]:
    """32-bit values, those that are full replaced by the 64-bit ones of the zip64 extra field."""
    if _FULL32 not in values:
        return values
    wide = extra.get(_ZIP64, memoryview(b""))
    if len(wide) < 8 * values.count(_FULL32):
        raise MalformedModel("a zip64 extra field is missing or too short")
    numbers = iter([int.from_bytes(wide[at : at + 8], "little") for at in range(0, len(wide), 8)])
    return tuple(next(numbers) if value == _FULL32 else value for value in values)


def _extras(extra: memoryview) -> dict[int, memoryview]:
    """The extra fields of a member by kind, each once and whole."""
    found: dict[int, memoryview] = {}
    at = 0
    while at < len(extra):
        kind, size = struct.unpack_from("<HH", extra, at) if at + 4 <= len(extra) else (0, len(extra))
        at += 4 + size
        if at > len(extra) or kind in found or (kind != _ZIP64 and kind not in _HARMLESS):
            raise MalformedModel(f"a zip member has a damaged or unknown extra field (0x{kind:04x})")
        found[kind] = extra[at - size : at]
    return found


def stored_members(data: memoryview, directory: Directory, *, again: str) -> dict[str, Member]:
    """Every member by name. `again` says how to write the file so that nothing is compressed."""
    members = {}
    if directory.entries and directory.entries[0].offset != 0:
        raise MalformedModel("the zip archive does not begin with its first member")
    ends = [entry.offset for entry in directory.entries[1:]] + [directory.begin]
    for entry, end in zip(directory.entries, ends, strict=True):
        _check_plain(entry, again)
        members[entry.name] = Member(name=entry.name, data=_payload(data, entry, end), crc=entry.crc)
    return members


def _check_plain(entry: DirectoryLine, again: str) -> None:
    if entry.flags & _ENCRYPTED:
        raise MalformedModel(f"zip member {shown(entry.name)}: encrypted")
    if entry.method != _STORED:
        raise MalformedModel(f"zip member {shown(entry.name)}: compressed; {again}")
    if entry.flags & ~(_HAS_DESCRIPTOR | _UTF8):
        raise MalformedModel(f"zip member {shown(entry.name)}: unknown flags {entry.flags:#06x}")
    if entry.packed != entry.size:
        raise MalformedModel(f"zip member {shown(entry.name)}: stored, but with two different sizes")


def _payload(data: memoryview, entry: DirectoryLine, end: int) -> memoryview:
    """The bytes of a member that must reach from its local header to `end`, exactly."""
    begin = entry.offset + _LOCAL.size
    if begin > end:
        raise MalformedModel(f"zip member {shown(entry.name)}: no room for its local header")
    magic, _, flags, method, _, _, crc, packed, size, name_size, extra_size = _LOCAL.unpack_from(
        data, entry.offset
    )
    start = begin + name_size + extra_size
    stop = start + entry.size
    if stop > end:
        raise MalformedModel(f"zip member {shown(entry.name)}: {entry.size} bytes overlap what follows")
    same_name = bytes(data[begin : begin + name_size]) == entry.raw_name
    if magic != MAGIC or flags != entry.flags or method != entry.method or not same_name:
        raise MalformedModel(f"zip member {shown(entry.name)}: its local header contradicts the directory")
    size, packed = _widen(_extras(data[begin + name_size : start]), (size, packed))
    later = (0, 0, 0) if flags & _HAS_DESCRIPTOR else (entry.crc, entry.size, entry.size)
    if (crc, size, packed) not in (later, (entry.crc, entry.size, entry.size)):
        raise MalformedModel(f"zip member {shown(entry.name)}: its local header contradicts the directory")
    if bytes(data[stop:end][:25]) not in _tails(entry):
        raise MalformedModel(f"zip member {shown(entry.name)}: unexplained bytes behind it")
    return data[start:stop]


def _tails(entry: DirectoryLine) -> tuple[bytes, ...]:
    """What may stand between the bytes of a member and the next header: a data descriptor, if announced."""
    if not entry.flags & _HAS_DESCRIPTOR:
        return (b"",)
    crc = entry.crc.to_bytes(4, "little")
    wide = crc + entry.size.to_bytes(8, "little") * 2
    if entry.size > _FULL32:
        return (wide, _DESCRIPTOR + wide)
    slim = crc + entry.size.to_bytes(4, "little") * 2
    return (slim, _DESCRIPTOR + slim, wide, _DESCRIPTOR + wide)
