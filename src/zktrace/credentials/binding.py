"""What a proof is about: nothing but the credential, a model state, a message, or a request to enrol.

The bytes of a binding end in the statement (A, y) and begin with a tag of their own, so no two kinds can be
confused; all fields are length-prefixed.
"""

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar, Final, Self

import numpy as np

from zktrace.credentials.keys import PublicKey
from zktrace.errors import InputError, InvalidProof, MalformedComponent
from zktrace.primitives.encoding import fields
from zktrace.primitives.files import open_regular, read_bounded

DIGEST_BYTES: Final = 32
NONCE_BYTES: Final = 32
MESSAGE_LIMIT: Final = 1 << 40
COMPONENT_BITS_LIMIT: Final = 1 << 16


class Mode(Enum):
    """The four kinds of statement; the value is the byte in a proof's header."""

    CREDENTIAL = 0
    MODEL = 1
    MESSAGE = 2
    REQUEST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The extracted identity component of one station: the bits read from a model at its block E_i."""

    bits: int
    packed: bytes  # first bit in the most significant place; unused last bits are 0

    def __post_init__(self) -> None:
        if not 0 < self.bits <= COMPONENT_BITS_LIMIT or len(self.packed) != -(-self.bits // 8):
            raise MalformedComponent("a component of the wrong size")
        if self.packed[-1] & ((1 << (8 * len(self.packed) - self.bits)) - 1):
            raise MalformedComponent("a component with bits behind its end")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """From a line of 0 and 1, with or without its end-of-line."""
        digits = text.removesuffix("\n")
        if not digits or set(digits) - {"0", "1"}:
            raise MalformedComponent("component: must be one line of the characters 0 and 1")
        if len(digits) > COMPONENT_BITS_LIMIT:
            raise MalformedComponent(f"component: more than {COMPONENT_BITS_LIMIT} bits")
        values = np.frombuffer(digits.encode(), dtype=np.uint8) - ord("0")
        return cls(bits=len(digits), packed=np.packbits(values).tobytes())

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """From a text file; see `from_text`."""
        data = read_bounded(path, limit=COMPONENT_BITS_LIMIT + 1)
        return cls.from_text(data.decode("ascii", errors="replace"))

    def to_text(self) -> str:
        """The line that `from_text` reads, without an end-of-line."""
        values = np.unpackbits(np.frombuffer(self.packed, dtype=np.uint8))[: self.bits]
        return "".join("01"[value] for value in values)

    def distance(self, public: PublicKey) -> int:
        """HD(h, w): in how many bits the component differs from the key's codeword."""
        difference = int.from_bytes(self.packed) ^ int.from_bytes(public.codeword(self.bits))
        return difference.bit_count()

    def check_presence(self, public: PublicKey, *, radius: int) -> None:
        """`eq_acceptance`: HD(h, w) <= radius, or InvalidProof."""
        distance = self.distance(public)
        if distance > radius:
            raise InvalidProof(
                check="presence",
                reason=f"the component differs from the codeword in {distance} of {self.bits} bits, "
                f"the radius is {radius}",
            )


@dataclass(frozen=True, slots=True)
class CredentialBinding:
    """Knowledge of the witness and nothing else. Such a proof can be shown again by anyone who has it."""

    mode: ClassVar = Mode.CREDENTIAL

    def parts(self) -> tuple[bytes, ...]:
        """The fields between the tag and the statement."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBinding:
    """Knowledge of the witness, said of one complete model state and the component read from it."""

    mode: ClassVar = Mode.MODEL
    state_digest: bytes
    component: Component

    def __post_init__(self) -> None:
        if len(self.state_digest) != DIGEST_BYTES:
            raise InputError("a model digest of the wrong size")

    def parts(self) -> tuple[bytes, ...]:
        """The fields between the tag and the statement."""
        return (self.state_digest, self.component.bits.to_bytes(4, "big") + self.component.packed)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBinding:
    """A signature: knowledge of the witness, said of one message."""

    mode: ClassVar = Mode.MESSAGE
    message_digest: bytes

    def __post_init__(self) -> None:
        if len(self.message_digest) != DIGEST_BYTES:
            raise InputError("a message digest of the wrong size")

    def parts(self) -> tuple[bytes, ...]:
        """The fields between the tag and the statement."""
        return (self.message_digest,)

    @classmethod
    def of(cls, message: bytes) -> Self:
        """Binding to a message in memory."""
        return cls(message_digest=hashlib.sha256(message).digest())

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Binding to the content of a file, read as a stream."""
        with open(open_regular(path, limit=MESSAGE_LIMIT), "rb") as handle:
            return cls(message_digest=hashlib.file_digest(handle, "sha256").digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBinding:
    """A request to enrol: knowledge of the witness, said of the operator's offer and the station's nonce."""

    mode: ClassVar = Mode.REQUEST
    offer: bytes  # digest of what the station was offered
    nonce: bytes  # the station's own draw

    def __post_init__(self) -> None:
        if len(self.offer) != DIGEST_BYTES or len(self.nonce) != NONCE_BYTES:
            raise InputError("an offer digest or a nonce of the wrong size")

    def parts(self) -> tuple[bytes, ...]:
        """The fields between the tag and the statement."""
        return (self.offer, self.nonce)


Binding = CredentialBinding | ModelBinding | MessageBinding | RequestBinding


def context(public: PublicKey, binding: Binding) -> bytes:
    """ctx = tag | H256(model state) | component | A | y of `alg_verify`, each field length-prefixed.

    In the other modes digest and component give way to the fields of the binding, or to nothing.
    """
    tag = f"zkt-stern-v1/{binding.mode.name.lower()}".encode()
    return fields((tag, *binding.parts(), public.matrix, public.y))
