"""Everything pseudo-random in a credential, expanded from 32-byte seeds by domain-separated SHAKE-256."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.primitives.gf2 import Bits, pack
from zktrace.primitives.shake import Shake

SEED_BYTES: Final = 32
_KEY_BYTES: Final = 4  # of a sort key
_AT_ONCE: Final = 32  # permutations that are drawn together: what that takes stays in the processor's cache

Permutations = NDArray[np.intp]  # (batch, m); row p acts by (p x)[j] = x[p[j]]


def permutation(stream: Shake, length: int) -> Permutations:
    """The permutation of one stream; see `permutations`."""
    result: Permutations = permutations([stream], length)[0]
    return result


def permutations(streams: list[Shake], length: int) -> Permutations:
    """One exactly uniform permutation of `length` positions for each stream.

    A stream is cut into blocks of `length` 32-bit sort keys; the first block without two equal keys is
    taken, and the permutation lists the positions in ascending order of their keys.
    """
    block = _KEY_BYTES * length
    result = np.empty((len(streams), length), dtype=np.intp)
    pending = np.arange(len(streams))
    taken = 0
    while len(pending):
        again = []
        for first in range(0, len(pending), _AT_ONCE):
            part = pending[first : first + _AT_ONCE]
            drawn = b"".join(streams[i].digest(block * (taken + 1))[block * taken :] for i in part)
            keys = np.frombuffer(drawn, dtype=">u4").reshape(-1, length).astype(np.uint32)
            result[part], distinct = _ascending(keys)
            again.append(part[~distinct])
        pending = np.concatenate(again)
        taken += 1
    return result


def _ascending(keys: NDArray[np.uint32]) -> tuple[Permutations, NDArray[np.bool_]]:
    """The positions of each row in the order of their keys, and whether no two of its keys are equal.

    Keys are sorted by their low halves and then by their high ones: numpy sorts numbers of 16 bits by
    counting, several times as fast as it compares whole keys.
    """
    starts = np.arange(len(keys))[:, None] * keys.shape[1]
    by_low = np.argsort(keys.astype(np.uint16), axis=1, kind="stable") + starts
    high = (keys >> np.uint32(16)).astype(np.uint16)
    places = np.take(by_low, np.argsort(np.take(high, by_low), axis=1, kind="stable") + starts)
    ordered = np.take(keys, places)
    return places - starts, (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)


def apply_inverse(perms: Permutations, bits: Bits) -> Bits:
    """The unpacked x with p(x) = bits, for each permutation p and each row, shapes (batch, m)."""
    result = np.empty_like(bits)
    for row, places, values in zip(result, perms, bits, strict=True):
        row[places] = values
    return result


def fixed_weight(stream: Shake, length: int, weight: int) -> Bits:
    """A uniform packed vector of `length` bits with exactly `weight` ones."""
    bits = np.zeros(length, dtype=np.uint8)
    bits[permutation(stream, length)[:weight]] = 1
    return pack(bits)
