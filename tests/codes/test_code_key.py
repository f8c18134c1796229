"""Code keys: their bytes, and what is not a key."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import seeded
from zktrace.derivation.key import CodeKey, Use
from zktrace.errors import Error, InputError, MalformedKey


def test_bytes_round_trip() -> None:
    key = CodeKey.generate(entropy=seeded("code key"))
    assert CodeKey.from_bytes(key.to_bytes()) == key
    assert len(key.to_bytes()) == 79


def test_two_keys_differ() -> None:
    assert CodeKey.generate() != CodeKey.generate()


def test_a_key_is_never_printed() -> None:
    key = CodeKey.generate()
    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)


def test_uses_of_a_key_have_subkeys_of_their_own() -> None:
    key = CodeKey.generate(entropy=seeded("uses"))
    found = [key.subkey(use, *parts) for use in Use for parts in ((), (b"a",), (b"a", b"b"), (b"ab",))]
    assert len(set(found)) == len(found)


def test_a_damaged_key_is_noticed_at_every_byte() -> None:
    data = CodeKey.generate(entropy=seeded("damage")).to_bytes()
    for at in range(len(data)):
        with pytest.raises(MalformedKey):
            CodeKey.from_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"zkt-code-key-v2" + data[15:], "does not begin with 'zkt-code-key-v1'"),
        (lambda data: data + b"\0", "1 bytes after the end"),
        (lambda data: data[:-1], "ends inside the check"),
        (lambda data: data[:40], "ends inside the key"),
        (lambda data: b"", "does not begin with"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "damaged"),
    ],
)
def test_what_is_wrong_with_a_key_is_said(change, reason: str) -> None:  # noqa: ANN001
    with pytest.raises(MalformedKey, match=reason):
        CodeKey.from_bytes(change(CodeKey.generate().to_bytes()))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100), st.integers(0, 79))
def test_no_bytes_raise_anything_but_our_errors(noise: bytes, keep: int) -> None:
    data = CodeKey.generate(entropy=seeded("noise")).to_bytes()[:keep] + noise
    try:
        assert CodeKey.from_bytes(data).to_bytes() == data
    except Error as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33), "0" * 32])
def test_a_key_of_another_size_cannot_exist(secret: bytes) -> None:
    with pytest.raises(InputError, match="32 bytes"):
        CodeKey(secret=secret)
