"""The bytes of keys, codewords and proofs are pinned for ever."""

import hashlib
import json
from pathlib import Path

import pytest

from credentials.lenient import verify
from support import seeded
from vectors.make import MESSAGE, MODEL_DIGEST, NONCE, OFFER
from zktrace.credentials import (
    DEFAULT,
    Binding,
    Component,
    CredentialBinding,
    MessageBinding,
    Mode,
    ModelBinding,
    Proof,
    PublicKey,
    RequestBinding,
    SecretKey,
    by_name,
    prove,
)
from zktrace.credentials.params import PAPER, SMALL

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "credentials.json").read_text())


def binding_of(mode: str, key: SecretKey) -> Binding:
    if mode == "model":
        word = Component(bits=128, packed=key.public.codeword())
        return ModelBinding(state_digest=MODEL_DIGEST, component=word)
    if mode == "request":
        return RequestBinding(offer=OFFER, nonce=NONCE)
    return MessageBinding.of(MESSAGE) if mode == "message" else CredentialBinding()


def test_every_set_of_keys_in_use_is_pinned_in_every_mode() -> None:
    pinned = {(vector["params"], vector["mode"]) for vector in VECTORS}
    names = (DEFAULT.name, PAPER.name, SMALL.name)
    assert pinned == {(name, mode.name.lower()) for name in names for mode in Mode}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["label"])
def test_the_bytes_are_the_pinned_ones(vector: dict[str, str]) -> None:
    entropy = seeded(vector["label"])
    key = SecretKey.generate(by_name(vector["params"]), entropy=entropy)
    assert key.to_bytes().hex() == vector["secret_key"]
    assert key.public.to_bytes().hex() == vector["public_key"]
    assert key.public.codeword().hex() == vector["codeword"]
    binding = binding_of(vector["mode"], key)
    proof = prove(key, binding, entropy=entropy).to_bytes()
    assert len(proof) == vector["proof_bytes"]
    assert hashlib.sha256(proof).hexdigest() == vector["proof_sha256"]
    public = PublicKey.from_bytes(bytes.fromhex(vector["public_key"]))
    verify(public, binding, Proof.from_bytes(proof))
