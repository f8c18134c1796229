"""FedZKP (Yang et al.): one word for the whole federation, a hash of all stations' public keys.

Every station writes the same word, so averaging keeps it. Ownership is proved without showing a secret: a
member proves, by the Sigma-protocol of `credentials`, that it knows the secret of one of the keys. Nobody is
told from others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from zktrace.baselines.proofs import tried
from zktrace.baselines.protocol import MarkReading, Proved, Scheme, System, Venue, parameter
from zktrace.baselines.scale_words import ScaleWord, allowed_errors, gaussian
from zktrace.credentials import CredentialBinding, PublicKey, SecretKey, prove
from zktrace.federation.roster import experimental_key
from zktrace.learning.arrays import State
from zktrace.learning.training import Penalty
from zktrace.primitives.shake import Shake

_DIRECTIONS = 12  # purpose of randomness


def group_word(keys: Sequence[PublicKey], bits: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The hash of all keys in the order of the roster."""
    digest = Shake("zkt-baseline-v1/fedzkp", *(each.to_bytes() for each in keys)).digest(-(-bits // 8))
    return np.unpackbits(np.frombuffer(digest, np.uint8))[:bits]


@dataclass(frozen=True, kw_only=True)
class FedZKP(System):
    """The group's mark and a member's proof."""

    name: ClassVar[str] = "fedzkp"
    title: ClassVar[str] = "FedZKP (Yang et al., 2023)"
    place: ClassVar[str] = "weight-space"
    metric: ClassVar[str] = "bits of the group's word read rightly"
    rule: ClassVar[str] = "the group's word is present if a random word comes as near with at most 2^-64"
    names_recipients: ClassVar[bool] = False

    bits: int = parameter(256, "ours", "of the word; at most a quarter of the scales")
    alpha: float = parameter(0.3, "ours", "weight of the sum of hinges")
    margin: float = parameter(1.0, "ours", "of a hinge")
    centred: bool = parameter(
        True, "ours", "directions less their mean in each layer, as our own marks have; false: as published"
    )
    level: str = parameter(f"1/{1 << 64}", "ours", "near-collision probability of the hash that is accepted")

    def set_up(self, venue: Venue) -> "GroupWord":
        """Keys of all stations, and the word they give together."""
        return GroupWord(self, venue)

    @classmethod
    def smallest(cls) -> "FedZKP":
        """A louder loss in place of many rounds."""
        return cls(alpha=20.0)


class GroupWord(Scheme):
    """The word, and the keys behind it."""

    def __init__(self, system: FedZKP, venue: Venue) -> None:
        self._system, self._venue = system, venue
        bits = min(system.bits, venue.scales // 4)
        public = [self.key(station).public for station in range(venue.stations)]
        self.word = ScaleWord(
            directions=gaussian(np.random.default_rng(_DIRECTIONS), bits, venue.layers, apart=system.centred),
            bits=group_word(public, bits),
        )
        self._forgiven = allowed_errors(bits, Fraction(system.level))

    def key(self, station: int) -> SecretKey:
        """A station's own."""
        return experimental_key(self._venue.seed, station)

    def penalty(self, station: int, number: int) -> Penalty:
        """The same for everybody."""
        return self.word.penalty(weight=self._system.alpha, margin=self._system.margin)

    def read(self, suspect: State) -> MarkReading:
        """The group's bits."""
        length, right = len(self.word.bits), self.word.right(suspect)
        return MarkReading(mark=right / length, present=length - right <= self._forgiven)

    def public(self) -> ScaleWord:
        """Keys are public, and with them the word."""
        return self.word

    def proved(self, suspect: State, other: State) -> Proved:
        """The first station's proof that it knows its secret, said of the suspect."""
        return tried(self.key(0), self.key(1).public, suspect, other)

    def payload(self) -> dict[str, int]:
        """Directions and the word are public, made from the keys; what is sent is a proof."""
        return {"proof": len(prove(self.key(0), CredentialBinding()).to_bytes())}
