"""Signed envelopes that other tools read (DSSE v1, the JSON form): a payload, what it is, and signatures.

    payload       the bytes, in base64
    payloadType   what they are: a media type
    signatures    of each the bytes (`sig`), and a hint at the key (`keyid`), which decides nothing

What is signed is type and payload together, with their lengths (`signed_message`). What a payload says is to
be read only after `verify`. Keys are those that sign for logs: what they sign for checkpoints never begins as
an envelope's message does.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from zktrace.errors import InputError, InvalidProof, LimitExceeded, MalformedFile
from zktrace.primitives.canonical import to_json
from zktrace.primitives.fields import packed, text
from zktrace.primitives.text import listing, shown
from zktrace.transparency.keys import Signer, Verifier
from zktrace.transparency.note import SIGNATURES_LIMIT
from zktrace.transparency.trust import KEYS_LIMIT, LOG_KINDS

IN_TOTO: Final = "application/vnd.in-toto+json"
PAYLOAD_LIMIT: Final = 1 << 21  # bytes
FILE_LIMIT: Final = 1 << 22
_SIGNATURE_LIMIT: Final = 1 << 13
_COMMAS_LIMIT: Final = 1 << 10  # of the whole JSON text: each value but the first stands behind one
_TYPE: Final = text(200)
_KEY_ID_LIMIT: Final = 1 << 10  # characters
_PAYLOAD: Final = packed(0, PAYLOAD_LIMIT)
_VALUE: Final = packed(1, _SIGNATURE_LIMIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeSignature:
    """What a key made, and a hint at which key that was."""

    value: bytes
    key_id: str = ""

    def __post_init__(self) -> None:
        _VALUE.check(self.value, "a signature of an envelope")
        if len(self.key_id) > _KEY_ID_LIMIT or not self.key_id.isprintable():
            raise MalformedFile(f"a signature of an envelope: its keyid is not {_KEY_ID_LIMIT} characters")

    def as_json(self) -> dict[str, str]:
        """For a file; an empty hint is left out."""
        return {"sig": str(_VALUE.write(self.value))} | ({"keyid": self.key_id} if self.key_id else {})

    @classmethod
    def from_json(cls, value: object) -> Self:
        """A member of `signatures`; members of it that are not known are passed over."""
        if not isinstance(value, dict):
            raise MalformedFile("a signature of an envelope: must be an object")
        key_id = value.get("keyid", "")
        if not isinstance(key_id, str):
            raise MalformedFile("a signature of an envelope: its keyid must be text")
        return cls(value=_octets(value.get("sig"), _SIGNATURE_LIMIT, low=1, what="sig"), key_id=key_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedEnvelope:
    """A payload and its signatures, none of them verified."""

    kind: str  # of the payload
    payload: bytes
    signatures: tuple[EnvelopeSignature, ...]

    def __post_init__(self) -> None:
        _TYPE.check(self.kind, "an envelope: payloadType")
        if len(self.payload) > PAYLOAD_LIMIT:
            raise LimitExceeded(f"an envelope: {len(self.payload)} bytes, the limit is {PAYLOAD_LIMIT}")
        if not 1 <= len(self.signatures) <= SIGNATURES_LIMIT:
            raise MalformedFile(f"an envelope: must have 1..{SIGNATURES_LIMIT} signatures")

    @classmethod
    def sign(cls, kind: str, payload: bytes, signers: Sequence[Signer]) -> Self:
        """A payload under the signatures of keys that sign for a log."""
        _check_keys([each.verifier for each in signers])
        _TYPE.check(kind, "an envelope: payloadType")
        message = signed_message(kind, payload)
        made = tuple(
            EnvelopeSignature(
                value=each.kind.algorithm.sign(each.seed, message), key_id=key_id(each.verifier)
            )
            for each in signers
        )
        return cls(kind=kind, payload=payload, signatures=made)

    def to_bytes(self) -> bytes:
        """One line of canonical JSON."""
        whole = {
            "payload": _PAYLOAD.write(self.payload),
            "payloadType": self.kind,
            "signatures": [each.as_json() for each in self.signatures],
        }
        return to_json(whole) + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The envelope in a JSON text, of whoever wrote it, or MalformedFile.

        Both alphabets of base64 are taken, and members that are not known are passed over, as DSSE says.
        """
        body = _object(data)
        signatures = body.get("signatures")
        if not isinstance(signatures, list) or len(signatures) > SIGNATURES_LIMIT:
            raise MalformedFile(f"an envelope: must have 1..{SIGNATURES_LIMIT} signatures")
        return cls(
            kind=_TYPE.read(body.get("payloadType"), "an envelope: payloadType"),
            payload=_octets(body.get("payload", ""), PAYLOAD_LIMIT, low=0, what="payload"),
            signatures=tuple(EnvelopeSignature.from_json(each) for each in signatures),
        )

    def verify(
        self, keys: Sequence[Verifier], *, kinds: Sequence[str] = (IN_TOTO,), quorum: int = 1
    ) -> tuple[Verifier, ...]:
        """The keys that signed; InvalidProof unless `quorum` of them did, over a payload of these kinds.

        Signatures that are of none of the keys, or do not hold, are passed over: only keys count, each once.
        """
        _check_keys(keys)
        if not 1 <= quorum <= len(keys):
            raise InputError(f"{quorum} of {len(keys)} keys cannot be asked for")
        message = signed_message(self.kind, self.payload)
        signed = tuple(
            key for key in keys if any(_holds(key, message, each.value) for each in self.signatures)
        )
        if len(signed) < quorum:
            names = listing([shown(key.name) for key in keys])
            raise InvalidProof(
                check="envelope", reason=f"{len(signed)} of the keys of {names} signed it, not {quorum}"
            )
        if self.kind not in kinds:
            raise InvalidProof(check="envelope", reason=f"its payload is of the kind {shown(self.kind)}")
        return signed


def signed_message(kind: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: type and payload, each behind its length in bytes."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def key_id(key: Verifier) -> str:
    """The hint at a key: the front of its published line."""
    return f"{key.name}+{key.key_id.hex()}"


def _check_keys(keys: Sequence[Verifier]) -> None:
    if not 1 <= len(keys) <= KEYS_LIMIT:
        raise InputError(f"an envelope is signed, and verified, by 1..{KEYS_LIMIT} keys")
    for each in keys:
        if each.kind not in LOG_KINDS:
            raise InputError(f"{shown(each.name)}: its kind of key, {each.kind.value:#04x}, is no log's")
    if len({each.public for each in keys}) != len(keys):
        raise InputError("a key is there twice: each counts once, whatever names it has")


def _holds(key: Verifier, message: bytes, value: bytes) -> bool:
    if len(value) != key.kind.algorithm.signature_bytes:
        return False
    try:
        key.kind.algorithm.verify(key.public, message, value)
    except InvalidProof:
        return False
    return True


def _octets(value: object, high: int, *, low: int, what: str) -> bytes:
    """Bytes in one of the two alphabets of base64."""
    if isinstance(value, str) and not (set(value) & set("+/") and set(value) & set("-_")):
        value = value.replace("-", "+").replace("_", "/")
    return packed(low, high).read(value, f"an envelope: {what}")


def _object(data: bytes) -> dict[str, Any]:
    """A JSON object of few values, none of its names twice."""
    if len(data) > FILE_LIMIT:
        raise LimitExceeded(f"an envelope of {len(data)} bytes, the limit is {FILE_LIMIT}")
    if data.count(b",") > _COMMAS_LIMIT:
        raise LimitExceeded("an envelope: its JSON text has more values than any envelope")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise MalformedFile("an envelope: a name twice in its JSON text")
        return dict(pairs)

    try:
        value = json.loads(data.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise MalformedFile("an envelope: not JSON text") from None
    if not isinstance(value, dict):
        raise MalformedFile("an envelope: must be a JSON object")
    return value
