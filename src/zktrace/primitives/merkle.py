"""A Merkle log: a head fixes every entry and their order; short proofs show that an entry is under a head and
that one head extends another. The tree is that of RFC 9162 (section 2.1) with SHA-256.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

HASH_BYTES: Final = 32
PROOF_LIMIT: Final = 64  # hashes; a log of 2^63 entries needs no more

Hashes = Sequence[bytes]


def leaf_hash(data: bytes) -> bytes:
    """The hash of an entry."""
    return hashlib.sha256(b"\x00" + data).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


Frontier = tuple[tuple[int, bytes], ...]  # complete subtrees (height, hash), larger ones first


def extended(frontier: Frontier, leaf: bytes) -> Frontier:
    """The frontier of a log with one more entry: all that is needed to know its root and to go on."""
    stack = list(frontier)
    height, value = 0, leaf
    while stack and stack[-1][0] == height:
        value = _node(stack.pop()[1], value)
        height += 1
    return (*stack, (height, value))


def frontier_root(frontier: Frontier) -> bytes:
    """The root over all entries of a frontier."""
    if not frontier:
        return hashlib.sha256(b"").digest()
    value = frontier[-1][1]
    for _, left in reversed(frontier[:-1]):
        value = _node(left, value)
    return value


def root(leaves: Hashes) -> bytes:
    """The root over the hashes of all entries."""
    frontier: Frontier = ()
    for leaf in leaves:
        frontier = extended(frontier, leaf)
    return frontier_root(frontier)


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_proof(leaves: Hashes, index: int) -> list[bytes]:
    """The siblings on the way from entry `index` to the root, from below."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"entry {index} of {len(leaves)}")
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
        raise IndexError(f"a log of {old} entries in one of {len(leaves)}")
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
        return not path and old_head == root([])
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
