"""Rows of the code: X_ib is one with probability exactly T_b/2^32, for a million recipients without a table.

Row i is the comparison of 32-bit integers with the thresholds of its positions. The integers are the
AES-256-CTR key stream under a subkey of the code, and row i begins at a fixed counter, so any row can be
made alone and a range of rows is one pass over the stream.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from zktrace.codes.biases import Biases, draw, identity
from zktrace.codes.checks import whole
from zktrace.codes.key import CodeKey
from zktrace.errors import InputError
from zktrace.primitives.gf2 import Bits

INDEX_LIMIT: Final = 1 << 40  # rows of one code
THREADS: Final = 2
BLOCK: Final = 16_384  # rows that `blocks` makes at a time
_CIPHER_BLOCK: Final = 16  # bytes
_BUFFER: Final = 1 << 19  # bytes of key stream at a time: what a core's cache holds
_SUBKEY_BYTES: Final = 32
_FINGERPRINT_BYTES: Final = 32


@dataclass(frozen=True, kw_only=True)
class Code:
    """A tracing code (`def:overlay`), derived from a key. Equal fields are the same code, bit for bit."""

    key: CodeKey
    label: str  # tells the codes of one key apart, e.g. one for each carrier
    length: int  # n_t, positions
    colluders: int  # c, the coalition size the cutoff is made for

    def __post_init__(self) -> None:
        identity(self.label, self.length, self.colluders)
        object.__setattr__(self, "length", int(self.length))
        object.__setattr__(self, "colluders", int(self.colluders))

    @cached_property
    def biases(self) -> Biases:
        """The secret biases."""
        return draw(self.key, self.label, self.length, self.colluders)

    @cached_property
    def fingerprint(self) -> bytes:
        """A name of the code that tells nothing of the key."""
        return self.key.stream("fingerprint", *self._identity).digest(_FINGERPRINT_BYTES)

    @property
    def row_bytes(self) -> int:
        """Bytes of a packed row."""
        return -(-self.length // 8)

    def rows(self, indices: Iterable[int]) -> Bits:
        """The rows of `indices`, in that order: packed, most significant bit first, padded with zeros."""
        wanted = [whole(i, "the index of a row", 0, INDEX_LIMIT - 1) for i in indices]
        result = np.empty((len(wanted), self.row_bytes), dtype=np.uint8)
        generator = self._generator(len(wanted))
        begin = 0
        for end in range(1, len(wanted) + 1):
            if end == len(wanted) or wanted[end] != wanted[end - 1] + 1:
                generator.fill(wanted[begin], result[begin:end])
                begin = end
        return result

    def blocks(self, start: int, stop: int, block: int = BLOCK) -> Iterator[Bits]:
        """Rows start..stop-1 in arrays of `block` rows (the last may be shorter), made by two threads."""
        whole(start, "the first row", 0, INDEX_LIMIT)
        whole(stop, "the end of the rows", start, INDEX_LIMIT)
        whole(block, "the size of a block", 1, INDEX_LIMIT)
        return self._blocks(start, stop, block)

    def _blocks(self, start: int, stop: int, block: int) -> Iterator[Bits]:
        share = -(-min(block, stop - start) // THREADS)
        generators = [self._generator(share) for _ in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            for first in range(start, stop, block):
                result = np.empty((min(block, stop - first), self.row_bytes), dtype=np.uint8)
                parts = [result[i * share : (i + 1) * share] for i in range(THREADS)]
                firsts = [first + i * share for i in range(THREADS)]
                list(pool.map(_Generator.fill, generators, firsts, parts))
                yield result

    @cached_property
    def _identity(self) -> tuple[bytes, bytes, bytes]:
        return identity(self.label, self.length, self.colluders)

    def _generator(self, rows: int) -> "_Generator":
        subkey = self.key.stream("rows", *self._identity).digest(_SUBKEY_BYTES)
        return _Generator(subkey, self.biases, rows)


class _Generator:
    """Makes rows with buffers of its own, used again for every call."""

    def __init__(self, subkey: bytes, biases: Biases, rows: int) -> None:
        self._subkey = algorithms.AES(subkey)
        self._thresholds = biases.thresholds
        self._counters = -(-4 * biases.length // _CIPHER_BLOCK)  # cipher blocks of a row
        stride = self._counters * _CIPHER_BLOCK
        self._step = max(1, min(rows, _BUFFER // stride))
        self._stride = stride
        self._zeros = memoryview(bytes(self._step * stride))
        self._stream = np.empty(self._step * stride + _CIPHER_BLOCK - 1, dtype=np.uint8)
        self._bits = np.empty((self._step, biases.length), dtype=np.bool_)

    def fill(self, first: int, out: Bits) -> None:
        """Rows first, first + 1, ... into the rows of `out`."""
        counter = (first * self._counters).to_bytes(_CIPHER_BLOCK, "big")
        cipher = Cipher(self._subkey, modes.CTR(counter)).encryptor()
        for begin in range(0, len(out), self._step):
            piece = out[begin : begin + self._step]
            size = len(piece) * self._stride
            cipher.update_into(self._zeros[:size], self._stream.data)
            drawn = self._stream[:size].view("<u4").reshape(len(piece), -1)[:, : len(self._thresholds)]
            bits = np.less(drawn, self._thresholds, out=self._bits[: len(piece)])
            piece[:] = np.packbits(bits, axis=1)


def unpack(rows: Bits, length: int) -> Bits:
    """Packed rows of `length` bits as one byte a bit."""
    if rows.dtype != np.uint8 or rows.shape[-1] != -(-length // 8):
        raise InputError(f"{length} bits are not packed in shape {rows.shape}")
    return np.unpackbits(rows, axis=-1, count=length)
