"""A proof of a station's credential over a model, tried: by another key, and about another model."""

from zktrace.baselines.protocol import Proved
from zktrace.credentials import MessageBinding, Proof, PublicKey, SecretKey, prove, verify
from zktrace.errors import InvalidProof
from zktrace.learning.arrays import State
from zktrace.models import ModelState, model_digest


def tried(own: SecretKey, stranger: PublicKey, suspect: State, other: State) -> Proved:
    """Whoever has the key says something of a suspect; who else can use what it said?"""
    about, elsewhere = (_about(each) for each in (suspect, other))
    proof = prove(own, about)
    return Proved(
        size=len(proof.to_bytes()),
        accepted=_accepted(own.public, about, proof),
        borrowed=_accepted(stranger, about, proof),
        replayed=_accepted(own.public, elsewhere, proof),
    )


def _about(state: State) -> MessageBinding:
    return MessageBinding(message_digest=model_digest(ModelState.from_arrays(state)))


def _accepted(public: PublicKey, about: MessageBinding, proof: Proof) -> bool:
    try:
        verify(public, about, proof)
    except InvalidProof:
        return False
    return True
