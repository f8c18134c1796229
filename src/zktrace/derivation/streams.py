"""Uniform numbers from a seed: an AES-256-CTR stream for one use, and fair draws from it.

The seed may be secret: the stream is one-way, unlike that of a general-purpose generator.
"""

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.primitives.shake import Shake

Integers = NDArray[np.int64]

COUNT_LIMIT: Final = 1 << 28  # numbers drawn at once
_KEY_BYTES: Final = 32
_WORD: Final = 1 << 64


def _encryptor(key: bytes, block: int) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(block.to_bytes(16, "big"))).encryptor()


class Stream:
    """The stream of a seed for one use; what was drawn is not drawn again."""

    def __init__(self, use: str, seed: bytes, *parts: bytes) -> None:
        self._key = Shake(f"zkt-stream-v1/{use}", seed, *parts).digest(_KEY_BYTES)
        self._cipher = _encryptor(self._key, 0)

    def at(self, word: int) -> "Stream":
        """The same stream from its word number `word` on, an even number."""
        if word < 0 or word % 2:
            raise InputError(f"a stream is taken up at an even word, not at {word}")
        other = object.__new__(Stream)
        other._key = self._key
        other._cipher = _encryptor(self._key, word // 2)
        return other

    def words(self, count: int) -> NDArray[np.uint64]:
        """Uniform 64-bit integers."""
        if not 0 <= count <= COUNT_LIMIT:
            raise InputError(f"{count} numbers at once: at most {COUNT_LIMIT}")
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype="<u8").astype(np.uint64)

    def below(self, limit: int) -> int:
        """A uniform whole number in 0..limit-1, exactly: words beyond the last multiple are passed over."""
        if not 1 <= limit <= COUNT_LIMIT:
            raise InputError(f"a number below {limit}: must be below 1..{COUNT_LIMIT}")
        last = _WORD - _WORD % limit
        while (word := int(self.words(1)[0])) >= last:
            pass
        return word % limit

    def permutation(self, size: int) -> Integers:
        """0..size-1 in uniform order: sorted by a random word each, drawn again if two are alike."""
        while True:
            words = self.words(size)
            order = np.argsort(words, kind="stable")
            drawn = words[order]
            if not (drawn[1:] == drawn[:-1]).any():
                return order.astype(np.int64)

    def sample(self, size: int, count: int) -> Integers:
        """`count` of 0..size-1, each at most once, in uniform order."""
        if not 0 <= count <= size:
            raise InputError(f"{count} of {size} cannot be drawn")
        return self.permutation(size)[:count]
