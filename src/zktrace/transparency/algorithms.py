"""Two ways to sign, with the same verbs: Ed25519 (RFC 8032) and ML-DSA-44 (FIPS 204). Keys are raw bytes.

ML-DSA is in newer versions of `cryptography` only, and not in every build of it: Unsupported says so.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from zktrace.errors import InvalidProof, MalformedKey, Unsupported

if TYPE_CHECKING:
    from types import ModuleType

SEED_BYTES: Final = 32  # of a private key, of either kind


class Algorithm(Protocol):
    """A signature scheme. Keys and signatures have the sizes that it says before they come here."""

    name: str
    public_bytes: int
    signature_bytes: int

    def public_of(self, seed: bytes) -> bytes:
        """The public key that belongs to a private one."""

    def sign(self, seed: bytes, message: bytes) -> bytes:
        """A signature."""

    def verify(self, public: bytes, message: bytes, signature: bytes) -> None:
        """InvalidProof unless the holder of the key signed this message."""


class Ed25519:
    """Deterministic: one message has one signature."""

    name = "ed25519"
    public_bytes = 32
    signature_bytes = 64

    def public_of(self, seed: bytes) -> bytes:
        """RFC 8032, section 5.1.5."""
        return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()

    def sign(self, seed: bytes, message: bytes) -> bytes:
        """64 bytes."""
        return Ed25519PrivateKey.from_private_bytes(seed).sign(message)

    def verify(self, public: bytes, message: bytes, signature: bytes) -> None:
        """InvalidProof unless it holds."""
        _checked(lambda: Ed25519PublicKey.from_public_bytes(public), signature, message, self.name)


class MLDSA44:
    """Hedged: a message has a new signature each time."""

    name = "ml-dsa-44"
    public_bytes = 1312
    signature_bytes = 2420

    def public_of(self, seed: bytes) -> bytes:
        """FIPS 204, ML-DSA.KeyGen_internal of the seed."""
        return bytes(self._private(seed).public_key().public_bytes_raw())

    def sign(self, seed: bytes, message: bytes) -> bytes:
        """2,420 bytes, with an empty context."""
        return bytes(self._private(seed).sign(message))

    def verify(self, public: bytes, message: bytes, signature: bytes) -> None:
        """InvalidProof unless it holds."""
        module = _mldsa()
        _checked(lambda: module.MLDSA44PublicKey.from_public_bytes(public), signature, message, self.name)

    def _private(self, seed: bytes) -> Any:  # noqa: ANN401
        try:
            return _mldsa().MLDSA44PrivateKey.from_seed_bytes(seed)
        except UnsupportedAlgorithm:
            raise _lacking() from None


def _checked(key: Any, signature: bytes, message: bytes, name: str) -> None:  # noqa: ANN401
    """Verify by the key that `key` makes."""
    try:
        made = key()
    except UnsupportedAlgorithm:
        raise _lacking() from None
    except ValueError:
        raise MalformedKey(f"not a public key of {name}") from None
    try:
        made.verify(signature, message)
    except InvalidSignature:
        raise InvalidProof(check="signature", reason=f"the {name} signature does not hold") from None


def _mldsa() -> "ModuleType":
    try:
        from cryptography.hazmat.primitives.asymmetric import mldsa  # noqa: PLC0415
    except ImportError:
        raise _lacking() from None
    return mldsa


def _lacking() -> Unsupported:
    return Unsupported(
        "this build of the library `cryptography` has no ML-DSA-44: install a newer one, or use ed25519"
    )


ED25519: Final = Ed25519()
ML_DSA_44: Final = MLDSA44()
ALGORITHMS: Final[dict[str, Algorithm]] = {each.name: each for each in (ED25519, ML_DSA_44)}
