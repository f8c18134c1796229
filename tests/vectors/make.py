"""Writes credentials.json from the slow reference. Run only to add vectors: existing ones must not change."""

import hashlib
import json
from pathlib import Path

from credentials import reference
from support import seeded
from zktrace.credentials import (
    Binding,
    Component,
    CredentialBinding,
    MessageBinding,
    ModelBinding,
    SecretKey,
    by_name,
)


def binding_of(mode: str, key: SecretKey) -> Binding:
    """The statement of a vector."""
    if mode == "model":
        word = Component(bits=128, packed=key.public.codeword())
        return ModelBinding(state_digest=bytes(range(32)), component=word)
    return MessageBinding.of(b"known answer") if mode == "message" else CredentialBinding()


def vector(params: str, mode: str) -> dict[str, object]:
    """All bytes of one key and one proof."""
    label = f"{params} {mode}"
    entropy = seeded(label)
    key = SecretKey.generate(by_name(params), entropy=entropy)
    proof = reference.prove(key, binding_of(mode, key), entropy).to_bytes()
    return {
        "label": label,
        "params": params,
        "mode": mode,
        "secret_key": key.to_bytes().hex(),
        "public_key": key.public.to_bytes().hex(),
        "codeword": key.public.codeword().hex(),
        "proof_bytes": len(proof),
        "proof_sha256": hashlib.sha256(proof).hexdigest(),
    }


if __name__ == "__main__":
    folder = Path(__file__).parent
    sets = ("xlpn-1024-512-128", "test-128-64-16")
    vectors = [vector(params, mode) for params in sets for mode in ("credential", "model", "message")]
    (folder / "credentials.json").write_text(json.dumps(vectors, indent=1) + "\n")
