"""Seeds that are promised beforehand, and what is made of them once others have added their part.

A seed tree is a Merkle tree over places 0, 1, ...; the leaf of a place commits to one seed for each carrier,
so one seed can be opened without another. The operator fixes the root before it knows

    a row         the nonce that the station draws, and its public key
    directions    the log up to the release

so neither side can choose, or try until it likes, what comes out. All functions here are public: they take
openings, not the code key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from zktrace.derivation.key import SUBKEY_BYTES
from zktrace.errors import InputError, InvalidProof
from zktrace.primitives import merkle
from zktrace.primitives.commitment import commit
from zktrace.primitives.encoding import fields
from zktrace.primitives.shake import Shake

SEED_BYTES: Final = SUBKEY_BYTES
NONCE_BYTES: Final = 32
TREE_LIMIT: Final = 1 << 16  # places of one tree


class Claim(NamedTuple):
    """What a station brings to its row: a nonce of its own drawing, and its public key's bytes."""

    nonce: bytes
    public: bytes


NOBODY: Final = Claim(b"", b"")  # rows of experiments belong to nobody

_ROW: Final = Shake("zkt-row-v1")


def row_key(seed: bytes, claim: Claim) -> bytes:
    """The key of a row's stream: the operator's promised seed and what the station added to it."""
    return _ROW.fork_digest(SUBKEY_BYTES, seed, claim.nonce, claim.public)


def direction_seed(seed: bytes, root: bytes, carrier: str) -> bytes:
    """The seed of a release's directions: the promised seed and the root of the log just before."""
    return Shake("zkt-release-v1/directions", seed, root, carrier.encode()).digest(SEED_BYTES)


def bias_commitment(seed: bytes, carrier: str) -> bytes:
    """Com(carrier; seed): a seed is uniform and secret, so it is its own opening."""
    return commit("biases", seed, carrier.encode())


def seed_commitment(kind: str, seed: bytes, place: int, carrier: str) -> bytes:
    """The commitment to one carrier's seed of a place."""
    return commit(f"seed/{kind}", seed, place.to_bytes(8, "big"), carrier.encode())


def place_leaf(kind: str, place: int, commitments: Sequence[bytes]) -> bytes:
    """The leaf of a place: commitments to its seeds in the order of the setup's carriers."""
    return merkle.leaf_hash(fields((f"zkt-seeds-v1/{kind}".encode(), place.to_bytes(8, "big"), *commitments)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A seed tree on record: places first .. first + count - 1 under one root."""

    kind: str
    first: int
    count: int
    root: bytes
    carriers: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.count <= TREE_LIMIT or self.first < 0 or not self.carriers:
            raise InputError(
                f"a tree of {self.count} seeds from {self.first} for {len(self.carriers)} carriers"
            )

    def verify(
        self, place: int, carrier: str, seed: bytes, others: Sequence[bytes], path: merkle.Hashes
    ) -> None:
        """InvalidProof unless `seed` was promised for `carrier` at `place`.

        `others` are the commitments of the other carriers, in the order of the setup.
        """
        if carrier not in self.carriers or len(others) != len(self.carriers) - 1:
            reason = f"{len(others) + 1} seeds a place for {len(self.carriers)} carriers"
            raise InvalidProof(check="promised seed", reason=reason)
        at = self.carriers.index(carrier)
        own = seed_commitment(self.kind, seed, place, carrier)
        leaf = place_leaf(self.kind, place, (*others[:at], own, *others[at:]))
        if not merkle.included(leaf, place - self.first, self.count, path, self.root):
            reason = f"the {carrier} seed of {self.kind} {place} is not the one that was promised"
            raise InvalidProof(check="promised seed", reason=reason)
