"""The Merkle log against a naive recursion of RFC 9162, section 2.1, for every small log."""

import hashlib

import pytest

from zktrace.errors import Refused
from zktrace.primitives import merkle

SIZES = range(41)


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def split(size: int) -> int:
    k = 1
    while 2 * k < size:
        k *= 2
    return k


def naive_root(entries: list[bytes]) -> bytes:
    """MTH(D[n])."""
    if not entries:
        return sha()
    if len(entries) == 1:
        return sha(b"\0", entries[0])
    k = split(len(entries))
    return sha(b"\1", naive_root(entries[:k]), naive_root(entries[k:]))


def naive_path(m: int, entries: list[bytes]) -> list[bytes]:
    """PATH(m, D[n])."""
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if m < k:
        return [*naive_path(m, entries[:k]), naive_root(entries[k:])]
    return [*naive_path(m - k, entries[k:]), naive_root(entries[:k])]


def naive_proof(m: int, entries: list[bytes], *, whole: bool = True) -> list[bytes]:
    """SUBPROOF(m, D[n], b)."""
    if m == len(entries):
        return [] if whole else [naive_root(entries)]
    k = split(len(entries))
    if m <= k:
        return [*naive_proof(m, entries[:k], whole=whole), naive_root(entries[k:])]
    return [*naive_proof(m - k, entries[k:], whole=False), naive_root(entries[:k])]


def entries_of(size: int) -> list[bytes]:
    return [f"entry {i}".encode() for i in range(size)]


def leaves_of(size: int) -> list[bytes]:
    return [merkle.leaf_hash(each) for each in entries_of(size)]


ROOTS = [naive_root(entries_of(size)) for size in SIZES]


def wrong_paths(path: list[bytes]) -> list[list[bytes]]:
    """The path with a hash changed, dropped, doubled, or one too many, at every place."""
    found = [[*path, bytes(32)], [bytes(32), *path]]
    for i, value in enumerate(path):
        flipped = bytes([value[0] ^ 1]) + value[1:]
        found += [[*path[:i], flipped, *path[i + 1 :]], path[:i] + path[i + 1 :], [*path[: i + 1], *path[i:]]]
    return found


def test_the_values_that_the_rfc_states_by_construction() -> None:
    """The empty tree is the hash of nothing, a leaf is hashed after 00, a node after 01."""
    empty = (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing, FIPS 180-4
    )
    assert merkle.root([]).hex() == empty
    leaf = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"  # SHA-256 of the byte 00
    assert merkle.leaf_hash(b"").hex() == leaf
    assert merkle.root([merkle.leaf_hash(b"")]).hex() == leaf


# The inputs and roots that implementations of Certificate Transparency (RFC 6962, the same tree) test with.
KNOWN_INPUTS = (
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    bytes(range(0x60, 0x70)).hex(),
)
KNOWN_ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


@pytest.mark.parametrize("size", range(1, 9))
def test_known_roots(size: int) -> None:
    leaves = [merkle.leaf_hash(bytes.fromhex(each)) for each in KNOWN_INPUTS[:size]]
    assert merkle.root(leaves).hex() == KNOWN_ROOTS[size - 1]


@pytest.mark.parametrize("size", SIZES)
def test_roots(size: int) -> None:
    assert merkle.root(leaves_of(size)) == ROOTS[size]


@pytest.mark.parametrize("size", SIZES)
def test_every_entry_has_its_inclusion_proof_and_no_other(size: int) -> None:
    leaves = leaves_of(size)
    for index in range(size):
        path = merkle.inclusion_proof(leaves, index)
        assert path == naive_path(index, entries_of(size))
        assert merkle.included(leaves[index], index, size, path, ROOTS[size])
        for other in range(-1, size + 2):
            if other != index:
                assert not merkle.included(leaves[index], other, size, path, ROOTS[size])
        for wrong in wrong_paths(path):
            assert not merkle.included(leaves[index], index, size, wrong, ROOTS[size])
        assert not merkle.included(bytes(32), index, size, path, ROOTS[size])
        assert not merkle.included(leaves[index], index, size, path, bytes(32))


@pytest.mark.parametrize("size", SIZES)
def test_a_log_extends_each_of_its_beginnings_and_nothing_else(size: int) -> None:
    leaves = leaves_of(size)
    for old in range(size + 1):
        path = merkle.consistency_proof(leaves, old)
        assert path == (naive_proof(old, entries_of(size)) if 0 < old < size else [])
        assert merkle.extends(old, ROOTS[old], size, ROOTS[size], path)
        for wrong in wrong_paths(path):
            assert not merkle.extends(old, ROOTS[old], size, ROOTS[size], wrong)
        for other in range(size + 2):
            if other != old:
                assert not merkle.extends(other, ROOTS[old], size, ROOTS[size], path)
        assert not merkle.extends(old, bytes(32), size, ROOTS[size], path)
        if old:
            assert not merkle.extends(old, ROOTS[old], size, bytes(32), path)


def test_a_changed_log_does_not_extend_the_old_one() -> None:
    for old in range(1, 20):
        for size in range(old, 20):
            changed = leaves_of(size)
            changed[old // 2] = merkle.leaf_hash(b"another")
            path = merkle.consistency_proof(changed, old)
            assert not merkle.extends(old, ROOTS[old], size, merkle.root(changed), path)


def test_a_proof_of_one_size_is_none_of_another() -> None:
    for size in range(2, 30):
        for index in range(size):
            path = merkle.inclusion_proof(leaves_of(size), index)
            for other in range(1, 40):
                held = merkle.included(leaves_of(size)[index], index, other, path, ROOTS[other])
                assert held == (other == size)


def test_paths_beyond_any_log_are_not_walked() -> None:
    assert not merkle.included(bytes(32), 0, 1 << 62, [bytes(32)] * 65, bytes(32))
    assert not merkle.extends(1, bytes(32), 1 << 62, bytes(32), [bytes(32)] * 65)


def kept(size: int) -> merkle.Leaves:
    """The same leaves, in a tree that has grown beyond them."""
    tree = merkle.Tree()
    for each in leaves_of(max(SIZES)):
        tree.append(each)
    return tree.leaves(size)


@pytest.mark.parametrize("size", SIZES)
def test_a_tree_that_remembers_gives_what_plain_leaves_give(size: int) -> None:
    plain, remembered = leaves_of(size), kept(size)
    assert list(remembered) == plain
    assert merkle.root(remembered) == ROOTS[size]
    for index in range(size):
        assert merkle.inclusion_proof(remembered, index) == merkle.inclusion_proof(plain, index)
    for old in range(size + 1):
        assert merkle.consistency_proof(remembered, old) == merkle.consistency_proof(plain, old)


def test_any_part_of_a_tree_has_its_root() -> None:
    """Also one that is no subtree."""
    plain, remembered = leaves_of(max(SIZES)), kept(max(SIZES))
    for begin in SIZES:
        for end in SIZES:
            part = remembered[begin:end]
            assert list(part) == plain[begin:end]
            assert merkle.root(part) == merkle.root(plain[begin:end])
            assert merkle.root(part[1:]) == merkle.root(plain[begin:end][1:])
    assert remembered[-1] == plain[-1]
    with pytest.raises(IndexError):
        remembered[len(plain)]
    with pytest.raises(Refused):
        remembered[::2]


@pytest.mark.parametrize("size", SIZES)
def test_a_tree_goes_on_from_any_of_its_beginnings(size: int) -> None:
    grown = merkle.Tree(kept(size)._tree.levels(size))
    assert len(grown) == size
    for place in range(size, max(SIZES)):
        grown.append(leaves_of(place + 1)[place])
        assert merkle.root(grown.leaves(place + 1)) == ROOTS[place + 1]
        assert merkle.root(grown.leaves(size)) == ROOTS[size]


def test_a_tree_hashes_no_entry_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of 4,096 entries: one more takes at most 12 hashes, a root or a proof two heights."""
    tree, leaves = merkle.Tree(), leaves_of(4_096)
    for each in leaves[:-1]:
        tree.append(each)
    counted: list[bytes] = []
    node = merkle._node
    monkeypatch.setattr(merkle, "_node", lambda left, right: counted.append(left) or node(left, right))
    tree.append(leaves[-1])
    assert len(counted) == 12
    for call in (
        lambda: merkle.root(tree.leaves(4_095)),
        lambda: merkle.inclusion_proof(tree.leaves(4_095), 77),
        lambda: merkle.consistency_proof(tree.leaves(4_095), 1_001),
    ):
        counted.clear()
        call()
        assert 0 < len(counted) <= 24


@pytest.mark.parametrize(("size", "index"), [(0, 0), (3, 3), (3, -1)])
def test_there_is_no_proof_of_what_is_not_there(size: int, index: int) -> None:
    for leaves in (leaves_of(size), kept(size)):
        with pytest.raises(Refused, match=f"no entry {index} in a log of {size}"):
            merkle.inclusion_proof(leaves, index)


def test_there_is_no_proof_of_a_longer_past() -> None:
    for leaves in (leaves_of(3), kept(3)):
        with pytest.raises(Refused, match="it never had 4"):
            merkle.consistency_proof(leaves, 4)
