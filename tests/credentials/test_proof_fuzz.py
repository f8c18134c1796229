"""Hostile proofs: more than ten thousand mutations, none accepted, no exception but ours."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from credentials.lenient import verify
from support import seeded
from zktrace.credentials import (
    DEFAULT,
    Binding,
    MessageBinding,
    Mode,
    Proof,
    PublicKey,
    SecretKey,
    prove,
)
from zktrace.credentials.params import SMALL
from zktrace.errors import Error, InvalidProof, MalformedProof

BINDING = MessageBinding.of(b"fuzz")
KEY = SecretKey.generate(SMALL, entropy=seeded("fuzz"))
GOOD = prove(KEY, BINDING, entropy=seeded("fuzz proof")).to_bytes()
OTHER = prove(KEY, BINDING, entropy=seeded("another proof")).to_bytes()
HEAD = len(b"zkt-stern-v1") + 1 + len(SMALL.name)


def outcome(data: bytes, public: PublicKey = KEY.public, binding: Binding = BINDING) -> str:
    """Which of our errors a mutation meets; an accepted one fails the test, any other exception too."""
    try:
        verify(public, binding, Proof.from_bytes(data))
    except Error as error:
        assert "\n" not in str(error)
        return type(error).__name__
    pytest.fail("a mutated proof was accepted")


def test_the_unchanged_proof_is_accepted() -> None:
    verify(KEY.public, BINDING, Proof.from_bytes(GOOD))


def flips() -> Iterator[bytes]:
    random = np.random.default_rng(7)
    for at in range(len(GOOD)):
        change = int(random.integers(1, 256))
        yield GOOD[:at] + bytes([GOOD[at] ^ change]) + GOOD[at + 1 :]


def truncations() -> Iterator[bytes]:
    for size in range(len(GOOD)):
        yield GOOD[:size]


def extensions() -> Iterator[bytes]:
    random = np.random.default_rng(8)
    for size in range(1, 301):
        yield GOOD + random.bytes(size)


def splices() -> Iterator[bytes]:
    random = np.random.default_rng(9)
    while True:
        low, high = sorted(random.integers(0, min(len(GOOD), len(OTHER)), 2).tolist())
        kind = int(random.integers(4))
        if kind == 0:
            candidate = GOOD[:low] + OTHER[low:high] + GOOD[high:]
        elif kind == 1:
            candidate = GOOD[:low] + GOOD[high:]
        elif kind == 2:
            candidate = GOOD[:low] + GOOD[low:high] * 2 + GOOD[high:]
        else:
            candidate = GOOD[:low] + bytes(high - low) + GOOD[high:]
        if candidate not in (GOOD, OTHER):
            yield candidate


def test_more_than_ten_thousand_mutations_are_refused() -> None:
    mutations = splices()
    seen = Counter(outcome(data) for data in flips())
    seen += Counter(outcome(data) for data in truncations())
    seen += Counter(outcome(data) for data in extensions())
    seen += Counter(outcome(next(mutations)) for _ in range(1500))
    assert seen.total() >= 10_000
    assert set(seen) == {"MalformedProof", "InvalidProof"}


def test_mutations_at_full_size_are_refused() -> None:
    key = SecretKey.generate(entropy=seeded("full fuzz"))
    good = prove(key, BINDING, entropy=seeded("full fuzz proof")).to_bytes()
    random = np.random.default_rng(10)
    for at in random.integers(0, len(good), 150).tolist():
        data = good[:at] + bytes([good[at] ^ int(random.integers(1, 256))]) + good[at + 1 :]
        outcome(data, key.public)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "does not begin with 'zkt-stern-v1'"),
        (b"zkt-stern-v2" + GOOD[12:], "does not begin with"),
        (GOOD[:13] + b"x" + GOOD[14:], "unknown parameter set"),
        (GOOD[:HEAD] + b"\x04" + GOOD[HEAD + 1 :], "unknown mode 4"),
        (GOOD + b"\0", "1 bytes after the end"),
        (GOOD[:-1], "ends inside the answers to challenge 2"),
        (GOOD[: HEAD + 20], "ends inside the salt"),
        (GOOD[: HEAD + 33] + b"\xf3" + GOOD[HEAD + 34 :], "a challenge byte above 242"),
        (GOOD[: HEAD + 33 + 9] + b"\xf2" + GOOD[HEAD + 33 + 10 :], "challenges beyond the last round"),
    ],
)
def test_what_is_wrong_with_a_proof_is_said(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedProof, match=reason):
        Proof.from_bytes(data)


def test_an_answer_of_another_weight_names_its_round_before_any_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof.from_bytes(GOOD)
    last = int(proof.rounds_of(2)[-1])
    code_at = len(GOOD) - 32 - 10  # the last answer ends in its code and one commitment
    data = GOOD[:code_at] + bytes([GOOD[code_at] ^ 0x80]) + GOOD[code_at + 1 :]
    monkeypatch.setattr("zktrace.credentials.stern.Oracle", None)
    with pytest.raises(InvalidProof) as caught:
        Proof.from_bytes(data)
    assert (caught.value.check, caught.value.round) == ("weight", last)


def test_decoding_allocates_a_small_multiple_of_the_file() -> None:
    key = SecretKey.generate(entropy=seeded("memory"))
    data = prove(key, BINDING, entropy=seeded("memory proof")).to_bytes()
    Proof.from_bytes(data)
    tracemalloc.start()
    Proof.from_bytes(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(data)


@pytest.mark.parametrize(
    "change",
    [
        {"challenges": np.zeros((0, SMALL.rounds), dtype=np.uint8)},
        {"challenges": np.full(SMALL.rounds, 3, dtype=np.uint8)},
        {"challenges": np.zeros(SMALL.rounds, dtype=np.int64)},
        {"salt": bytes(31)},
        {"roots": np.zeros((0, 32), dtype=np.uint8)},
        {"t2": np.zeros((1, 16), dtype=np.uint8)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_proof_of_another_shape_cannot_exist(change: dict[str, object]) -> None:
    with pytest.raises(MalformedProof, match=r"proof|salt"):
        replace(Proof.from_bytes(GOOD), **change)


def test_every_field_of_the_record_counts() -> None:
    """Change one byte of each field of the value itself: rejected, or it cannot be encoded."""
    key = SecretKey.generate(entropy=seeded("fields"))
    proof = prove(key, BINDING, entropy=seeded("fields proof"))
    changed = 0
    for name in ("unopened", "roots", "kappa0", "kappa2_of_1", "shifted", "t2", "kappa1", "kappa2_of_2"):
        table = getattr(proof, name).copy()
        table[-1, -1] ^= 1
        with pytest.raises(InvalidProof, match="challenge"):
            verify(key.public, BINDING, replace(proof, **{name: table}))
        changed += 1
    assert changed == 8
    errors = np.roll(proof.permuted_error, 1, axis=1)  # of the right weight, elsewhere
    with pytest.raises(InvalidProof, match="challenge"):
        verify(key.public, BINDING, replace(proof, permuted_error=errors))
    heavy = proof.permuted_error.copy()
    heavy[3, 0] ^= 1
    with pytest.raises(InvalidProof, match=f"round {proof.rounds_of(2)[3]}, weight"):
        verify(key.public, BINDING, replace(proof, permuted_error=heavy))
    with pytest.raises(InvalidProof):
        verify(key.public, BINDING, replace(proof, salt=bytes(32)))
    with pytest.raises(InvalidProof):
        verify(key.public, BINDING, replace(proof, mode=Mode.MODEL))
    assert proof.params == DEFAULT
