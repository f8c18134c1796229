"""Heads and proofs of the log. They take bytes and raise; where entries are kept is not known here."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self

from zktrace.errors import InvalidLog, InvalidProof, LimitExceeded, MalformedFile
from zktrace.primitives import merkle
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.fields import Declared, listed, octets, whole
from zktrace.primitives.text import shown
from zktrace.registry.records import ENTRY_LIMIT, Entry

HEAD_MAGIC: Final = "zkt-head-v1"
PROOF_MAGIC: Final = "zkt-inclusion-v1"
EXTENSION_MAGIC: Final = "zkt-consistency-v1"
SIZE_LIMIT: Final = 1 << 40  # entries
PROOF_FILE_LIMIT: Final = 2 * ENTRY_LIMIT
_HEAD: Final = re.compile(rf"{HEAD_MAGIC}:(0|[1-9][0-9]{{0,12}}):([0-9a-f]{{64}})", re.ASCII)

Size = Annotated[int, whole(0, SIZE_LIMIT)]
HashPath = Annotated[tuple[bytes, ...], listed(octets(merkle.HASH_BYTES), high=merkle.PROOF_LIMIT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A log's length and Merkle root: they fix every entry and their order."""

    size: int
    root: bytes

    def to_text(self) -> str:
        """One line that can be published, printed or read out."""
        return f"{HEAD_MAGIC}:{self.size}:{self.root.hex()}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The head that `to_text` wrote, or MalformedFile."""
        found = _HEAD.fullmatch(text)
        if found is None or int(found[1]) > SIZE_LIMIT:
            raise MalformedFile(f"{shown(text)}: not a head ({HEAD_MAGIC}:<size>:<64 hexadecimal digits>)")
        return cls(size=int(found[1]), root=bytes.fromhex(found[2]))

    @classmethod
    def of_leaves(cls, leaves: merkle.Hashes) -> Self:
        """The head over the leaf hashes of all entries."""
        return cls(size=len(leaves), root=merkle.root(leaves))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion(Declared):
    """Shows that an entry stands at a place of a log."""

    what: ClassVar = "inclusion"
    index: Size
    size: Size
    path: HashPath

    def check(self) -> None:
        """A place of the log."""
        if self.index >= self.size:
            raise MalformedFile("inclusion: must have 0 <= index < size")

    def verify(self, entry: bytes, head: Head) -> None:
        """InvalidProof unless `entry` (its canonical bytes) is entry `index` under `head`."""
        if self.size != head.size:
            reason = f"the proof is for a log of {self.size} entries, the head has {head.size}"
            raise InvalidProof(check="inclusion", reason=reason)
        if not merkle.included(merkle.leaf_hash(entry), self.index, self.size, self.path, head.root):
            raise InvalidProof(check="inclusion", reason=f"entry {self.index} is not under the head")


def verify_consistency(old: Head, new: Head, path: merkle.Hashes) -> None:
    """InvalidLog unless `path` shows that the log under `new` begins with all of the log under `old`."""
    if not merkle.extends(old.size, old.root, new.size, new.root, path):
        raise InvalidLog(f"the log of {new.size} entries does not extend the head of {old.size}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension(Declared):
    """Shows that a log begins with all of an older one: what `zktrace log prove --since` hands out."""

    what: ClassVar = "consistency"
    old: Size
    new: Size
    path: HashPath

    def verify(self, old: Head, new: Head) -> None:
        """InvalidProof or InvalidLog unless the log under `new` extends the one under `old`."""
        if (self.old, self.new) != (old.size, new.size):
            sizes = f"{self.old} to {self.new} entries, the heads have {old.size} and {new.size}"
            raise InvalidProof(check="consistency", reason=f"the proof is from {sizes}")
        verify_consistency(old, new, self.path)

    def to_bytes(self) -> bytes:
        """Canonical JSON: the fields and the format."""
        return to_json({"format": EXTENSION_MAGIC, **self.as_json()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote (one line end may follow), or MalformedFile."""
        return cls.from_json(_opened(data, EXTENSION_MAGIC, what="consistency proof"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenEntry:
    """An entry and its inclusion: what `zktrace log prove` hands out."""

    entry: Entry
    inclusion: Inclusion

    def verify(self, head: Head) -> None:
        """InvalidProof unless the entry is under `head`."""
        self.inclusion.verify(self.entry.to_bytes(), head)

    def to_bytes(self) -> bytes:
        """Canonical JSON: the fields of the inclusion, the entry as an object, and the format."""
        entry = from_json(self.entry.to_bytes(), what="a registry entry")
        return to_json({"entry": entry, "format": PROOF_MAGIC, **self.inclusion.as_json()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote (one line end may follow), or MalformedFile."""
        value = _opened(data, PROOF_MAGIC, what="inclusion proof")
        if "entry" not in value:
            raise MalformedFile("inclusion proof: has no entry")
        entry = Entry.from_bytes(to_json(value.pop("entry")))
        return cls(entry=entry, inclusion=Inclusion.from_json(value))


def _opened(data: bytes, magic: str, *, what: str) -> dict[str, Any]:
    """The object in a file of this format, without the format."""
    if len(data) > PROOF_FILE_LIMIT:
        raise LimitExceeded(f"{what}: {len(data)} bytes, the limit is {PROOF_FILE_LIMIT}")
    value = from_json(data.removesuffix(b"\n"), what=what)
    if not isinstance(value, dict) or value.pop("format", None) != magic:
        raise MalformedFile(f"{what}: its format must be {magic}")
    return value
