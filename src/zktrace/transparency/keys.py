"""Keys that sign notes: verifiers as others configure them, signers as their owners keep them.

    verifier   NAME+KEYID+BASE64(kind | public key)                what is published: a "vkey"
    signer     PRIVATE+KEY+NAME+KEYID+BASE64(kind | seed)          what is kept, in a file of mode 0600

The kind is one byte. It says with which scheme, and over which message, the key signs:

    0x01   Ed25519 over the text of the note                       (c2sp.org/signed-note)
    0x04   Ed25519 over "cosignature/v1", a time and the text      (c2sp.org/tlog-cosignature)
    0x06   ML-DSA-44 over a binary message with name, time, origin, size and root (the same)
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, Self

from zktrace.errors import InvalidProof, MalformedFile, MalformedKey
from zktrace.primitives.fields import packed
from zktrace.primitives.text import shown
from zktrace.transparency.algorithms import ED25519, ML_DSA_44, SEED_BYTES, Algorithm
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.note import ID_BYTES, NAME_LIMIT, Signature, check_key_name, encoded

KEY_LIMIT: Final = 1 << 12  # characters of a key in a file
TIME_LIMIT: Final = (1 << 63) - 1
_TIME_BYTES: Final = 8
_PRIVATE: Final = "PRIVATE+KEY+"
_MATERIAL: Final = packed(2, 1 << 11)
_SUBTREE: Final = b"subtree/v1\n\x00"

Entropy = Callable[[int], bytes]


class Kind(Enum):
    """What a key signs, and how; the value is the byte in its encoding."""

    NOTE = 0x01
    COSIGNATURE = 0x04
    ML_DSA_COSIGNATURE = 0x06

    @property
    def algorithm(self) -> Algorithm:
        """The scheme."""
        return ML_DSA_44 if self is Kind.ML_DSA_COSIGNATURE else ED25519

    @property
    def timed(self) -> bool:
        """Whether a signature says when it was made."""
        return self is not Kind.NOTE

    def message(self, name: str, text: str, at: int) -> bytes:
        """The bytes that are signed."""
        match self:
            case Kind.NOTE:
                return encoded(text)
            case Kind.COSIGNATURE:
                return encoded(f"cosignature/v1\ntime {at}\n{text}")
            case Kind.ML_DSA_COSIGNATURE:
                return _subtree_message(name, LogCheckpoint.from_text(text), at)


def _subtree_message(name: str, checkpoint: LogCheckpoint, at: int) -> bytes:
    """`cosigned_message` of tlog-cosignature, of the whole tree; extension lines are no part of it."""
    origin = encoded(checkpoint.origin)
    if len(origin) > NAME_LIMIT:
        raise MalformedFile(f"a checkpoint: its origin has {len(origin)} bytes, ML-DSA signs {NAME_LIMIT}")
    parts = (
        _SUBTREE,
        _short(encoded(name)),
        at.to_bytes(8, "big"),
        _short(origin),
        bytes(8),  # the first entry
        checkpoint.size.to_bytes(8, "big"),
        checkpoint.root,
    )
    return b"".join(parts)


def _short(data: bytes) -> bytes:
    return len(data).to_bytes(1, "big") + data


def _key_id(name: str, material: bytes) -> bytes:
    return hashlib.sha256(encoded(name) + b"\n" + material).digest()[:ID_BYTES]


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """Somebody's public key, with the name that it signs under."""

    name: str
    kind: Kind
    public: bytes

    def __post_init__(self) -> None:
        check_key_name(self.name)
        if len(self.public) != self.kind.algorithm.public_bytes:
            raise MalformedKey(
                f"a public key of {len(self.public)} bytes, {self.kind.algorithm.name} has "
                f"{self.kind.algorithm.public_bytes}"
            )

    @cached_property
    def key_id(self) -> bytes:
        """What signature lines name the key by. It is short: it finds a key, it does not stand for one."""
        return _key_id(self.name, self._material)

    @property
    def _material(self) -> bytes:
        return bytes([self.kind.value]) + self.public

    def to_text(self) -> str:
        """One line, to be published."""
        return f"{self.name}+{self.key_id.hex()}+{_MATERIAL.write(self._material)}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The verifier that `to_text` wrote, or MalformedKey."""
        name, kind, public = _taken_apart(text)
        found = cls(name=name, kind=kind, public=public)
        if found.to_text() != text:
            raise MalformedKey(f"{shown(text)}: its key identifier is that of another key")
        return found

    def made(self, signature: Signature) -> bool:
        """Whether a signature says that it is this key's."""
        return (signature.name, signature.key) == (self.name, self.key_id)

    def verify(self, text: str, signature: Signature) -> int | None:
        """InvalidProof unless the key signed this text. When it did, if the signature says so."""
        if not self.made(signature):
            raise InvalidProof(check="signature", reason=f"it is not of the key {shown(self.name)}")
        value, at = signature.value, 0
        if self.kind.timed:
            at, value = int.from_bytes(value[:_TIME_BYTES], "big"), value[_TIME_BYTES:]
        if len(value) != self.kind.algorithm.signature_bytes or at > TIME_LIMIT:
            raise InvalidProof(check="signature", reason=f"{shown(self.name)}: a signature of the wrong size")
        try:
            message = self.kind.message(self.name, text, at)
            self.kind.algorithm.verify(self.public, message, value)
        except InvalidProof as error:
            raise InvalidProof(check="signature", reason=f"{shown(self.name)}: {error.reason}") from None
        return at if self.kind.timed else None


@dataclass(frozen=True, kw_only=True)
class Signer:
    """A private key with the name that it signs under."""

    name: str
    kind: Kind
    seed: bytes

    def __post_init__(self) -> None:
        check_key_name(self.name)
        if len(self.seed) != SEED_BYTES:
            raise MalformedKey(f"a private key of {len(self.seed)} bytes, it must have {SEED_BYTES}")

    def __repr__(self) -> str:
        return f"Signer(name={self.name!r}, kind={self.kind})"  # never the seed

    @classmethod
    def generate(cls, name: str, kind: Kind, *, entropy: Entropy = secrets.token_bytes) -> Self:
        """A new key."""
        return cls(name=name, kind=kind, seed=entropy(SEED_BYTES))

    @cached_property
    def verifier(self) -> Verifier:
        """The public half."""
        return Verifier(name=self.name, kind=self.kind, public=self.kind.algorithm.public_of(self.seed))

    def to_text(self) -> str:
        """One line, to be kept."""
        material = bytes([self.kind.value]) + self.seed
        return f"{_PRIVATE}{self.name}+{self.verifier.key_id.hex()}+{_MATERIAL.write(material)}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The signer that `to_text` wrote, or MalformedKey; nothing of it is ever shown."""
        if not text.startswith(_PRIVATE):
            raise MalformedKey("not a private key for notes (PRIVATE+KEY+NAME+ID+BASE64)")
        try:
            name, kind, seed = _taken_apart(text.removeprefix(_PRIVATE))
            found = cls(name=name, kind=kind, seed=seed)
        except MalformedFile:
            raise MalformedKey("not a private key for notes (PRIVATE+KEY+NAME+ID+BASE64)") from None
        if found.to_text() != text:
            raise MalformedKey("a private key for notes whose identifier is that of another key")
        return found

    def sign(self, text: str, *, at: int) -> Signature:
        """A signature over the text of a note, made at this time where it says when (seconds since 1970)."""
        if not 0 <= at <= TIME_LIMIT:
            raise MalformedFile(f"{at}: no time that a signature can have")
        made = self.kind.algorithm.sign(self.seed, self.kind.message(self.name, text, at))
        time = at.to_bytes(_TIME_BYTES, "big") if self.kind.timed else b""
        return Signature(name=self.name, key=self.verifier.key_id, value=time + made)


def _taken_apart(text: str) -> tuple[str, Kind, bytes]:
    """Name, kind and key material of an encoded key."""
    if len(text) > KEY_LIMIT:
        raise MalformedKey(f"a key for notes has at most {KEY_LIMIT} characters")
    name, _, rest = text.partition("+")
    _, _, value = rest.partition("+")
    try:
        material = _MATERIAL.read(value, "a key for notes")
        check_key_name(name)
        kind = Kind(material[0])
    except (MalformedFile, ValueError):
        raise MalformedKey(
            f"{shown(text)}: not a key for notes (NAME+ID+BASE64) of a kind that is known here"
        ) from None
    return name, kind, material[1:]
