"""The Stern-type Sigma-protocol for xLPN and its Fiat-Shamir proof (`alg_verify`), all rounds at once.

One round, with fresh keys kappa_0, kappa_1, kappa_2 and v:

    pi = permutation of kappa_0          t_0 = A v + f,  f = pi^-1(t_1)
    t_1 = mask of kappa_1 (= pi(f))      t_2 = pi(f + e) = t_1 + pi(e)
    C_j = Com(kappa_j, t_j)              for j = 0, 1, 2

    challenge 0 opens C_0, C_1   t_0 + pi^-1(t_1) in Im A       answer: the root of kappa_0, kappa_1, v
    challenge 1 opens C_0, C_2   t_0 + pi^-1(t_2) + y in Im A   answer: kappa_0, kappa_2, v + s, t_2
    challenge 2 opens C_1, C_2   wt(t_1 + t_2) = w              answer: kappa_1, kappa_2, t_1 + t_2

The verifier does not test membership in Im A: the answer carries the preimage (v or v + s), from which it
computes the only t_0 that passes the check, and the commitment decides. In the same way an answer to
challenge 2 is the code of a weight-w vector or it does not decode. What remains to compare is the hash of
all commitments with the challenges. Format and arguments: docs/spec/stern-proof.md.
"""

import secrets
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.credentials.binding import Binding, ModelBinding, context
from zktrace.credentials.expand import SEED_BYTES, Permutations, apply_inverse, permutations
from zktrace.credentials.keys import Entropy, PublicKey, SecretKey
from zktrace.credentials.params import XLPNParams
from zktrace.credentials.proof import (
    COMMITMENT_BYTES,
    SALT_BYTES,
    TRIT_BYTE_VALUES,
    TRITS_PER_BYTE,
    Challenges,
    Proof,
    unpack_trits,
)
from zktrace.errors import InvalidProof, WeakParameters
from zktrace.primitives.gf2 import Bits, pack, unpack, weight
from zktrace.primitives.shake import Shake

Rounds = NDArray[np.intp] | Sequence[int]

_SLOTS: Final = 3


def _table(data: bytes, width: int) -> Bits:
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, width)


class Oracle:
    """The hash functions of one proof: every input holds parameter set, salt and round."""

    def __init__(self, params: XLPNParams, salt: bytes) -> None:
        self._params = params
        self._salt = salt
        name = params.name.encode()
        self._root, self._permutation, self._mask, self._commitment = (
            Shake(f"zkt-stern-v1/{use}", name, salt) for use in ("root", "permutation", "mask", "commitment")
        )

    def expand_roots(self, rounds: Rounds, roots: Bits) -> tuple[Bits, Bits, Bits]:
        """kappa_0, kappa_1 and v of each round."""
        width = 2 * SEED_BYTES + self._params.secret_bytes
        table = self._digests(self._root, rounds, roots, width)
        return table[:, :SEED_BYTES], table[:, SEED_BYTES : 2 * SEED_BYTES], table[:, 2 * SEED_BYTES :]

    def permutations(self, rounds: Rounds, kappa0: Bits) -> Permutations:
        """pi of each round."""
        streams = [self._permutation.fork(each) for each in _inputs(rounds, kappa0)]
        return permutations(streams, self._params.length)

    def masks(self, rounds: Rounds, kappa1: Bits) -> Bits:
        """t_1 of each round, packed."""
        return self._digests(self._mask, rounds, kappa1, self._params.vector_bytes)

    def commitments(self, slot: int, rounds: Rounds, kappa: Bits, t: Bits) -> Bits:
        """C_slot of each round: SHAKE-256 over salt, slot, round, key and vector."""
        inputs = np.concatenate((np.full((len(kappa), 1), slot, dtype=np.uint8), kappa, t), axis=1)
        return self._digests(self._commitment, rounds, inputs, COMMITMENT_BYTES)

    def challenges(self, commitments: Bits, bound_to: bytes) -> Challenges:
        """The challenges of all rounds, exactly uniform: a byte of the stream below 243 gives five digits."""
        stream = Shake(
            "zkt-stern-v1/challenge", self._params.name.encode(), self._salt, commitments.tobytes(), bound_to
        )
        needed = -(-self._params.rounds // TRITS_PER_BYTE)
        drawn = needed
        while True:
            candidates = np.frombuffer(stream.digest(drawn), dtype=np.uint8)
            accepted = candidates[candidates < TRIT_BYTE_VALUES]
            if len(accepted) >= needed:
                return unpack_trits(accepted[:needed], self._params.rounds)
            drawn += needed

    @staticmethod
    def _digests(prefix: Shake, rounds: Rounds, inputs: Bits, width: int) -> Bits:
        return _table(prefix.fork_digests(width, _inputs(rounds, inputs)), width)


def _inputs(rounds: Rounds, inputs: Bits) -> Iterator[bytes]:
    """What a hash of each round takes: the round, and a row of `inputs`."""
    width, data = inputs.shape[1], np.ascontiguousarray(inputs).tobytes()
    for at, k in enumerate(rounds):
        yield int(k).to_bytes(4, "big") + data[at * width : (at + 1) * width]


def prove(key: SecretKey, binding: Binding, *, entropy: Entropy = secrets.token_bytes) -> Proof:
    """A proof of knowledge of `key`'s witness, bound to `binding`.

    `entropy` is the operating system's randomness; only known-answer vectors replace it.
    """
    params, public = key.params, key.public
    rounds = np.arange(params.rounds)
    bound_to = context(public, binding)
    salt, roots, kappa2 = _fresh_seeds(key, bound_to, entropy(SEED_BYTES))
    oracle = Oracle(params, salt)
    kappa0, kappa1, v = oracle.expand_roots(rounds, roots)
    perms = oracle.permutations(rounds, kappa0)
    t1 = oracle.masks(rounds, kappa1)
    t0 = public.linear_map(v) ^ pack(apply_inverse(perms, unpack(t1)))
    permuted_error = pack(unpack(key.e)[perms])
    t2 = t1 ^ permuted_error
    commitments = np.stack(
        [
            oracle.commitments(slot, rounds, kappa, t)
            for slot, (kappa, t) in enumerate(((kappa0, t0), (kappa1, t1), (kappa2, t2)))
        ],
        axis=1,
    )
    challenges = oracle.challenges(commitments, bound_to)
    zero, one, two = (challenges == challenge for challenge in range(_SLOTS))
    return Proof(
        params=params,
        mode=binding.mode,
        salt=salt,
        challenges=challenges,
        unopened=commitments[rounds, 2 - challenges],
        roots=roots[zero],
        kappa0=kappa0[one],
        kappa2_of_1=kappa2[one],
        shifted=v[one] ^ key.s,
        t2=t2[one],
        kappa1=kappa1[two],
        kappa2_of_2=kappa2[two],
        permuted_error=permuted_error[two],
    )


def _fresh_seeds(key: SecretKey, bound_to: bytes, drawn: bytes) -> tuple[bytes, Bits, Bits]:
    """Salt, roots and third keys of a proof, from fresh randomness, the witness and the context.

    Two proofs with the same roots and different challenges reveal the witness. Should the operating system
    repeat itself, these seeds still differ for different statements and stay unknown to everybody else.
    """
    size = key.params.rounds * SEED_BYTES
    stream = Shake("zkt-stern-v1/seeds", key.params.name.encode(), key.witness_seed, drawn, bound_to)
    seeds = stream.digest(SALT_BYTES + 2 * size)
    salt, rest = seeds[:SALT_BYTES], seeds[SALT_BYTES:]
    return salt, _table(rest[:size], SEED_BYTES), _table(rest[size:], SEED_BYTES)


def open_commitments(proof: Proof, public: PublicKey) -> Bits:
    """All commitments of a proof, (rounds, 3, 32): the opened ones recomputed, the others as sent."""
    oracle = Oracle(proof.params, proof.salt)
    zero, one, two = (proof.rounds_of(challenge) for challenge in range(_SLOTS))
    result = np.empty((proof.params.rounds, _SLOTS, COMMITMENT_BYTES), dtype=np.uint8)
    result[np.arange(proof.params.rounds), 2 - proof.challenges] = proof.unopened

    kappa0_of_0, kappa1_of_0, v = oracle.expand_roots(zero, proof.roots)
    t1_of_0 = oracle.masks(zero, kappa1_of_0)
    first = np.concatenate((zero, one))  # the rounds that open C_0
    kappa0 = np.concatenate((kappa0_of_0, proof.kappa0))
    unmasked = apply_inverse(oracle.permutations(first, kappa0), unpack(np.concatenate((t1_of_0, proof.t2))))
    t0 = public.linear_map(np.concatenate((v, proof.shifted))) ^ pack(unmasked)
    t0[len(zero) :] ^= np.frombuffer(public.y, dtype=np.uint8)
    result[first, 0] = oracle.commitments(0, first, kappa0, t0)

    t1_of_2 = oracle.masks(two, proof.kappa1)
    second = np.concatenate((zero, two))
    result[second, 1] = oracle.commitments(
        1, second, np.concatenate((kappa1_of_0, proof.kappa1)), np.concatenate((t1_of_0, t1_of_2))
    )

    third = np.concatenate((one, two))
    result[third, 2] = oracle.commitments(
        2,
        third,
        np.concatenate((proof.kappa2_of_1, proof.kappa2_of_2)),
        np.concatenate((proof.t2, t1_of_2 ^ proof.permuted_error)),
    )
    return result


def verify(
    public: PublicKey, binding: Binding, proof: Proof, *, radius: int = 0, allow_weak_params: bool = False
) -> None:
    """Accept in silence, or raise InvalidProof naming the check.

    A key of a set that is not strong is WeakParameters, whatever the proof, unless `allow_weak_params`.

    (1) the proof is over this parameter set and this kind of statement;
    (2) model statements only: the component lies within `radius` of the codeword (`eq_acceptance`);
    (3) answers to challenge 2 have the exact weight (those to 0 and 1 state the preimage under A);
    (4) the challenges are the hash of all commitments, those that the answers open and the others, and of the
        context. A changed answer changes a commitment and with it the challenges of all rounds; the first
        one that disagrees is named.
    """
    if public.params.weakness and not allow_weak_params:
        raise WeakParameters(f"{public.params.name} {public.params.weakness}")
    if proof.params != public.params:
        raise InvalidProof(
            check="parameters", reason=f"proof of {proof.params.name}, key of {public.params.name}"
        )
    if proof.mode != binding.mode:
        raise InvalidProof(
            check="mode",
            reason=f"a {proof.mode.name.lower()} proof was given for a {binding.mode.name.lower()} statement",
        )
    if isinstance(binding, ModelBinding):
        binding.component.check_presence(public, radius=radius)
    light = np.flatnonzero(weight(proof.permuted_error) != proof.params.weight)
    if len(light):
        raise InvalidProof(
            check="weight",
            round=int(proof.rounds_of(2)[light[0]]),
            reason=f"t1 + t2 has not the weight {proof.params.weight}",
        )
    commitments = open_commitments(proof, public)
    expected = Oracle(proof.params, proof.salt).challenges(commitments, context(public, binding))
    different = np.flatnonzero(expected != proof.challenges)
    if len(different):
        at = int(different[0])
        raise InvalidProof(
            check="challenge",
            round=at,
            reason=f"commitments and context hash to {expected[at]}, "
            f"the proof answers {proof.challenges[at]}",
        )
