"""Domain-separated SHAKE-256 (FIPS 202).

A `Shake` has absorbed a domain name and a sequence of fields, each length-prefixed; two different sequences
under two different domains never absorb the same bytes. `fork` goes on from a common prefix without
absorbing it again, which is what makes hundreds of short hashes of one proof cheap.
"""

import hashlib
from collections.abc import Iterable
from typing import Self

from zktrace.primitives.encoding import field


class Shake:
    """SHAKE-256 over `domain` and then fields."""

    __slots__ = ("_state",)

    def __init__(self, domain: str, *parts: bytes) -> None:
        self._state = hashlib.shake_256(field(domain.encode()))
        for part in parts:
            self._state.update(field(part))

    def fork(self, *parts: bytes) -> Self:
        """A copy that has absorbed `parts` as well."""
        copy = object.__new__(type(self))
        copy._state = self._state.copy()
        copy._state.update(b"".join([len(part).to_bytes(8, "big") + part for part in parts]))
        return copy

    def fork_digest(self, size: int, *parts: bytes) -> bytes:
        """`fork(*parts).digest(size)`, for whoever makes a million of them."""
        state = self._state.copy()
        state.update(b"".join([len(part).to_bytes(8, "big") + part for part in parts]))
        return state.digest(size)

    def fork_digests(self, size: int, parts: Iterable[bytes]) -> bytes:
        """`fork(part).digest(size)` of each part, one after the other."""
        fork, out = self._state.copy, []
        for part in parts:
            state = fork()
            state.update(len(part).to_bytes(8, "big") + part)
            out.append(state.digest(size))
        return b"".join(out)

    def digest(self, size: int) -> bytes:
        """The first `size` bytes of the output stream. Longer outputs begin with the shorter ones."""
        return self._state.digest(size)
