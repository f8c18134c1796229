"""The bytes of keys, biases, rows and coefficients are pinned for ever."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from codes import reference
from support import seeded
from zktrace.codes import Code, CodeKey, Coefficients, soft, symmetric, unpack
from zktrace.derivation.promises import Claim

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "code.json").read_text())


def code_of(vector: dict) -> Code:
    key = CodeKey(secret=bytes.fromhex(vector["key"]))
    return Code(key=key, label=vector["label"], length=vector["length"], colluders=vector["colluders"])


def summary(coefficients: Coefficients) -> str:
    return hashlib.sha256(coefficients.numerators.astype("<i8").tobytes()).hexdigest()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["label"])
def test_the_bytes_are_the_pinned_ones(vector: dict) -> None:
    code = code_of(vector)
    assert CodeKey.generate(entropy=seeded(vector["label"])) == code.key
    assert code.key.to_bytes().hex() == vector["key_file"]
    assert code.fingerprint.hex() == vector["fingerprint"]
    thresholds = code.biases.thresholds
    assert thresholds[:8].tolist() == vector["first_thresholds"]
    assert hashlib.sha256(thresholds.astype("<u4").tobytes()).hexdigest() == vector["thresholds_sha256"]
    indices = [int(index) for index in vector["rows"]]
    assert [row.tobytes().hex() for row in code.rows(indices)] == list(vector["rows"].values())
    nonce = seeded(f"nonce {code.label}")(32)
    owned = replace(code, claims=[Claim(nonce, code.label.encode())] * 8)
    assert owned.rows([7])[0].tobytes().hex() == vector["row_7_of_the_claim"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["label"])
def test_the_coefficients_are_the_pinned_ones(vector: dict) -> None:
    code = code_of(vector)
    word = unpack(code.rows([5])[0], code.length)
    assert summary(symmetric(word, code.biases)) == vector["symmetric_of_row_5_sha256"]
    found = soft(reference.readout(code.label, code.length), code.biases)
    assert found.numerators[:8].tolist() == vector["soft_first"]
    assert summary(found) == vector["soft_sha256"]


def test_the_reference_cipher_is_aes() -> None:
    """FIPS 197, appendix C.3."""
    plain, key = bytes(0x11 * i for i in range(16)), bytes(range(32))
    assert reference.aes(key, plain).hex() == "8ea2b7ca516745bfeafc49904b496089"
