"""The secret of a tracing code: 32 bytes from which every subkey is derived by its use."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from zktrace.errors import InputError, MalformedKey
from zktrace.primitives.encoding import ByteReader
from zktrace.primitives.shake import Shake

Entropy = Callable[[int], bytes]  # how many bytes -> that many uniform bytes

KEY_MAGIC: Final = b"zkt-code-key-v1"
KEY_BYTES: Final = 32
SUBKEY_BYTES: Final = 32
FILE_LIMIT: Final = 1_024  # bytes; a key file has 79


class Use(StrEnum):
    """All that the code key is used for. A subkey of one use tells nothing of any other."""

    CHECK = "check"  # at the end of the key file
    FINGERPRINT = "fingerprint"  # names a code: label, length, coalition size
    KEY_OPENING = "key-opening"  # rho of the commitment to the key
    BIASES = "biases"  # seed of a carrier's biases: carrier
    PLACE = "place"  # seed of a station's row: carrier, place
    RELEASE = "release"  # seed of a release's directions: carrier, number of the release
    PROBES = "probes"  # which images are probes of a release: carrier, number of the release


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

    def shake(self, use: Use, *parts: bytes) -> Shake:
        """What has absorbed a use and the first of its parts: many subkeys go on from there."""
        return Shake(f"zkt-key-v1/{use}", self.secret, *parts)

    def subkey(self, use: Use, *parts: bytes) -> bytes:
        """The subkey of one use."""
        return self.shake(use, *parts).digest(SUBKEY_BYTES)

    def to_bytes(self) -> bytes:
        """The canonical encoding; it ends with a hash of the key as a check."""
        return KEY_MAGIC + self.secret + self.subkey(Use.CHECK)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The key that `to_bytes` wrote, or MalformedKey, also if the check at its end does not hold."""
        reader = ByteReader(data, what="code key", error=MalformedKey)
        reader.expect(KEY_MAGIC)
        key = cls(secret=reader.take(KEY_BYTES, "the key"))
        check = reader.take(SUBKEY_BYTES, "the check")
        reader.finish()
        if not secrets.compare_digest(check, key.subkey(Use.CHECK)):
            raise reader.fail("damaged: its check does not hold")
        return key
