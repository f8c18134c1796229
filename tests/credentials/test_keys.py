"""Keys: the relation they promise, their bytes, and what is not a key."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credentials import reference
from support import seeded
from zktrace.credentials import (
    DEFAULT,
    Component,
    PublicKey,
    SecretKey,
    Standing,
    XLPNParams,
    by_name,
)
from zktrace.credentials.params import PAPER, SMALL, names
from zktrace.errors import Error, InputError, MalformedComponent, MalformedKey, UnknownParameters


@pytest.mark.parametrize("name", names())
def test_the_witness_satisfies_the_relation(name: str) -> None:
    """y = A s + e with wt(e) exactly w, by dense products."""
    key = SecretKey.generate(by_name(name), entropy=seeded("relation"))
    a = reference.matrix(key.params, key.matrix_seed)
    s, e, y = (reference.bits(bytes(part)) for part in (key.s, key.e, key.public.y))
    assert e.sum() == key.params.weight
    assert ((a @ s + e) % 2 == y).all()


def test_every_set_knows_its_standing() -> None:
    standings = {name: by_name(name).standing for name in names()}
    assert standings == {
        "xlpn-1280-640-132": Standing.STRONG,
        "xlpn-1024-512-128": Standing.REPRODUCTION,
        "test-128-64-16": Standing.TEST,
        "test-1280-640-16r": Standing.TEST,
    }
    assert names()[0] == DEFAULT.name == SecretKey.generate().params.name
    assert {name for name in names() if not by_name(name).weakness} == {DEFAULT.name}


def test_the_papers_instance_stays_as_it_was() -> None:
    assert (PAPER.length, PAPER.secret, PAPER.weight, PAPER.rounds) == (1024, 512, 128, 331)
    assert PAPER.weight == int(PAPER.length * 0.125 + 0.5)
    assert DEFAULT.rounds == PAPER.rounds


def test_a_public_key_is_a_little_over_two_hundred_bytes() -> None:
    assert len(SecretKey.generate().public.to_bytes()) == 15 + 1 + len(DEFAULT.name) + 32 + 160


def test_the_codeword_hashes_the_expanded_matrix() -> None:
    public = SecretKey.generate(entropy=seeded("codeword")).public
    a = np.packbits(reference.matrix(public.params, public.seed).astype(np.uint8), axis=1).tobytes()
    assert len(a) == 102_400
    full = hashlib.shake_128(a + public.y).digest(32)
    assert public.codeword(256) == full
    assert public.codeword() == full[:16]
    assert public.codeword(13) == bytes([full[0], full[1] & 0b1111_1000])


@pytest.mark.parametrize("kind", [PublicKey, SecretKey])
def test_bytes_round_trip(kind: type[PublicKey] | type[SecretKey]) -> None:
    key = SecretKey.generate(SMALL, entropy=seeded("bytes"))
    value = key if kind is SecretKey else key.public
    again = kind.from_bytes(value.to_bytes())
    assert again == value
    assert again.to_bytes() == value.to_bytes()


def test_a_secret_key_never_prints_its_seed() -> None:
    key = SecretKey.generate(SMALL)
    assert key.witness_seed.hex() not in repr(key)
    assert repr(key.witness_seed) not in repr(key)


def test_a_damaged_secret_key_is_noticed_at_every_byte() -> None:
    data = SecretKey.generate(SMALL, entropy=seeded("damage")).to_bytes()
    for at in range(len(data)):
        with pytest.raises(MalformedKey):
            SecretKey.from_bytes(data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :])


@settings(max_examples=300)
@given(st.binary(max_size=300), st.integers(0, 60), st.booleans())
def test_no_bytes_raise_anything_but_our_errors(noise: bytes, keep: int, secret: bool) -> None:
    key = SecretKey.generate(SMALL, entropy=seeded("noise"))
    good = key.to_bytes() if secret else key.public.to_bytes()
    data = good[:keep] + noise
    kind = SecretKey if secret else PublicKey
    try:
        assert kind.from_bytes(data).to_bytes() == data
    except Error as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"zkt-xlpn-pub-v2" + data[15:], "does not begin with 'zkt-xlpn-pub-v1'"),
        (lambda data: data + b"\0", "1 bytes after the end"),
        (lambda data: data[:-1], "ends inside y"),
        (lambda data: data[:16] + b"T" + data[17:], "unknown parameter set 'Test-128-64-16'"),
        (lambda data: b"", "does not begin with"),
        (lambda data: data[:15] + b"\xff" + data[16:], "ends inside the parameter set"),
        (lambda data: data[:16] + b"\x80\n" + data[18:], r"unknown parameter set '\\\\x80\\n"),
    ],
)
def test_what_is_wrong_with_a_public_key_is_said(change, reason: str) -> None:  # noqa: ANN001
    data = SecretKey.generate(SMALL).public.to_bytes()
    with pytest.raises(MalformedKey, match=reason):
        PublicKey.from_bytes(change(data))


def test_unknown_parameters_name_the_known_ones() -> None:
    with pytest.raises(UnknownParameters, match=f"known: {DEFAULT.name}"):
        by_name("rsa-2048")


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 1000},
        {"length": 2 << 16},
        {"weight": 0},
        {"weight": 513},
        {"secret": 9},
        {"secret": 0},
        {"secret": 1024},
        {"rounds": 0},
    ],
)
def test_inconsistent_parameters_cannot_exist(wrong: dict[str, int]) -> None:
    good = {"length": 1024, "secret": 512, "weight": 128, "rounds": 1}
    with pytest.raises(InputError, match="x"):
        XLPNParams(name="x", standing=Standing.TEST, **(good | wrong))


@given(st.text("01", min_size=1, max_size=300))
def test_component_text_round_trips(text: str) -> None:
    component = Component.from_text(text + "\n")
    assert component.to_text() == text
    assert component.bits == len(text)


@pytest.mark.parametrize("text", ["", "\n", "012", "01\n\n", " 01", "0" * 65_537, "\u0660\u0661"])
def test_anything_else_is_no_component(text: str) -> None:
    with pytest.raises(MalformedComponent):
        Component.from_text(text)


def test_a_component_has_no_bits_behind_its_end() -> None:
    with pytest.raises(MalformedComponent, match="behind its end"):
        Component(bits=1, packed=b"\xff")
    assert Component(bits=1, packed=b"\x80").to_text() == "1"


def test_distance_counts_bits() -> None:
    public = SecretKey.generate(SMALL).public
    word = Component(bits=13, packed=public.codeword(13))
    text = word.to_text()
    assert word.distance(public) == 0
    assert Component.from_text("".join("10"[int(bit)] for bit in text)).distance(public) == 13
