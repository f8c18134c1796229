"""A station's request to enrol: its public key, a nonce that it drew, and a proof that the key is its own.

The proof is bound to the operator's offer, the record that promised the seeds of the next places. So the row
that comes of it is one that the operator could not foresee when it promised, nor the station when it asked.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Self

from zktrace.credentials import Proof, PublicKey, RequestBinding, SecretKey, prove, verify
from zktrace.derivation.promises import NONCE_BYTES
from zktrace.errors import InvalidProof, LimitExceeded, MalformedFile
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.fields import Declared, octets, packed
from zktrace.primitives.text import shown
from zktrace.registry.forms import Digest

FORMAT: Final = "zkt-request-v1"
OFFER_MAGIC: Final = "zkt-offer-v1"
PROOF_LIMIT: Final = 1 << 18  # bytes
FILE_LIMIT: Final = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Declared):
    """What a station hands to the operator. Nothing in it is secret."""

    what: ClassVar = "a request"
    offer: Digest
    nonce: Annotated[bytes, octets(NONCE_BYTES)]
    public_key: Annotated[bytes, octets(1, 4096)]
    proof: Annotated[bytes, packed(1, PROOF_LIMIT)]

    @classmethod
    def make(cls, key: SecretKey, offer: bytes, *, nonce: bytes | None = None) -> Self:
        """A request for a place of an offer; the nonce comes from the operating system."""
        drawn = secrets.token_bytes(NONCE_BYTES) if nonce is None else nonce
        proof = prove(key, RequestBinding(offer=offer, nonce=drawn))
        return cls(offer=offer, nonce=drawn, public_key=key.public.to_bytes(), proof=proof.to_bytes())

    @property
    def public(self) -> PublicKey:
        """The key that asks."""
        return PublicKey.from_bytes(self.public_key)

    def verify(self, offer: bytes, *, allow_weak_params: bool = False) -> None:
        """InvalidProof unless the holder of the key asks for a place of this very offer, with this nonce."""
        self.check_offer(offer)
        binding = RequestBinding(offer=self.offer, nonce=self.nonce)
        verify(self.public, binding, Proof.from_bytes(self.proof), allow_weak_params=allow_weak_params)

    def check_offer(self, offer: bytes) -> None:
        """InvalidProof unless it is for this offer; whether the proof holds is another question."""
        if self.offer != offer:
            reason = f"it is for the offer {self.offer.hex()}, the next place is of {offer.hex()}"
            raise InvalidProof(check="request", reason=reason)

    def to_bytes(self) -> bytes:
        """The canonical text."""
        return to_json({"format": FORMAT, **self.as_json()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote (one line end may follow), or MalformedFile."""
        if len(data) > FILE_LIMIT:
            raise LimitExceeded(f"request: {len(data)} bytes, the limit is {FILE_LIMIT}")
        value = from_json(data.removesuffix(b"\n"), what="request")
        if not isinstance(value, dict) or value.pop("format", None) != FORMAT:
            raise MalformedFile(f"request: its format must be {FORMAT}")
        return cls.from_json(value)

    def digest(self) -> bytes:
        """What an enrolment has on record of it."""
        return hashlib.sha256(self.to_bytes()).digest()


def offer_text(offer: bytes) -> str:
    """One line that an operator publishes."""
    return f"{OFFER_MAGIC}:{offer.hex()}"


def read_offer(text: str) -> bytes:
    """The digest in a line that `offer_text` wrote, or MalformedFile."""
    magic, _, digits = text.strip().partition(":")
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        found = b""
    if magic != OFFER_MAGIC or len(found) != hashlib.sha256().digest_size or found.hex() != digits:
        raise MalformedFile(f"{shown(text)}: not an offer ({OFFER_MAGIC}:<64 hexadecimal digits>)")
    return found
