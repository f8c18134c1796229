"""`alg_verify` as the paper prints it: one round after another, vectors of 0 and 1, dense products.

Written from the paper and docs/spec/stern-proof.md with hashlib and numpy; it shares with the fast
implementation the records (keys, bindings, `Proof`) and none of the mathematics.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from zktrace.credentials import Binding, ModelBinding, PublicKey, SecretKey, XLPNParams
from zktrace.credentials.proof import Proof
from zktrace.errors import InvalidProof

Vector = NDArray[np.int64]  # one entry a bit
Order = NDArray[np.intp]  # a permutation: (pi x)[j] = x[pi[j]]


def enc(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def shake(size: int, *parts: bytes) -> bytes:
    return hashlib.shake_256(enc(*parts)).digest(size)


def bits(data: bytes) -> Vector:
    return np.unpackbits(np.frombuffer(data, dtype=np.uint8)).astype(np.int64)


def unbits(vector: Vector) -> bytes:
    return np.packbits(vector.astype(np.uint8)).tobytes()


def permutation(m: int, *source: bytes) -> Order:
    """The order of the first block of m distinct 32-bit keys of a stream."""
    taken = 0
    while True:
        keys = np.frombuffer(shake(4 * m * (taken + 1), *source)[4 * m * taken :], dtype=">u4")
        if len(np.unique(keys)) == m:
            return np.argsort(keys)
        taken += 1


@lru_cache(maxsize=8)
def matrix(params: XLPNParams, seed: bytes) -> NDArray[np.int64]:
    stream = shake(params.length * params.secret // 8, b"zkt-xlpn-v1/matrix", params.name.encode(), seed)
    unpacked = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))
    return unpacked.reshape(params.length, params.secret).astype(np.int64)


@lru_cache(maxsize=8)
def parity_check(params: XLPNParams, seed: bytes) -> NDArray[np.int64]:
    """H with ker H = Im A: rows that annihilate every column of A, by elimination on [A | I]."""
    a = matrix(params, seed)
    work = np.concatenate((a, np.eye(params.length, dtype=np.int64)), axis=1) % 2
    rank = 0
    for column in range(params.secret):
        below = np.flatnonzero(work[rank:, column])
        if not len(below):
            continue
        pivot = rank + below[0]
        work[[rank, pivot]] = work[[pivot, rank]]
        others = np.flatnonzero(work[:, column])
        work[others[others != rank]] ^= work[rank]
        rank += 1
    return work[rank:, params.secret :]


def in_image(public: PublicKey, x: Vector) -> bool:
    return not (parity_check(public.params, public.seed) @ x % 2).any()


@dataclass(frozen=True)
class Hashes:
    params: XLPNParams
    salt: bytes

    def _stream(self, size: int, use: str, data: bytes) -> bytes:
        return shake(size, f"zkt-stern-v1/{use}".encode(), self.params.name.encode(), self.salt, data)

    def expand_root(self, k: int, root: bytes) -> tuple[bytes, bytes, Vector]:
        out = self._stream(64 + self.params.secret // 8, "root", k.to_bytes(4, "big") + root)
        return out[:32], out[32:64], bits(out[64:])

    def permutation(self, k: int, kappa: bytes) -> Order:
        source = (self.params.name.encode(), self.salt, k.to_bytes(4, "big") + kappa)
        return permutation(self.params.length, b"zkt-stern-v1/permutation", *source)

    def mask(self, k: int, kappa: bytes) -> Vector:
        return bits(self._stream(self.params.length // 8, "mask", k.to_bytes(4, "big") + kappa))

    def commit(self, k: int, slot: int, kappa: bytes, t: Vector) -> bytes:
        return self._stream(32, "commitment", k.to_bytes(4, "big") + bytes([slot]) + kappa + unbits(t))

    def challenges(self, commitments: list[tuple[bytes, bytes, bytes]], ctx: bytes) -> list[int]:
        flat = b"".join(c for three in commitments for c in three)
        parts = (b"zkt-stern-v1/challenge", self.params.name.encode(), self.salt, flat, ctx)
        digits: list[int] = []
        for byte in shake(100 * self.params.rounds, *parts):
            if byte < 243:
                digits += [byte // 3**i % 3 for i in range(5)]
        return digits[: self.params.rounds]


def context(public: PublicKey, binding: Binding) -> bytes:
    a = np.packbits(matrix(public.params, public.seed).astype(np.uint8), axis=1).tobytes()
    tag = f"zkt-stern-v1/{binding.mode.name.lower()}".encode()
    return enc(tag, *binding.parts(), a, public.y)


def permute(pi: Order, x: Vector) -> Vector:
    return x[pi]


def unpermute(pi: Order, x: Vector) -> Vector:
    result = np.empty_like(x)
    result[pi] = x
    return result


@dataclass
class Round:
    """All that a prover holds of one round."""

    root: bytes
    kappa: tuple[bytes, bytes, bytes]
    v: Vector
    s: Vector
    t: tuple[Vector, Vector, Vector]
    commitments: tuple[bytes, bytes, bytes]


def commit_round(
    public: PublicKey, hashes: Hashes, k: int, root: bytes, kappa2: bytes, s: Vector, e: Vector
) -> Round:
    """The prover's first move with the witness (s, e), which need not be one."""
    kappa0, kappa1, v = hashes.expand_root(k, root)
    pi = hashes.permutation(k, kappa0)
    f = unpermute(pi, hashes.mask(k, kappa1))
    t0 = (matrix(public.params, public.seed) @ v + f) % 2
    t1 = permute(pi, f)
    t2 = permute(pi, (f + e) % 2)
    return seal(hashes, k, Round(root, (kappa0, kappa1, kappa2), v, s, (t0, t1, t2), (b"", b"", b"")))


def seal(hashes: Hashes, k: int, move: Round) -> Round:
    """`move` with its commitments computed from its keys and vectors."""
    c0, c1, c2 = (hashes.commit(k, slot, move.kappa[slot], move.t[slot]) for slot in range(3))
    return Round(move.root, move.kappa, move.v, move.s, move.t, (c0, c1, c2))


def respond(
    public: PublicKey, binding: Binding, salt: bytes, moves: list[Round], challenges: list[int]
) -> Proof:
    """The prover's last move, as the shared transcript form."""

    def rows(challenge: int, width: int, pick: Callable[[Round], bytes]) -> NDArray[np.uint8]:
        chosen = [pick(move) for move, c in zip(moves, challenges, strict=True) if c == challenge]
        return np.frombuffer(b"".join(chosen), dtype=np.uint8).reshape(len(chosen), width)

    secret, vector = public.params.secret // 8, public.params.length // 8
    unopened = b"".join(move.commitments[2 - c] for move, c in zip(moves, challenges, strict=True))
    return Proof(
        params=public.params,
        mode=binding.mode,
        salt=salt,
        challenges=np.array(challenges, dtype=np.uint8),
        unopened=np.frombuffer(unopened, dtype=np.uint8).reshape(-1, 32),
        roots=rows(0, 32, lambda move: move.root),
        kappa0=rows(1, 32, lambda move: move.kappa[0]),
        kappa2_of_1=rows(1, 32, lambda move: move.kappa[2]),
        shifted=rows(1, secret, lambda move: unbits((move.v + move.s) % 2)),
        t2=rows(1, vector, lambda move: unbits(move.t[2])),
        kappa1=rows(2, 32, lambda move: move.kappa[1]),
        kappa2_of_2=rows(2, 32, lambda move: move.kappa[2]),
        permuted_error=rows(2, vector, lambda move: unbits((move.t[1] + move.t[2]) % 2)),
    )


def witness(key: SecretKey) -> tuple[Vector, Vector]:
    """(s, e) from the witness seed."""
    params, name = key.params, key.params.name.encode()
    s = bits(shake(params.secret // 8, b"zkt-xlpn-v1/secret", name, key.witness_seed))
    e = np.zeros(params.length, dtype=np.int64)
    e[permutation(params.length, b"zkt-xlpn-v1/error", name, key.witness_seed)[: params.weight]] = 1
    return s, e


def first_moves(
    key: SecretKey, binding: Binding, entropy: Callable[[int], bytes]
) -> tuple[bytes, list[Round]]:
    """Salt and committed rounds of an honest prover."""
    params = key.params
    size = 32 * params.rounds
    sources = (params.name.encode(), key.witness_seed, entropy(32), context(key.public, binding))
    seeds = shake(32 + 2 * size, b"zkt-stern-v1/seeds", *sources)
    salt, roots, kappa2 = seeds[:32], seeds[32 : 32 + size], seeds[32 + size :]
    hashes = Hashes(params, salt)
    s, e = witness(key)
    moves = [
        commit_round(key.public, hashes, k, roots[32 * k : 32 * k + 32], kappa2[32 * k : 32 * k + 32], s, e)
        for k in range(params.rounds)
    ]
    return salt, moves


def prove(key: SecretKey, binding: Binding, entropy: Callable[[int], bytes]) -> Proof:
    salt, moves = first_moves(key, binding, entropy)
    hashes = Hashes(key.params, salt)
    challenges = hashes.challenges([move.commitments for move in moves], context(key.public, binding))
    return respond(key.public, binding, salt, moves, challenges)


def open_round(public: PublicKey, proof: Proof, k: int) -> tuple[list[bytes], dict[int, Vector]]:
    """The three commitments of round k (two recomputed from its opening) and the opened t's."""
    hashes = Hashes(proof.params, proof.salt)
    c = int(proof.challenges[k])
    at = int((proof.challenges[:k] == c).sum())
    unopened = proof.unopened[k].tobytes()
    a, y = matrix(public.params, public.seed), bits(public.y)
    if c == 0:
        kappa0, kappa1, v = hashes.expand_root(k, proof.roots[at].tobytes())
        t1 = hashes.mask(k, kappa1)
        t0 = (a @ v + unpermute(hashes.permutation(k, kappa0), t1)) % 2
        return [hashes.commit(k, 0, kappa0, t0), hashes.commit(k, 1, kappa1, t1), unopened], {0: t0, 1: t1}
    if c == 1:
        kappa0, kappa2 = proof.kappa0[at].tobytes(), proof.kappa2_of_1[at].tobytes()
        t2 = bits(proof.t2[at].tobytes())
        shifted = bits(proof.shifted[at].tobytes())
        t0 = (a @ shifted + unpermute(hashes.permutation(k, kappa0), t2) + y) % 2
        return [hashes.commit(k, 0, kappa0, t0), unopened, hashes.commit(k, 2, kappa2, t2)], {0: t0, 2: t2}
    kappa1, kappa2 = proof.kappa1[at].tobytes(), proof.kappa2_of_2[at].tobytes()
    t1 = hashes.mask(k, kappa1)
    t2 = (t1 + bits(proof.permuted_error[at].tobytes())) % 2
    return [unopened, hashes.commit(k, 1, kappa1, t1), hashes.commit(k, 2, kappa2, t2)], {1: t1, 2: t2}


def permutation_of(public: PublicKey, proof: Proof, k: int) -> Order:
    """pi of a round whose challenge opens C0."""
    hashes = Hashes(proof.params, proof.salt)
    c = int(proof.challenges[k])
    at = int((proof.challenges[:k] == c).sum())
    if c == 0:
        return hashes.permutation(k, hashes.expand_root(k, proof.roots[at].tobytes())[0])
    return hashes.permutation(k, proof.kappa0[at].tobytes())


def check_round(public: PublicKey, proof: Proof, k: int, opened: dict[int, Vector]) -> None:
    """The check of the round's challenge, on the opened vectors."""
    c = int(proof.challenges[k])
    if c == 2:
        if int(((opened[1] + opened[2]) % 2).sum()) != public.params.weight:
            raise InvalidProof(check="weight", round=k, reason="wt(t1 + t2) is wrong")
        return
    pi = permutation_of(public, proof, k)
    x = (opened[0] + unpermute(pi, opened[1 + c]) + c * bits(public.y)) % 2
    if not in_image(public, x):
        raise InvalidProof(check="image", round=k, reason="not in the image of A")


def verify(public: PublicKey, binding: Binding, proof: Proof, *, radius: int = 0) -> None:
    commitments = []
    for k in range(public.params.rounds):
        three, opened = open_round(public, proof, k)
        check_round(public, proof, k, opened)
        commitments.append(tuple(three))
    expected = Hashes(proof.params, proof.salt).challenges(commitments, context(public, binding))
    for k in range(public.params.rounds):
        if expected[k] != proof.challenges[k]:
            raise InvalidProof(check="challenge", round=k, reason="not the hash of the transcript")
    if isinstance(binding, ModelBinding):
        binding.component.check_presence(public, radius=radius)
