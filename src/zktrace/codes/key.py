"""The secret of a tracing code: 32 bytes from which every bias and every row is derived."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from zktrace.errors import InputError, MalformedKey
from zktrace.primitives.encoding import Reader
from zktrace.primitives.shake import Shake

Entropy = Callable[[int], bytes]  # how many bytes -> that many uniform bytes

KEY_MAGIC: Final = b"zkt-code-key-v1"
KEY_BYTES: Final = 32
FILE_LIMIT: Final = 1_024  # bytes; a key file has 79
_CHECK_BYTES: Final = 32


@dataclass(frozen=True, kw_only=True)
class CodeKey:
    """What the tracer keeps and nobody else may see. Never printed."""

    secret: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes) or len(self.secret) != KEY_BYTES:
            raise InputError(f"a code key is {KEY_BYTES} bytes")

    def __repr__(self) -> str:
        return "<CodeKey>"

    @classmethod
    def generate(cls, *, entropy: Entropy = secrets.token_bytes) -> Self:
        """A new key from operating-system randomness."""
        return cls(secret=entropy(KEY_BYTES))

    def stream(self, use: str, *parts: bytes) -> Shake:
        """The pseudo-random stream of one use of the key."""
        return Shake(f"zkt-code-v1/{use}", self.secret, *parts)

    def to_bytes(self) -> bytes:
        """The canonical encoding; it ends with a hash of the key as a check."""
        return KEY_MAGIC + self.secret + self._check()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The key that `to_bytes` wrote, or MalformedKey, also if the check at its end does not hold."""
        reader = Reader(data, what="code key", error=MalformedKey)
        reader.expect(KEY_MAGIC)
        key = cls(secret=reader.take(KEY_BYTES, "the key"))
        check = reader.take(_CHECK_BYTES, "the check")
        reader.finish()
        if not secrets.compare_digest(check, key._check()):
            raise reader.fail("damaged: its check does not hold")
        return key

    def _check(self) -> bytes:
        return self.stream("check").digest(_CHECK_BYTES)
