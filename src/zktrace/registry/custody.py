"""What only the holder of the code key can derive: codes, promised seeds, and their openings.

Nothing of it is stored. A subkey is SHAKE-256 of the code key under its own use and the fields that name it,
so an opening that is handed to a judge tells nothing about another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Self

from zktrace.carriers import NAMES, carrier
from zktrace.codes import Code, CodeKey, Law
from zktrace.derivation.key import Use
from zktrace.derivation.promises import (
    TREE_LIMIT,
    Claim,
    Promise,
    bias_commitment,
    direction_seed,
    place_leaf,
    seed_commitment,
)
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError, Rejected
from zktrace.primitives import merkle
from zktrace.primitives.commitment import commit
from zktrace.registry.records import PLACE, RELEASE, CarrierCode, ReservationRecord, SeedTree, SetupRecord

IDENTITY_BITS: Final = 128
PLACES: Final = 1024  # stations that a setup promises seeds for
RELEASES: Final = 256
_USES: Final = {PLACE: Use.PLACE, RELEASE: Use.RELEASE}


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeShape:
    """The public numbers of a carrier's code."""

    carrier: str
    colluders: int  # c


def default_shape(name: str) -> CodeShape:
    """The code a carrier gets unless told otherwise."""
    found = carrier(name)
    return CodeShape(carrier=found.name, colluders=found.colluders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A promised seed, and what shows that it was promised."""

    seed: bytes
    others: tuple[bytes, ...]  # commitments to the other carriers' seeds of the place
    path: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True)
class Custody:
    """The code key and the shapes of its codes: what the operator keeps and a judge never holds."""

    key: CodeKey
    shapes: tuple[CodeShape, ...]

    def __post_init__(self) -> None:
        names = [each.carrier for each in self.shapes]
        if not names or len(set(names)) != len(names) or not set(names) <= set(NAMES):
            raise InputError(f"codes are for carriers, each once, of {', '.join(NAMES)}")
        for each in self.carriers:
            self.bias_seed(each)  # refused now if there can be no such code

    @classmethod
    def of_setup(cls, key: CodeKey, setup: SetupRecord) -> Self:
        """Custody of the codes of a registry, or Rejected if the key is not the one it committed to."""
        shapes = tuple(CodeShape(carrier=each.carrier, colluders=each.colluders) for each in setup.carriers)
        custody = cls(key=key, shapes=shapes)
        if custody.key_commitment() != setup.code_key:
            raise Rejected("the code key is not the one that the registry committed to")
        return custody

    @property
    def carriers(self) -> tuple[str, ...]:
        """What there are codes for, in the order of the setup."""
        return tuple(each.carrier for each in self.shapes)

    def shape(self, carrier: str) -> CodeShape:
        """The public numbers of a carrier's code."""
        for each in self.shapes:
            if each.carrier == carrier:
                return each
        raise InputError(f"this registry has no code for the carrier {carrier!r}")

    def code(self, carrier: str, claims: Sequence[Claim], *, length: int, law: Law) -> Code:
        """The code of a carrier, with the rows of those who made these claims.

        A release chooses the length that its model bears (a longer code begins with a shorter one) and the
        law of the biases; the seeds of biases and rows were promised before.
        """
        shape = self.shape(carrier)
        return Code(
            key=self.key,
            label=carrier,
            length=length,
            colluders=shape.colluders,
            law=law,
            claims=claims,
        )

    def bias_seed(self, carrier: str) -> bytes:
        """What the biases of a carrier's code are drawn from, whatever its length."""
        return self.code(carrier, (), length=1, law="tardos").bias_seed

    def key_commitment(self) -> bytes:
        """Com(code key; rho)."""
        return commit("code-key", self.key.subkey(Use.KEY_OPENING), self.key.secret)

    def seed(self, kind: str, carrier: str, place: int) -> bytes:
        """The promised seed of a place or of a release."""
        return self.key.subkey(_USES[kind], carrier.encode(), place.to_bytes(8, "big"))

    def direction_seed(self, carrier: str, number: int, root: bytes) -> bytes:
        """The seed of the directions of release `number`, which came when the log had this root.

        One-way: a reader that has it knows no row.
        """
        return direction_seed(self.seed(RELEASE, carrier, number), root, carrier)

    def probe_stream(self, carrier: str, release: int) -> Stream:
        """Which images are probes of a release. It is never opened."""
        seed = self.key.subkey(Use.PROBES, carrier.encode(), release.to_bytes(8, "big"))
        return Stream("probes", seed)

    def tree(self, kind: str, first: int, count: int) -> SeedTree:
        """The promise of `count` seeds."""
        if not 1 <= count <= TREE_LIMIT:
            raise InputError(f"seeds are promised for 1..{TREE_LIMIT} places at a time, not {count}")
        return SeedTree(count=count, root=merkle.root(_leaves(self, kind, first, count)))

    def opened(self, promise: Promise, carrier: str, place: int) -> Opened:
        """The seed of a place and the proof that it was promised."""
        leaves = _leaves(self, promise.kind, promise.first, promise.count)
        return Opened(
            seed=self.seed(promise.kind, carrier, place),
            others=tuple(
                self._commitment(promise.kind, each, place) for each in self.carriers if each != carrier
            ),
            path=tuple(merkle.inclusion_proof(leaves, place - promise.first)),
        )

    def setup(
        self,
        *,
        title: str,
        budget: Fraction,
        identity_bits: int = IDENTITY_BITS,
        places: int = PLACES,
        releases: int = RELEASES,
    ) -> SetupRecord:
        """The first record of a registry with these codes."""
        return SetupRecord(
            title=title,
            code_key=self.key_commitment(),
            carriers=tuple(
                CarrierCode(
                    carrier=each.carrier,
                    colluders=each.colluders,
                    biases=bias_commitment(self.bias_seed(each.carrier), each.carrier),
                )
                for each in self.shapes
            ),
            places=self.tree(PLACE, 0, places),
            releases=self.tree(RELEASE, 0, releases),
            identity_bits=identity_bits,
            budget=budget,
        )

    def reservation(self, kind: str, first: int, count: int) -> ReservationRecord:
        """The record that promises further seeds."""
        return ReservationRecord(of=kind, first=first, seeds=self.tree(kind, first, count))

    def _commitment(self, kind: str, carrier: str, place: int) -> bytes:
        return seed_commitment(kind, self.seed(kind, carrier, place), place, carrier)

    def leaf(self, kind: str, place: int) -> bytes:
        """The leaf of a place in its seed tree."""
        commitments = [self._commitment(kind, each, place) for each in self.carriers]
        return place_leaf(kind, place, commitments)


@lru_cache(maxsize=8)
def _leaves(custody: Custody, kind: str, first: int, count: int) -> list[bytes]:
    """The leaves of a seed tree."""
    return [custody.leaf(kind, place) for place in range(first, first + count)]
