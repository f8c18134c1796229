"""Everything pseudo-random in a credential, expanded from 32-byte seeds by domain-separated SHAKE-256."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.primitives.gf2 import Bits, pack
from zktrace.primitives.shake import Shake

SEED_BYTES: Final = 32
_KEY_BYTES: Final = 4  # of a sort key

Permutations = NDArray[np.intp]  # (batch, m); row p acts by (p x)[j] = x[p[j]]


def permutation(stream: Shake, length: int) -> Permutations:
    """The permutation of one stream; see `permutations`."""
    result: Permutations = permutations([stream], length)[0]
    return result


def permutations(streams: list[Shake], length: int) -> Permutations:
    """One exactly uniform permutation of `length` positions for each stream.

    A stream is cut into blocks of `length` 32-bit sort keys; the first block without two equal keys is
    taken, and the permutation lists the positions in ascending order of their keys. `length` is at most
    2^16, so key and position fit one 64-bit word and a plain sort does the work for all streams at once.
    """
    block = _KEY_BYTES * length
    result = np.empty((len(streams), length), dtype=np.intp)
    pending = np.arange(len(streams))
    taken = 0
    while len(pending):
        drawn = b"".join(streams[i].digest(block * (taken + 1))[block * taken :] for i in pending)
        keys = np.frombuffer(drawn, dtype=">u4").reshape(-1, length).astype(np.uint64)
        words = (keys << np.uint64(16)) | np.arange(length, dtype=np.uint64)
        words.sort(axis=1)
        keys = words >> np.uint64(16)
        distinct = (keys[:, 1:] != keys[:, :-1]).all(axis=1)
        result[pending] = words & np.uint64(0xFFFF)
        pending = pending[~distinct]
        taken += 1
    return result


def apply_inverse(perms: Permutations, bits: Bits) -> Bits:
    """The unpacked x with p(x) = bits, for each permutation p and each row, shapes (batch, m)."""
    result = np.empty_like(bits)
    np.put_along_axis(result, perms, bits, axis=1)
    return result


def fixed_weight(stream: Shake, length: int, weight: int) -> Bits:
    """A uniform packed vector of `length` bits with exactly `weight` ones."""
    bits = np.zeros(length, dtype=np.uint8)
    bits[permutation(stream, length)[:weight]] = 1
    return pack(bits)
