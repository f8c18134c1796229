"""Whom one believes: the log's key and enough witnesses; and proofs of entries under such a checkpoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transparency.logs import ORIGIN, Log, key
from zktrace.errors import Error, InputError, InvalidLog, InvalidProof, LimitExceeded, MalformedFile
from zktrace.transparency.keys import Kind, Signer
from zktrace.transparency.note import Note, Signature
from zktrace.transparency.proof import FILE_LIMIT, PATH_LIMIT, LogProof
from zktrace.transparency.trust import Trust, check_one_log, moment

LOG = Log()
W = tuple(
    key(kind, name=f"w{number}.example", number=number)
    for number, kind in enumerate((Kind.COSIGNATURE, Kind.ML_DSA_COSIGNATURE, Kind.COSIGNATURE), start=11)
)
TRUST = Trust(logs=(LOG.signer.verifier,), witnesses=tuple(each.verifier for each in W), quorum=2)


def test_enough_witnesses_are_enough() -> None:
    opened = TRUST.open(LOG.note(9, W[2], W[1], at=1234).to_bytes())
    assert opened.signed == (ORIGIN,)
    assert [(each.name, each.at) for each in opened.witnesses] == [
        ("w12.example", 1234),
        ("w13.example", 1234),
    ]
    assert opened.checkpoint == LOG.checkpoint(9)
    assert "'w12.example' (1970-01-01T00:20:34Z) and 'w13.example'" in str(opened)
    assert moment((1 << 63) - 1) == "9223372036854775807 seconds after 1970"


@pytest.mark.parametrize("cosigners", [(), (W[0],), (W[0], W[0])])
def test_too_few_are_too_few_however_often_one_signs(cosigners: tuple[Signer, ...]) -> None:
    note = LOG.note(9, *cosigners)
    with pytest.raises(InvalidProof, match="2 are needed"):
        TRUST.open(note.to_bytes())


def test_a_witness_that_nobody_knows_counts_for_nothing() -> None:
    stranger = key(Kind.COSIGNATURE, name="stranger", number=99)
    namesake = key(Kind.COSIGNATURE, name=W[1].name, number=98)
    with pytest.raises(InvalidProof, match="1 of the trusted"):
        TRUST.open(LOG.note(9, W[0], stranger, namesake).to_bytes())


def test_a_signature_of_a_known_key_that_does_not_hold_spoils_the_note() -> None:
    note = LOG.note(9, *W)
    for at, each in enumerate(note.signatures):
        bent = Signature(name=each.name, key=each.key, value=each.value[:-1] + bytes([each.value[-1] ^ 1]))
        signatures = (*note.signatures[:at], bent, *note.signatures[at + 1 :])
        with pytest.raises(InvalidProof, match="does not hold"):
            TRUST.open(Note(text=note.text, signatures=signatures).to_bytes())


def test_another_log_under_a_trusted_key_is_another_log() -> None:
    """A key signs for its own origin alone."""
    text = LOG.note(9).text.replace(ORIGIN, "log.example/south")
    signed = Note(text=text, signatures=tuple(each.sign(text, at=5) for each in (LOG.signer, *W)))
    with pytest.raises(InvalidProof, match="south"):
        TRUST.open(signed.to_bytes())
    with pytest.raises(InvalidProof, match="no trusted key"):
        TRUST.open(Log(signer=key(number=2)).note(9, *W).to_bytes())


def test_a_witness_with_two_keys_is_one_witness() -> None:
    """A post-quantum key beside the usual one: whoever has both is not a quorum of two."""
    both = tuple(key(kind, name="w1.example", number=30 + kind.value) for kind in (W[0].kind, W[1].kind))
    verifiers = tuple(each.verifier for each in both)
    note = LOG.note(9, *both, at=7).to_bytes()
    one = Trust(witnesses=(*verifiers, W[2].verifier), quorum=1)
    assert [each.name for each in one.open(note).witnesses] == ["w1.example"]
    assert one.open(LOG.note(9, both[1]).to_bytes()).witnesses[0].name == "w1.example"
    two = Trust(witnesses=(*verifiers, W[2].verifier), quorum=2)
    with pytest.raises(
        InvalidProof, match=r"1 of the trusted witnesses cosigned it \(w1.example\), 2 are needed"
    ):
        two.open(note)
    assert len(two.open(LOG.note(9, both[0], W[2]).to_bytes()).witnesses) == 2
    with pytest.raises(InputError, match="2 of 1 witnesses cannot be asked for"):
        Trust(witnesses=verifiers, quorum=2)


def test_a_trust_that_asks_for_nothing_opens_nothing() -> None:
    with pytest.raises(InputError, match="any checkpoint would do"):
        Trust(witnesses=TRUST.witnesses).open(LOG.note(3).to_bytes())
    witnesses_only = Trust(witnesses=TRUST.witnesses, quorum=1)
    assert witnesses_only.open(LOG.note(3, W[0]).to_bytes()).signed == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"quorum": 4},
        {"quorum": -1},
        {"witnesses": (*TRUST.witnesses, key(Kind.COSIGNATURE, name="again", number=11).verifier)},
        {"witnesses": (key(Kind.NOTE, number=20).verifier,), "quorum": 1},
        {"logs": (key(Kind.COSIGNATURE, number=20).verifier,)},
        {"witnesses": (key(Kind.COSIGNATURE, number=1).verifier,), "quorum": 1},  # the log's own key
        {"logs": tuple(key(number=each).verifier for each in range(100, 165))},
    ],
)
def test_what_is_no_trust(wrong: dict[str, object]) -> None:
    whole = {"logs": TRUST.logs, "witnesses": TRUST.witnesses, "quorum": 1} | wrong
    with pytest.raises(InputError):
        Trust(**whole)  # type: ignore[arg-type]


def test_two_heads_of_one_size_are_a_fork() -> None:
    honest, liar = (TRUST.open(each.note(9, *W).to_bytes()) for each in (LOG, Log(history="another")))
    longer = TRUST.open(LOG.note(10, *W).to_bytes())
    check_one_log([honest, longer, honest])
    with pytest.raises(InvalidLog, match=r"a fork: .* at 9.*two faces"):
        check_one_log([honest, longer, liar])


@pytest.mark.parametrize("size", [1, 2, 7, 8, 13])
def test_an_entry_is_proved_offline(size: int) -> None:
    for index in range(size):
        data = LOG.proof(index, size, *W[:2]).to_bytes()
        proof = LogProof.from_bytes(data)
        assert proof.to_bytes() == data
        assert data.startswith(b"c2sp.org/tlog-proof@v1\nextra ")
        assert proof.verify(TRUST).checkpoint.size == size
        assert proof.verify(TRUST, LOG.entry(index)).checkpoint.size == size
        with pytest.raises(InvalidProof):
            proof.verify(TRUST, LOG.entry(index + 1))


def test_every_line_of_a_proof_counts() -> None:
    data = LOG.proof(5, 13, *W[:2]).to_bytes()
    LogProof.from_bytes(data).verify(TRUST)
    lines = data.split(b"\n")
    for at, line in enumerate(lines):
        for other in (line + b"x", b"", line[:-1], line.replace(b"5", b"6"), line.replace(b"A", b"B")):
            bent = b"\n".join([*lines[:at], other, *lines[at + 1 :]])
            if bent == data:
                continue
            with pytest.raises(Error):
                LogProof.from_bytes(bent).verify(TRUST)
        with pytest.raises(Error):
            LogProof.from_bytes(b"\n".join([*lines[:at], *lines[at + 1 :]])).verify(TRUST)


def test_a_proof_without_its_entry_needs_it() -> None:
    whole = LOG.proof(5, 13, *W[:2])
    bare = LogProof(index=5, path=whole.path, checkpoint=whole.checkpoint)
    again = LogProof.from_bytes(bare.to_bytes())
    assert again == bare
    again.verify(TRUST, LOG.entry(5))
    with pytest.raises(InvalidProof, match="does not hold its entry"):
        again.verify(TRUST)


def test_a_proof_is_bounded() -> None:
    with pytest.raises(LimitExceeded):
        LogProof.from_bytes(bytes(FILE_LIMIT + 1))
    note = LOG.note(3).to_bytes()
    hashes = b"KgEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n" * (PATH_LIMIT + 1)
    with pytest.raises(MalformedFile, match="at most 63"):
        LogProof.from_bytes(b"c2sp.org/tlog-proof@v1\nindex 0\n" + hashes + b"\n" + note)


@given(data=st.binary(max_size=200), cut=st.integers(0, 700), put=st.binary(max_size=5))
def test_whatever_is_read_is_a_proof_of_the_same_bytes_or_an_error_of_ours(
    data: bytes, cut: int, put: bytes
) -> None:
    whole = LOG.proof(5, 13).to_bytes()
    for each in (data, whole[:cut] + put + whole[cut + len(put) :]):
        try:
            found = LogProof.from_bytes(each)
        except Error:
            continue
        assert found.to_bytes() == each
