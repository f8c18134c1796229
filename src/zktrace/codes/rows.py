"""Rows of the code: X_ib is one with probability exactly T_b/2^32, for a million recipients without a table.

A row is the comparison of 32-bit integers with the thresholds of its positions. The integers are the
AES-256-CTR key stream under the row's own key, which is made of a seed that the operator promised for the
row's place and of what the row's owner added to it. So any row is made alone, and its opening tells nothing
of another.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from zktrace.codes.biases import Biases, identity
from zktrace.codes.checks import whole
from zktrace.codes.laws import Law, check_law, draw
from zktrace.derivation.key import SUBKEY_BYTES, CodeKey, Use
from zktrace.derivation.promises import NOBODY, Claim, row_key
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits
from zktrace.primitives.shake import Shake

INDEX_LIMIT: Final = 1 << 40  # rows of one code
THREADS: Final = 2
BLOCK: Final = 16_384  # rows that `blocks` makes at a time
_CIPHER_BLOCK: Final = 16  # bytes
_BUFFER: Final = 1 << 19  # bytes of key stream at a time: what a core's cache holds
_START: Final = modes.CTR(bytes(_CIPHER_BLOCK))


@dataclass(frozen=True, kw_only=True)
class Code:
    """A tracing code (`def:overlay`), derived from a key. Equal fields are the same code, bit for bit."""

    key: CodeKey
    label: str  # tells the codes of one key apart, e.g. one for each carrier
    length: int  # n_t, positions
    colluders: int  # c, the coalition size the cutoff is made for
    claims: Sequence[Claim] | None = None  # of the rows' owners; None: rows that belong to nobody
    law: Law = "tardos"  # of the biases

    def __post_init__(self) -> None:
        identity(self.label, self.length, self.colluders)
        check_law(self.law, self.colluders)
        object.__setattr__(self, "length", int(self.length))
        object.__setattr__(self, "colluders", int(self.colluders))

    @cached_property
    def biases(self) -> Biases:
        """The secret biases."""
        return draw(self.bias_seed, self.length, self.colluders, self.law)

    @cached_property
    def bias_seed(self) -> bytes:
        """What the biases are drawn from: all that a judge is told of them."""
        return self.key.subkey(Use.BIASES, self.label.encode())

    @cached_property
    def fingerprint(self) -> bytes:
        """A name of the code, whoever its rows belong to. It tells nothing of the key."""
        other = () if self.law == "tardos" else (self.law.encode(),)
        return self.key.subkey(Use.FINGERPRINT, *identity(self.label, self.length, self.colluders), *other)

    @property
    def row_bytes(self) -> int:
        """Bytes of a packed row."""
        return -(-self.length // 8)

    def row_seed(self, index: int) -> bytes:
        """The operator's part of a row: what it promised for the place."""
        return self._seeds.fork_digest(SUBKEY_BYTES, _place(index))

    def rows(self, indices: Iterable[int]) -> Bits:
        """The rows of `indices`, in that order: packed, most significant bit first, padded with zeros."""
        high = (INDEX_LIMIT if self.claims is None else len(self.claims)) - 1
        return expand(self._keys([whole(i, "the index of a row", 0, high) for i in indices]), self.biases)

    def blocks(self, start: int, stop: int, block: int = BLOCK) -> Iterator[Bits]:
        """Rows start..stop-1 in arrays of `block` rows (the last may be shorter)."""
        whole(start, "the first row", 0, INDEX_LIMIT)
        whole(stop, "the end of the rows", start, INDEX_LIMIT)
        whole(block, "the size of a block", 1, INDEX_LIMIT)
        return (self.rows(range(first, min(first + block, stop))) for first in range(start, stop, block))

    @cached_property
    def _seeds(self) -> Shake:
        return self.key.shake(Use.PLACE, self.label.encode())

    def _keys(self, indices: Sequence[int]) -> list[bytes]:
        seed, claims = self._seeds.fork_digest, self.claims
        if claims is None:
            return [row_key(seed(SUBKEY_BYTES, _place(i)), NOBODY) for i in indices]
        return [row_key(seed(SUBKEY_BYTES, _place(i)), claims[i]) for i in indices]


def _place(index: int) -> bytes:
    return index.to_bytes(8, "big")


def expand(keys: Sequence[bytes], biases: Biases) -> Bits:
    """The packed rows of some row keys: what operator and judge make alike."""
    thresholds = biases.thresholds
    result = np.empty((len(keys), -(-biases.length // 8)), dtype=np.uint8)
    stride = -(-4 * biases.length // _CIPHER_BLOCK) * _CIPHER_BLOCK
    step = max(1, min(len(keys), _BUFFER // stride))
    zeros = memoryview(bytes(stride))
    stream = np.empty(step * stride + _CIPHER_BLOCK - 1, dtype=np.uint8)
    bits = np.empty((step, biases.length), dtype=np.bool_)
    for begin in range(0, len(keys), step):
        some = keys[begin : begin + step]
        for at, key in enumerate(some):
            cipher = Cipher(algorithms.AES256(key), _START).encryptor()
            cipher.update_into(zeros, stream.data[at * stride :])
        drawn = stream[: len(some) * stride].view("<u4").reshape(len(some), -1)[:, : biases.length]
        result[begin : begin + step] = np.packbits(np.less(drawn, thresholds, out=bits[: len(some)]), axis=1)
    return result


def unpack(rows: Bits, length: int) -> Bits:
    """Packed rows of `length` bits as one byte a bit."""
    if rows.dtype != np.uint8 or rows.shape[-1] != -(-length // 8):
        raise InputError(f"{length} bits are not packed in shape {rows.shape}")
    return np.unpackbits(rows, axis=-1, count=length)
