"""Completeness, agreement with the paper's algorithm, and the forgeries of the paper."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credentials import reference
from credentials.lenient import verify
from support import seeded
from zktrace import credentials
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
    XLPNParams,
    prove,
)
from zktrace.credentials.params import PAPER, SHORT, SMALL
from zktrace.errors import InputError, InvalidProof, WeakParameters

KEYS = {
    params.name: SecretKey.generate(params, entropy=seeded(params.name))
    for params in (DEFAULT, PAPER, SHORT, SMALL)
}


def component_of(key: SecretKey) -> Component:
    return Component(bits=128, packed=key.public.codeword())


def bindings(key: SecretKey) -> list[Binding]:
    return [
        CredentialBinding(),
        ModelBinding(state_digest=bytes(32), component=component_of(key)),
        MessageBinding.of(b"a delivery receipt"),
        RequestBinding(offer=bytes(32), nonce=bytes(31) + b"\1"),
    ]


@pytest.mark.parametrize("params", [DEFAULT, PAPER, SHORT, SMALL], ids=lambda p: p.name)
@pytest.mark.parametrize("mode", Mode)
def test_an_honest_proof_survives_its_bytes_and_verifies(params: XLPNParams, mode: Mode) -> None:
    key = KEYS[params.name]
    binding = bindings(key)[mode.value]
    data = prove(key, binding).to_bytes()
    public = PublicKey.from_bytes(key.public.to_bytes())
    proof = Proof.from_bytes(data)
    verify(public, binding, proof)
    assert proof.to_bytes() == data
    assert proof.mode is mode


@pytest.mark.parametrize("params", [SHORT, SMALL], ids=lambda p: p.name)
@pytest.mark.parametrize("mode", Mode)
def test_fast_and_reference_make_the_same_bytes_and_accept_each_other(params: XLPNParams, mode: Mode) -> None:
    key = KEYS[params.name]
    binding = bindings(key)[mode.value]
    fast = prove(key, binding, entropy=seeded("same"))
    slow = reference.prove(key, binding, seeded("same"))
    assert fast.to_bytes() == slow.to_bytes()
    reference.verify(key.public, binding, fast)
    verify(key.public, binding, slow)


def test_fast_and_reference_agree_at_full_size() -> None:
    key = KEYS[DEFAULT.name]
    binding = MessageBinding.of(b"full size")
    reference.verify(key.public, binding, prove(key, binding))
    verify(key.public, binding, reference.prove(key, binding, seeded("full")))


@settings(max_examples=40)
@given(rounds=st.integers(1, 7), label=st.text(max_size=5))
def test_any_number_of_rounds_works_even_if_a_challenge_never_occurs(rounds: int, label: str) -> None:
    params = replace(SMALL, name="test-few", rounds=rounds)
    key = SecretKey.generate(params, entropy=seeded(label))
    binding = MessageBinding.of(label.encode())
    proof = prove(key, binding, entropy=seeded("mask" + label))
    verify(key.public, binding, proof)
    reference.verify(key.public, binding, proof)


def test_two_proofs_of_one_statement_share_nothing() -> None:
    key = KEYS[SMALL.name]
    one, two = (prove(key, CredentialBinding()) for _ in range(2))
    assert one.salt != two.salt
    assert not set(map(bytes, one.unopened)) & set(map(bytes, two.unopened))


def rejected(public: PublicKey, binding: Binding, proof: Proof, check: str) -> InvalidProof:
    with pytest.raises(InvalidProof) as caught:
        verify(public, binding, proof)
    assert caught.value.check == check
    return caught.value


def test_wrong_client_is_rejected() -> None:
    alice, bob = (SecretKey.generate(entropy=seeded(name)) for name in ("alice", "bob"))
    binding = CredentialBinding()
    error = rejected(alice.public, binding, prove(bob, binding), "challenge")
    assert error.round is not None
    assert "the proof answers" in error.reason


def test_server_side_forgery_is_rejected() -> None:
    """The server knows A, y and the codeword, not the witness: any other witness gives another statement."""
    victim = SecretKey.generate(entropy=seeded("victim"))
    guess = SecretKey(params=victim.params, matrix_seed=victim.matrix_seed, witness_seed=bytes(32))
    binding = ModelBinding(state_digest=bytes(32), component=component_of(victim))
    forged = prove(guess, binding)
    rejected(victim.public, binding, forged, "challenge")
    with pytest.raises(InvalidProof):
        reference.verify(victim.public, binding, forged)


def test_replay_on_another_state_with_equal_bits_is_rejected() -> None:
    key = KEYS[DEFAULT.name]
    here = ModelBinding(state_digest=bytes(32), component=component_of(key))
    there = replace(here, state_digest=bytes(31) + b"\1")
    proof = prove(key, here)
    verify(key.public, here, proof)
    rejected(key.public, there, proof, "challenge")


def test_replay_with_another_component_is_rejected() -> None:
    key = KEYS[DEFAULT.name]
    word = component_of(key)
    flipped = Component(bits=128, packed=bytes([word.packed[0] ^ 1]) + word.packed[1:])
    here = ModelBinding(state_digest=bytes(32), component=word)
    there = replace(here, component=flipped)
    proof = prove(key, here)
    with pytest.raises(InvalidProof, match="challenge"):
        verify(key.public, there, proof, radius=1)
    rejected(key.public, there, proof, "presence")
    longer = Component(bits=136, packed=word.packed + b"\0")
    with pytest.raises(InvalidProof, match="challenge"):
        verify(key.public, replace(here, component=longer), proof, radius=8)


def test_presence_is_part_of_acceptance() -> None:
    key = KEYS[SMALL.name]
    word = component_of(key)
    noisy = Component(bits=128, packed=bytes([word.packed[0] ^ 0b111]) + word.packed[1:])
    binding = ModelBinding(state_digest=bytes(32), component=noisy)
    proof = prove(key, binding)
    verify(key.public, binding, proof, radius=3)
    with pytest.raises(InvalidProof, match="differs from the codeword in 3 of 128 bits, the radius is 2"):
        verify(key.public, binding, proof, radius=2)


@pytest.mark.parametrize("made", Mode)
@pytest.mark.parametrize("used", Mode)
def test_the_modes_cannot_be_confused(made: Mode, used: Mode) -> None:
    key = KEYS[SMALL.name]
    proof = prove(key, bindings(key)[made.value])
    if made is used:
        verify(key.public, bindings(key)[used.value], proof)
        return
    rejected(key.public, bindings(key)[used.value], proof, "mode")
    relabelled = replace(proof, mode=used)  # the header is not what separates them
    rejected(key.public, bindings(key)[used.value], relabelled, "challenge")


def test_a_message_digest_cannot_pose_as_a_model_digest() -> None:
    key = KEYS[SMALL.name]
    message = MessageBinding.of(b"x")
    model = ModelBinding(state_digest=message.message_digest, component=component_of(key))
    proof = prove(key, message)
    rejected(key.public, model, replace(proof, mode=Mode.MODEL), "challenge")


def test_another_message_is_rejected() -> None:
    key = KEYS[SMALL.name]
    proof = prove(key, MessageBinding.of(b"paid: no"))
    rejected(key.public, MessageBinding.of(b"paid: yes"), proof, "challenge")


@pytest.mark.parametrize("other", [{"offer": bytes(31) + b"\1"}, {"nonce": bytes(32)}])
def test_a_request_holds_for_its_offer_and_its_nonce_alone(other: dict[str, bytes]) -> None:
    key = KEYS[SMALL.name]
    request = RequestBinding(offer=bytes(32), nonce=bytes(31) + b"\1")
    proof = prove(key, request)
    verify(key.public, request, proof)
    rejected(key.public, replace(request, **other), proof, "challenge")


@pytest.mark.parametrize("short", ["offer", "nonce"])
def test_a_request_of_the_wrong_size_cannot_exist(short: str) -> None:
    with pytest.raises(InputError, match="wrong size"):
        RequestBinding(**({"offer": bytes(32), "nonce": bytes(32)} | {short: bytes(31)}))


@pytest.mark.parametrize("params", [PAPER, SHORT, SMALL], ids=lambda p: p.name)
def test_a_set_that_is_not_strong_is_refused_unless_allowed(params: XLPNParams) -> None:
    key = KEYS[params.name]
    proof = prove(key, CredentialBinding())
    with pytest.raises(WeakParameters, match=f"^{params.name} is "):
        credentials.verify(key.public, CredentialBinding(), proof)
    credentials.verify(key.public, CredentialBinding(), proof, allow_weak_params=True)


def test_what_counts_is_the_standing_and_not_the_name() -> None:
    key = SecretKey.generate(replace(SMALL, name="xlpn-strong"))
    with pytest.raises(WeakParameters):
        credentials.verify(key.public, CredentialBinding(), prove(key, CredentialBinding()))


def test_the_default_set_needs_no_permission() -> None:
    key = KEYS[DEFAULT.name]
    credentials.verify(key.public, CredentialBinding(), prove(key, CredentialBinding()))


def test_a_key_of_other_parameters_is_rejected() -> None:
    proof = prove(KEYS[SMALL.name], CredentialBinding())
    rejected(KEYS[SHORT.name].public, CredentialBinding(), proof, "parameters")


def test_answers_of_two_proofs_cannot_be_spliced() -> None:
    key = KEYS[SMALL.name]
    one, two = (prove(key, CredentialBinding(), entropy=seeded(label)) for label in ("one", "two"))
    both = (one.challenges == 0) & (two.challenges == 0)
    assert both.any()
    at = np.flatnonzero(both)[0]
    roots, unopened = one.roots.copy(), one.unopened.copy()
    roots[(one.challenges[:at] == 0).sum()] = two.roots[(two.challenges[:at] == 0).sum()]
    unopened[at] = two.unopened[at]
    rejected(key.public, CredentialBinding(), replace(one, roots=roots, unopened=unopened), "challenge")
