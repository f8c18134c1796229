"""A station signs for copies that came: what is on record of it, and the files that go to and fro.

    delivery   what the operator says it handed out: copies of a release, or of rounds of a guarded one
    receipt    the same, with the proof of the station's credential over its bytes: a signature

The log has the digest of a receipt, and what it is for; the operator keeps the file, to show it to a judge.
"""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Self

from zktrace.credentials import MessageBinding, Proof, PublicKey, SecretKey, prove, verify
from zktrace.errors import LimitExceeded, MalformedFile
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.fields import Declared, distinct, listed, nested, octets, packed, text, whole
from zktrace.registry.forms import WHOLE_LIMIT, Digest, Name

DELIVERY: Final = "zkt-delivery-v1"
RECEIPT: Final = "zkt-receipt-v1"
COPIES_LIMIT: Final = 512  # of one receipt: its record is an entry of the log
PROOF_LIMIT: Final = 1 << 18  # bytes
FILE_LIMIT: Final = 1 << 19

Rounds = Annotated[tuple[int, ...], listed(whole(0, WHOLE_LIMIT), high=COPIES_LIMIT)]
Copies = Annotated[tuple[bytes, ...], listed(octets(32), low=1, high=COPIES_LIMIT)]


def check_handed(rounds: tuple[int, ...], copies: tuple[bytes, ...], what: str) -> None:
    """MalformedFile unless there is a copy for each round, in order; or copies of no round, each once."""
    if not rounds:
        distinct(copies, f"{what}: copies")
    elif len(rounds) != len(copies) or sorted(set(rounds)) != list(rounds):
        raise MalformedFile(f"{what}: must have a copy for each round, and rounds in their order, once each")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRecord(Declared):
    """Copies that a station signed for: dispatched ones, or those of broadcasts."""

    kind: ClassVar = "receipt"
    what: ClassVar = kind
    station: Name
    release: Name
    rounds: Rounds  # numbers of broadcasts; empty: the copies were dispatched
    copies: Copies  # digests of their states
    receipt: Digest  # of the file, which has the signature

    def check(self) -> None:
        """A copy for each round."""
        check_handed(self.rounds, self.copies, self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Declared):
    """What a station is asked to sign for."""

    what: ClassVar = "a delivery"
    station: Name
    release: Name
    rounds: Rounds
    copies: Copies
    setup: Digest  # of the registry's first record
    head: Annotated[str, text(200)]  # of the log when the operator asked

    def check(self) -> None:
        """A copy for each round."""
        check_handed(self.rounds, self.copies, self.what)

    def to_bytes(self) -> bytes:
        """The canonical text: what is signed."""
        return to_json({"format": DELIVERY, **self.as_json()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote (one line end may follow), or MalformedFile."""
        return cls.from_json(_opened(data, DELIVERY))


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Declared):
    """A delivery that its station signed."""

    what: ClassVar = "a receipt"
    delivery: Annotated[Delivery, nested(Delivery)]
    proof: Annotated[bytes, packed(1, PROOF_LIMIT)]

    @classmethod
    def sign(cls, key: SecretKey, delivery: Delivery) -> Self:
        """The station's signature."""
        made = prove(key, MessageBinding.of(delivery.to_bytes()))
        return cls(delivery=delivery, proof=made.to_bytes())

    def verify(self, public: PublicKey, *, allow_weak_params: bool = False) -> None:
        """InvalidProof unless the holder of this key signed."""
        binding = MessageBinding.of(self.delivery.to_bytes())
        verify(public, binding, Proof.from_bytes(self.proof), allow_weak_params=allow_weak_params)

    def record(self) -> ReceiptRecord:
        """What goes on record of it."""
        said = self.delivery
        return ReceiptRecord(
            station=said.station,
            release=said.release,
            rounds=said.rounds,
            copies=said.copies,
            receipt=self.digest(),
        )

    def digest(self) -> bytes:
        """SHA-256 of its canonical text."""
        return hashlib.sha256(self.to_bytes()).digest()

    def to_bytes(self) -> bytes:
        """The canonical text."""
        return to_json({"format": RECEIPT, **self.as_json()})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote (one line end may follow), or MalformedFile."""
        return cls.from_json(_opened(data, RECEIPT))


def _opened(data: bytes, magic: str) -> dict[str, Any]:
    """The object in a file of this format, without the format."""
    if len(data) > FILE_LIMIT:
        raise LimitExceeded(f"{magic}: {len(data)} bytes, the limit is {FILE_LIMIT}")
    value = from_json(data.removesuffix(b"\n"), what=magic)
    if not isinstance(value, dict) or value.pop("format", None) != magic:
        raise MalformedFile(f"its format must be {magic}")
    return value
