"""Notes and keys: the bytes of the specification, and nothing else is taken for them."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transparency.logs import Log, key
from transparency.vectors import vectors
from zktrace.errors import Error, InvalidProof, LimitExceeded, MalformedFile, MalformedKey, Unsupported
from zktrace.transparency import algorithms
from zktrace.transparency.algorithms import ALGORITHMS, Algorithm
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import Kind, Signer, Verifier
from zktrace.transparency.note import NOTE_LIMIT, SIGNATURES_LIMIT, Note, Signature

NOTE = vectors()["note"]
GIVEN = vectors()["checkpoint"]


def test_the_vector_of_gos_notes_is_made_and_opened_byte_for_byte() -> None:
    signer = Signer.from_text(NOTE["signer"])
    assert signer.to_text() == NOTE["signer"]
    assert signer.verifier.to_text() == NOTE["verifier"]
    made = signer.sign(NOTE["text"], at=0)
    assert made.to_line() == NOTE["signature"]
    both = (NOTE["text"] + "\n" + NOTE["signature"] + NOTE["other_signature"]).encode()
    note = Note.from_bytes(both)
    assert note.text == NOTE["text"]
    assert note.to_bytes() == both
    for text, signature in zip((NOTE["verifier"], NOTE["other"]), note.signatures, strict=True):
        assert Verifier.from_text(text).verify(note.text, signature) is None


def test_no_part_of_a_key_and_no_other_byte_of_it_is_a_key() -> None:
    for whole, kind in ((NOTE["verifier"], Verifier), (NOTE["signer"], Signer)):
        for begin in range(0, len(whole), 3):
            for end in range(begin + 1, len(whole) + 1, 5):
                if (begin, end) != (0, len(whole)):
                    with pytest.raises(MalformedFile):
                        kind.from_text(whole[begin:end])
        for at in range(len(whole)):
            with pytest.raises(MalformedFile):
                kind.from_text(whole[:at] + chr(ord(whole[at]) + 1) + whole[at + 1 :])
    for text in NOTE["no_verifiers"]:
        with pytest.raises(MalformedKey):
            Verifier.from_text(text)


def test_the_example_of_the_specification_is_read_as_it_says() -> None:
    note = Note.from_bytes(GIVEN["note"].encode())
    assert note.to_bytes() == GIVEN["note"].encode()
    found = LogCheckpoint.from_text(note.text)
    assert (found.origin, found.size) == ("example.com/behind-the-sofa", 20852163)
    assert found.to_text() == note.text
    cosigned = note.signatures[1]
    assert (cosigned.name, len(cosigned.value)) == ("witness.example.com/w1", 8 + 64)
    assert int.from_bytes(cosigned.value[:8], "big") == GIVEN["time"]
    assert Kind.COSIGNATURE.message(cosigned.name, note.text, GIVEN["time"]).decode() == GIVEN["message"]


def test_another_programs_ml_dsa_signature_of_a_checkpoint_holds() -> None:
    given_ = vectors()["mldsa"]
    verifier, note = Verifier.from_text(given_["verifier"]), Note.from_bytes(given_["note"].encode())
    assert verifier.to_text() == given_["verifier"]
    assert verifier.kind is Kind.ML_DSA_COSIGNATURE
    assert verifier.verify(note.text, note.signatures[0]) == 0
    other = note.text.replace("\n1\n", "\n2\n")
    with pytest.raises(InvalidProof):
        verifier.verify(other, note.signatures[0])


def test_the_message_under_ml_dsa_is_the_struct_of_the_specification() -> None:
    text = Log().checkpoint(5).to_text()
    root = base64.b64decode(text.split("\n")[2])
    by_hand = (
        bytes.fromhex("737562747265652f76310a00")
        + bytes([4]) + b"w.ex"
        + (77).to_bytes(8, "big")
        + bytes([17]) + b"log.example/north"
        + bytes(8) + (5).to_bytes(8, "big") + root
    )  # fmt: skip
    assert Kind.ML_DSA_COSIGNATURE.message("w.ex", text, 77) == by_hand


@pytest.mark.parametrize("kind", list(Kind))
def test_a_key_is_named_by_the_hash_of_name_kind_and_public_key(kind: Kind) -> None:
    verifier = key(kind).verifier
    whole = b"log.example/north\n" + bytes([kind.value]) + verifier.public
    assert verifier.key_id == hashlib.sha256(whole).digest()[:4]
    assert Verifier.from_text(verifier.to_text()) == verifier
    assert Signer.from_text(key(kind).to_text()) == key(kind)
    assert key(kind).seed.hex() not in repr(key(kind))


@pytest.mark.parametrize("kind", list(Kind))
def test_every_byte_of_a_signed_checkpoint_counts(kind: Kind) -> None:
    """Contract of all kinds: what was signed holds, anything else is rejected, and never a traceback."""
    signer, text = key(kind), Log().checkpoint(9).to_text()
    made = signer.sign(text, at=1_700_000_000)
    assert signer.verifier.verify(text, made) == (1_700_000_000 if kind.timed else None)
    for at in range(0, len(made.value), 1 if kind is not Kind.ML_DSA_COSIGNATURE else 97):
        bent = made.value[:at] + bytes([made.value[at] ^ 1]) + made.value[at + 1 :]
        with pytest.raises(InvalidProof):
            signer.verifier.verify(text, Signature(name=made.name, key=made.key, value=bent))
    for other in (text.replace("9", "8", 1), text.replace("north", "south")):
        with pytest.raises((InvalidProof, MalformedFile)):
            signer.verifier.verify(other, made)
    for value in (made.value[:-1], made.value + b"\x00", b"\x00"):
        with pytest.raises(InvalidProof):
            signer.verifier.verify(text, Signature(name=made.name, key=made.key, value=value))
    with pytest.raises(InvalidProof):
        key(kind, number=2).verifier.verify(text, made)


def test_one_key_for_two_kinds_signs_two_messages() -> None:
    text = Log().checkpoint(3).to_text()
    plain, timed = key(Kind.NOTE), key(Kind.COSIGNATURE)
    assert plain.verifier.public == timed.verifier.public
    assert plain.verifier.key_id != timed.verifier.key_id
    lent = plain.sign(text, at=0).value
    with pytest.raises(InvalidProof):
        timed.verifier.verify(
            text, Signature(name=timed.name, key=timed.verifier.key_id, value=bytes(8) + lent)
        )


@pytest.mark.parametrize("algorithm", list(ALGORITHMS.values()), ids=list(ALGORITHMS))
def test_the_contract_of_an_algorithm(algorithm: Algorithm) -> None:
    seed, other = bytes(range(32)), bytes(32)
    public = algorithm.public_of(seed)
    assert len(public) == algorithm.public_bytes
    assert algorithm.public_of(seed) == public
    assert algorithm.public_of(other) != public
    for message in (b"", b"x", bytes(10_000)):
        signature = algorithm.sign(seed, message)
        assert len(signature) == algorithm.signature_bytes
        algorithm.verify(public, message, signature)
        for wrong in ((public, message + b"y", signature), (algorithm.public_of(other), message, signature)):
            with pytest.raises(InvalidProof):
                algorithm.verify(*wrong)
        with pytest.raises(InvalidProof):
            algorithm.verify(public, message, bytes(algorithm.signature_bytes))


def test_ed25519_is_that_of_rfc_8032() -> None:
    """Section 7.1, TEST 1 and TEST 2."""
    seeds = {
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60": (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb": (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
    }
    algorithm = ALGORITHMS["ed25519"]
    for seed, (public, message, signature) in seeds.items():
        assert algorithm.public_of(bytes.fromhex(seed)).hex() == public
        assert algorithm.sign(bytes.fromhex(seed), bytes.fromhex(message)).hex() == signature


def test_a_build_without_ml_dsa_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    signer, text = key(Kind.ML_DSA_COSIGNATURE), Log().checkpoint(1).to_text()
    verifier, made = signer.verifier, signer.sign(text, at=1)

    def missing() -> None:
        raise algorithms._lacking()

    monkeypatch.setattr(algorithms, "_mldsa", missing)
    for call in (
        lambda: verifier.verify(text, made),
        lambda: signer.sign(text, at=1),
        lambda: key(Kind.ML_DSA_COSIGNATURE, number=3).verifier,
    ):
        with pytest.raises(Unsupported, match="ed25519"):
            call()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        NOTE["text"].encode(),
        (NOTE["text"] + "\n" + NOTE["signature"])[:-1].encode(),
        b"\x01" + (NOTE["text"] + "\n" + NOTE["signature"]).encode(),
        b"\xff" + (NOTE["text"] + "\n" + NOTE["signature"]).encode(),
        (NOTE["text"] + "\n" + NOTE["signature"].replace("Peter", "Peter ")).encode(),
        (NOTE["text"] + "\n" + NOTE["signature"].replace("Peter", "Peter+")).encode(),
        (NOTE["text"] + "\n" + NOTE["signature"].replace("\u2014", "-")).encode(),
        (NOTE["text"] + "\n" + NOTE["signature"].replace("=\n", "\n")).encode(),
        (NOTE["text"] + "\n" + NOTE["signature"] + "One more line.\n").encode(),
        (NOTE["text"] + "\n" + NOTE["signature"] * (SIGNATURES_LIMIT + 1)).encode(),
        (NOTE["text"].replace(" ", "\t") + "\n" + NOTE["signature"]).encode(),
    ],
)
def test_what_is_no_note(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        Note.from_bytes(data)


def test_a_note_is_bounded_before_it_is_read() -> None:
    with pytest.raises(LimitExceeded):
        Note.from_bytes(bytes(NOTE_LIMIT + 1))
    sixteen = NOTE["text"] + "\n" + NOTE["signature"] * 16  # what everybody must take
    assert len(Note.from_bytes(sixteen.encode()).signatures) == 16


def test_a_new_signature_of_a_key_takes_the_place_of_its_old_one() -> None:
    witness = key(Kind.COSIGNATURE, name="w", number=5)
    note = Log().note(4, witness, at=10)
    again = note.signed(witness.sign(note.text, at=20))
    assert [each.name for each in again.signatures] == ["log.example/north", "w"]
    assert witness.verifier.verify(again.text, again.signatures[1]) == 20


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n",
        "a\n1\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=",
        "\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n01\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n-1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n\u0661\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        f"a\n{1 << 63}\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jx\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n",
        "a\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n" + "x" * 5000 + "\n",
    ],
)
def test_what_is_no_checkpoint(text: str) -> None:
    with pytest.raises(MalformedFile):
        LogCheckpoint.from_text(text)


@given(data=st.binary(max_size=300), cut=st.integers(0, 400), put=st.binary(max_size=4))
def test_whatever_is_read_is_a_note_of_the_same_bytes_or_an_error_of_ours(
    data: bytes, cut: int, put: bytes
) -> None:
    whole = Log().note(7).to_bytes()
    for each in (data, whole[:cut] + put + whole[cut + len(put) :]):
        try:
            found = Note.from_bytes(each)
            checkpoint = LogCheckpoint.from_text(found.text)
        except Error:
            continue
        assert found.to_bytes() == each
        assert checkpoint.to_text() == found.text


@given(text=st.text(max_size=120))
def test_whatever_is_read_is_a_key_of_the_same_text_or_an_error_of_ours(text: str) -> None:
    for kind in (Verifier, Signer):
        try:
            found = kind.from_text(text)
        except Error:
            continue
        assert found.to_text() == text
