"""A Merkle log: a head fixes every entry and their order; short proofs show that an entry is under a head and
that one head extends another. The tree is that of RFC 9162 (section 2.1) with SHA-256.

Every function takes the hashes of the entries as a plain list, or as the `Leaves` of a `Tree`, which
remembers the roots of complete subtrees: a root or a proof then takes as many steps as the tree is high.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, Self, overload

from zktrace.errors import Refused

HASH_BYTES: Final = 32
PROOF_LIMIT: Final = 64  # hashes; a log of 2^63 entries needs no more
_EMPTY: Final = hashlib.sha256(b"").digest()  # the root of a log without entries

Hashes = Sequence[bytes]


def leaf_hash(data: bytes) -> bytes:
    """The hash of an entry."""
    return hashlib.sha256(b"\x00" + data).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A growing log of leaf hashes with the roots of all its complete subtrees."""

    def __init__(self, levels: Sequence[bytes] = ()) -> None:
        self._levels = [bytearray(each) for each in levels]  # by height: hashes one after the other

    def __len__(self) -> int:
        return len(self._levels[0]) // HASH_BYTES if self._levels else 0

    def append(self, leaf: bytes) -> None:
        """One more entry; what it completes is hashed now."""
        value = leaf
        for level in self._levels:
            level.extend(value)
            if len(level) // HASH_BYTES % 2:
                return
            value = _node(bytes(level[-2 * HASH_BYTES : -HASH_BYTES]), value)
        self._levels.append(bytearray(value))

    def node(self, height: int, number: int) -> bytes:
        """The root over the 2^height entries from number * 2^height on."""
        return bytes(self._levels[height][number * HASH_BYTES : (number + 1) * HASH_BYTES])

    def leaves(self, size: int) -> "Leaves":
        """The first `size` leaf hashes; they stay what they are while the tree grows."""
        return Leaves(self, 0, size)

    def levels(self, size: int) -> list[bytes]:
        """What a tree of the first `size` entries is made of again."""
        return [
            bytes(level[: (size >> height) * HASH_BYTES])
            for height, level in enumerate(self._levels[: size.bit_length()])
        ]


class Leaves(Sequence[bytes]):
    """Leaf hashes begin..end-1 of a tree."""

    def __init__(self, tree: Tree, begin: int, end: int) -> None:
        self._tree, self._begin, self._end = tree, begin, end

    def __len__(self) -> int:
        return self._end - self._begin

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Self: ...
    def __getitem__(self, at: int | slice) -> bytes | Self:
        places = range(self._begin, self._end)[at]
        if isinstance(places, int):
            return self._tree.node(0, places)
        if places.step != 1:
            raise Refused("leaves are taken one after the other")
        return type(self)(self._tree, places.start, max(places.start, places.stop))

    def root(self) -> bytes:
        """The root over these leaves: quick if they are a subtree of the log, as they are in all proofs."""
        return self._root(self._begin, self._end) if len(self) else _EMPTY

    def _root(self, begin: int, end: int) -> bytes:
        size = end - begin
        if size & (size - 1) == 0 and begin % size == 0:
            return self._tree.node(size.bit_length() - 1, begin // size)
        middle = begin + _split(size)
        return _node(self._root(begin, middle), self._root(middle, end))


def root(leaves: Hashes) -> bytes:
    """The root over the hashes of all entries."""
    if isinstance(leaves, Leaves):
        return leaves.root()
    values = list(leaves)
    while len(values) > 1:  # an odd one out is its own parent: so the left part is always a power of two
        pairs = [_node(left, right) for left, right in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(values) & ~1 :]
    return values[0] if values else _EMPTY


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_proof(leaves: Hashes, index: int) -> list[bytes]:
    """The siblings on the way from entry `index` to the root, from below."""
    if not 0 <= index < len(leaves):
        raise Refused(f"there is no entry {index} in a log of {len(leaves)}")
    path: list[bytes] = []
    begin, end = 0, len(leaves)
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            path.append(root(leaves[middle:end]))
            end = middle
        else:
            path.append(root(leaves[begin:middle]))
            begin = middle
    return path[::-1]


def included(leaf: bytes, index: int, size: int, path: Hashes, head: bytes) -> bool:
    """Whether `path` shows that entry `index` of `size` has the hash `leaf` under `head`."""
    if not 0 <= index < size or len(path) > PROOF_LIMIT:
        return False
    at, last, value = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if at & 1 or at == last:
            value = _node(sibling, value)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            value = _node(value, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and value == head


def consistency_proof(leaves: Hashes, old: int) -> list[bytes]:
    """What shows that the log of all leaves extends that of the first `old`."""
    if not 0 <= old <= len(leaves):
        raise Refused(f"the log has {len(leaves)} entries, it never had {old}")
    if old in (0, len(leaves)):
        return []
    return _extends(leaves, old, whole=True)


def _extends(leaves: Hashes, old: int, *, whole: bool) -> list[bytes]:
    if old == len(leaves):
        return [] if whole else [root(leaves)]
    middle = _split(len(leaves))
    if old <= middle:
        return [*_extends(leaves[:middle], old, whole=whole), root(leaves[middle:])]
    return [*_extends(leaves[middle:], old - middle, whole=False), root(leaves[:middle])]


def extends(old: int, old_head: bytes, new: int, new_head: bytes, path: Hashes) -> bool:
    """Whether `path` shows that a log of `new` entries under `new_head` begins with that of `old`."""
    if not 0 <= old <= new or len(path) > PROOF_LIMIT:
        return False
    if old == new:
        return not path and old_head == new_head
    if old == 0:
        return not path and old_head == _EMPTY
    hashes = list(path)
    if old & (old - 1) == 0:
        hashes.insert(0, old_head)
    if not hashes:
        return False
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            first, second = _node(sibling, first), _node(sibling, second)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            second = _node(second, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and first == old_head and second == new_head
