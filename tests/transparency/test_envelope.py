"""Envelopes: DSSE's own vectors byte for byte, whatever others may write, and nothing that was bent."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transparency.logs import Log, key
from zktrace.errors import Error, InputError, InvalidProof, LimitExceeded, MalformedFile
from zktrace.transparency.envelope import (
    FILE_LIMIT,
    IN_TOTO,
    PAYLOAD_LIMIT,
    EnvelopeSignature,
    SignedEnvelope,
    key_id,
    signed_message,
)
from zktrace.transparency.keys import Kind, Signer, Verifier
from zktrace.transparency.note import SIGNATURES_LIMIT
from zktrace.transparency.trust import Trust

GIVEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "dsse.json").read_text())
SIGNERS = {
    name: Signer(name=name, kind=Kind.NOTE, seed=bytes.fromhex(each["seed"]))
    for name, each in GIVEN["keys"].items()
}
VECTORS = GIVEN["vectors"]
KINDS = (Kind.NOTE, Kind.ML_DSA_COSIGNATURE)
PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1"}'


def decided(vector: dict[str, Any]) -> str:
    keys = [SIGNERS[name].verifier for name in vector["trustedKeys"]]
    try:
        found = SignedEnvelope.from_bytes(json.dumps(vector["envelope"]).encode())
        found.verify(keys, kinds=vector["supportedPayloadTypes"], quorum=vector["threshold"])
    except (InvalidProof, MalformedFile):
        return "reject"
    return "accept"


@pytest.mark.parametrize("vector", VECTORS, ids=[each["id"] for each in VECTORS])
def test_a_vector_of_dsse_is_decided_as_it_says(vector: dict[str, Any]) -> None:
    for name, each in GIVEN["keys"].items():
        assert SIGNERS[name].verifier.public.hex() == each["public"]
    assert decided(vector) == vector["expect"]


@pytest.mark.parametrize("vector", VECTORS, ids=[each["id"] for each in VECTORS])
def test_the_signed_bytes_and_the_signatures_are_those_of_the_vector(vector: dict[str, Any]) -> None:
    """Also of those to be rejected: their signatures are over another type than the envelope has."""
    message = bytes.fromhex(vector["pae"])
    data = base64.urlsafe_b64decode(vector["envelope"]["payload"].replace("+", "-").replace("/", "_"))
    if vector["expect"] == "accept":
        assert signed_message(vector["envelope"]["payloadType"], data) == message
    names = (each.get("keyid") for each in vector["envelope"]["signatures"])
    for each, name in zip(vector["envelope"]["signatures"], names, strict=True):
        made = {
            base64.b64encode(signer.kind.algorithm.sign(signer.seed, message))
            for owner, signer in SIGNERS.items()
            if name in (None, owner)
        }
        assert each["sig"].replace("-", "+").replace("_", "/").encode() in made


def test_the_example_in_the_text_of_the_protocol() -> None:
    found = signed_message("http://example.com/HelloWorld", b"hello world")
    assert found == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_what_is_written_is_canonical_and_read_again() -> None:
    signers = [key(kind) for kind in KINDS]
    made = SignedEnvelope.sign(IN_TOTO, PAYLOAD, signers)
    assert SignedEnvelope.from_bytes(made.to_bytes()) == made
    body = json.loads(made.to_bytes())
    assert made.to_bytes().decode() == json.dumps(body, sort_keys=True, separators=(",", ":")) + "\n"
    assert [each["keyid"] for each in body["signatures"]] == [key_id(each.verifier) for each in signers]
    assert made.verify([each.verifier for each in signers], quorum=2) == tuple(e.verifier for e in signers)
    spaced = json.dumps(body | {"more": {"of": ["it"]}}, indent=2).encode()
    assert SignedEnvelope.from_bytes(spaced).to_bytes() == made.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_of_type_payload_and_signature_counts(kind: Kind) -> None:
    signer = key(kind)
    made = SignedEnvelope.sign(IN_TOTO, PAYLOAD, [signer])
    value, step = made.signatures[0].value, 1 if kind is Kind.NOTE else 211
    bent = [
        SignedEnvelope(
            kind=IN_TOTO[:at] + "x" + IN_TOTO[at + 1 :], payload=PAYLOAD, signatures=made.signatures
        )
        for at in range(len(IN_TOTO))
    ]
    for at in range(len(PAYLOAD)):
        payload = PAYLOAD[:at] + bytes([PAYLOAD[at] ^ 1]) + PAYLOAD[at + 1 :]
        bent.append(SignedEnvelope(kind=IN_TOTO, payload=payload, signatures=made.signatures))
    wrong = [value[:-1], value + b"\x00", b"\x00"]
    wrong += [value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] for at in range(0, len(value), step)]
    for each in wrong:
        signatures = (EnvelopeSignature(value=each, key_id=made.signatures[0].key_id),)
        bent.append(SignedEnvelope(kind=IN_TOTO, payload=PAYLOAD, signatures=signatures))
    for envelope in bent:
        with pytest.raises(InvalidProof):
            envelope.verify([signer.verifier], kinds=(IN_TOTO, envelope.kind))
    with pytest.raises(InvalidProof):
        made.verify([key(kind, number=2).verifier])
    with pytest.raises(InvalidProof, match="of the kind"):
        made.verify([signer.verifier], kinds=("application/json",))


def test_a_hint_decides_nothing() -> None:
    signer, other = key(), key(number=2)
    value = SignedEnvelope.sign(IN_TOTO, PAYLOAD, [signer]).signatures[0].value
    for hint in ("", "somebody", key_id(other.verifier)):
        made = SignedEnvelope(
            kind=IN_TOTO, payload=PAYLOAD, signatures=(EnvelopeSignature(value=value, key_id=hint),)
        )
        assert made.verify([other.verifier, signer.verifier]) == (signer.verifier,)
        with pytest.raises(InvalidProof):
            made.verify([other.verifier])


def test_a_key_counts_once_under_whatever_names() -> None:
    twice = [key().verifier, key(name="another.name").verifier]
    with pytest.raises(InputError, match="twice"):
        SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key()]).verify(twice, quorum=2)


def test_only_keys_of_logs_sign_and_are_asked() -> None:
    witness = key(Kind.COSIGNATURE, name="w")
    for call in (
        lambda: SignedEnvelope.sign(IN_TOTO, PAYLOAD, [witness]),
        lambda: SignedEnvelope.sign(IN_TOTO, PAYLOAD, []),
        lambda: SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key()]).verify([witness.verifier]),
        lambda: SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key()]).verify([key().verifier], quorum=2),
        lambda: SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key()]).verify([key().verifier], quorum=0),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize("kind", KINDS)
def test_no_signature_of_an_envelope_is_one_of_a_checkpoint(kind: Kind) -> None:
    """One key signs both: a payload that is a checkpoint's text makes no checkpoint, and the other way."""
    log = Log(signer=key(kind))
    note = log.note(5)
    made = SignedEnvelope.sign(IN_TOTO, note.text.encode(), [log.signer])
    value = made.signatures[0].value
    lent = note.signatures[0].value
    signatures = (EnvelopeSignature(value=lent[8:] if kind.timed else lent),)
    with pytest.raises(InvalidProof):
        SignedEnvelope(kind=IN_TOTO, payload=note.text.encode(), signatures=signatures).verify(
            [log.signer.verifier]
        )
    stamped = bytes(8) + value if kind.timed else value
    line = note.signatures[0].to_line().split(" ")[1]
    packed = base64.b64encode(log.signer.verifier.key_id + stamped).decode()
    with pytest.raises(InvalidProof):
        Trust(logs=(log.signer.verifier,)).open(f"{note.text}\n\u2014 {line} {packed}\n".encode())


def bodies() -> list[dict[str, Any]]:
    whole = json.loads(SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key()]).to_bytes())
    one = whole["signatures"][0]
    return [
        whole | {"payload": value} for value in (7, None, [], "=", "e30", "e31=", "-/==", "ä", "e30=\n")
    ] + [
        whole | {"payloadType": value} for value in (7, None, "", "x" * 201, "a\nb", "\ud800")
    ] + [
        whole | {"signatures": value}
        for value in (
            None, {}, [], "x", [None], [{}], [one | {"sig": ""}], [one | {"sig": 5}],
            [one | {"keyid": 5}], [one | {"keyid": "x" * 2000}], [one | {"keyid": "a\nb"}],
            [one] * (SIGNATURES_LIMIT + 1),
        )
    ]  # fmt: skip


@pytest.mark.parametrize("body", bodies(), ids=range(len(bodies())))
def test_what_is_no_envelope(body: dict[str, Any]) -> None:
    with pytest.raises(MalformedFile):
        SignedEnvelope.from_bytes(json.dumps(body).encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"7", b"{", b"\xff", b"{}", b"[" * 100_000, b'{"a":1,"a":2}', b"1" * 5000, b"NaN"],
)
def test_what_is_no_json_object_of_an_envelope(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        SignedEnvelope.from_bytes(data)


def test_an_envelope_is_bounded_before_it_is_read() -> None:
    for data in (b" " * (FILE_LIMIT + 1), b"[" + b"1," * 2000 + b"1]"):
        with pytest.raises(LimitExceeded):
            SignedEnvelope.from_bytes(data)
    with pytest.raises(LimitExceeded):
        SignedEnvelope.sign(IN_TOTO, bytes(PAYLOAD_LIMIT + 1), [key()])
    largest = SignedEnvelope.sign(IN_TOTO, bytes(PAYLOAD_LIMIT), [key()])
    assert SignedEnvelope.from_bytes(largest.to_bytes()) == largest


@given(data=st.binary(max_size=200), cut=st.integers(0, 500), put=st.binary(max_size=4))
def test_whatever_is_read_is_written_and_read_again_or_an_error_of_ours(
    data: bytes, cut: int, put: bytes
) -> None:
    made = SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key()])
    whole = made.to_bytes()
    for each in (data, whole[:cut] + put + whole[cut + len(put) :]):
        try:
            found = SignedEnvelope.from_bytes(each)
        except Error:
            continue
        assert SignedEnvelope.from_bytes(found.to_bytes()) == found
        try:
            found.verify([key().verifier])
        except InvalidProof:
            continue
        assert (found.kind, found.payload) == (made.kind, made.payload)


def test_keys_are_read_from_the_lines_that_logs_publish() -> None:
    line = key(Kind.ML_DSA_COSIGNATURE).verifier.to_text()
    made = SignedEnvelope.sign(IN_TOTO, PAYLOAD, [key(Kind.ML_DSA_COSIGNATURE)])
    assert made.verify([Verifier.from_text(line)])
    assert line.startswith(made.signatures[0].key_id)
