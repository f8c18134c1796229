"""Permutations and fixed-weight vectors: exactly uniform, and the same as a plain sort."""

import itertools
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zktrace.credentials.expand import _ascending, apply_inverse, fixed_weight, permutations
from zktrace.primitives.shake import Shake


class Scripted(Shake):
    """A stream with a script instead of a hash."""

    __slots__ = ("script",)

    def digest(self, size: int) -> bytes:
        return self.script[:size]


def scripted(*keys: int) -> Scripted:
    stream = Scripted("script")
    stream.script = b"".join(key.to_bytes(4, "big") for key in keys)
    return stream


def test_positions_are_listed_in_ascending_order_of_their_keys() -> None:
    assert permutations([scripted(30, 10, 2**32 - 1, 20)], 4).tolist() == [[1, 3, 0, 2]]


def test_a_block_with_equal_keys_is_discarded() -> None:
    tie = scripted(7, 7, 1, 2, 4, 3, 2, 1)
    clear = scripted(1, 2, 3, 4)
    twice = scripted(5, 5, 5, 5, 6, 1, 6, 2, 9, 8, 6, 7)
    assert permutations([tie, clear, twice], 4).tolist() == [[3, 2, 1, 0], [0, 1, 2, 3], [2, 3, 1, 0]]


@given(st.integers(1, 70), st.integers(1, 40), st.sampled_from([3, 1 << 9, 1 << 16, 1 << 32]), st.integers(0))
def test_it_is_a_plain_sort_by_whole_keys(rows: int, length: int, spread: int, seed: int) -> None:
    """Keys that differ in their high halves alone, in their low ones, or in both, and equal ones."""
    rng = np.random.default_rng(seed)
    for step in (1, 1 << 16):
        drawn = rng.integers(0, spread, (rows, length)) * step % (1 << 32)
        keys = [[int(key) for key in row] for row in drawn]
        order, distinct = _ascending(np.array(keys, dtype=np.uint32))
        assert order.tolist() == [sorted(range(length), key=row.__getitem__) for row in keys]
        assert distinct.tolist() == [len(set(row)) == length for row in keys]


def test_streams_with_equal_keys_anywhere_among_many_are_drawn_again() -> None:
    """More of them than are drawn together, in the second block as well."""
    again, good, twice = (
        scripted(9, 9, 9, 1, 2, 3),
        scripted(2, 1, 3, 0, 0, 0),
        scripted(4, 4, 4, 6, 6, 0, 3, 1, 2),
    )
    streams = [again, good, good, twice] * 25
    assert permutations(streams, 3).tolist() == [[0, 1, 2], [1, 0, 2], [1, 0, 2], [1, 2, 0]] * 25


def test_permutations_are_uniform() -> None:
    drawn = permutations([Shake("uniform", bytes([i >> 8, i & 255])) for i in range(12_000)], 4)
    counts = Counter(map(tuple, drawn.tolist()))
    assert set(counts) == set(itertools.permutations(range(4)))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


@given(st.binary(max_size=4), st.sampled_from([8, 64, 1024]))
def test_inverse_undoes_the_action(seed: bytes, length: int) -> None:
    perms = permutations([Shake("p", seed), Shake("q", seed)], length)
    bits = np.unpackbits(np.frombuffer(Shake("x", seed).digest(length // 4), dtype=np.uint8)).reshape(
        2, length
    )
    x = apply_inverse(perms, bits)
    assert all((x[i][perms[i]] == bits[i]).all() for i in range(2))


def test_fixed_weight_vectors_are_uniform() -> None:
    drawn = [bytes(fixed_weight(Shake("w", bytes([i >> 8, i & 255])), 8, 2)) for i in range(5_600)]
    counts = Counter(drawn)
    assert len(counts) == 28
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
