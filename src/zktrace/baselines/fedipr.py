"""FedIPR (Li, Fan, Gu, Li, Yang): every station writes a word of its own into the shared scales.

The word is read along secret directions that the station drew; showing it shows them. All words are in every
copy: who took part can be told, whose copy it is cannot. The branch of trigger samples is left out.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from zktrace.baselines.protocol import MarkReading, Scheme, System, Venue, parameter
from zktrace.baselines.scale_words import ScaleWord, allowed_errors, bits_for, gaussian
from zktrace.learning.arrays import State
from zktrace.learning.training import Penalty

_KEYS = 11  # purpose of randomness


@dataclass(frozen=True, kw_only=True)
class FedIPR(System):
    """The feature branch."""

    name: ClassVar[str] = "fedipr"
    title: ClassVar[str] = "FedIPR (Li et al., TPAMI 2023)"
    place: ClassVar[str] = "weight-space"
    metric: ClassVar[str] = "bits read rightly, mean over stations"
    rule: ClassVar[str] = (
        "a station took part if so many of its bits are right that a random word passes with at most 1/1000; "
        "the paper tests against the same null and gives no level"
    )
    names_recipients: ClassVar[bool] = False

    bits: int = parameter(128, "ours", "of a station, for 4,800 scales; fewer for fewer scales")
    alpha: float = parameter(1.0, "ours", "weight of the sum of hinges; the code's 0.2 takes more rounds")
    margin: float = parameter(1.0, "ours", "of a hinge; the code's is 0, the paper's is not known to us")
    centred: bool = parameter(
        True, "ours", "directions less their mean in each layer, as our own marks have; false: as published"
    )
    level: str = parameter("1/1000", "ours", "chance that a random word passes")

    def set_up(self, venue: Venue) -> "Words":
        """Each station draws its word and its directions."""
        return Words(self, venue)

    @classmethod
    def smallest(cls) -> "FedIPR":
        """A louder loss in place of many rounds."""
        return cls(bits=384, alpha=20.0)


class Words(Scheme):
    """The words of all stations."""

    def __init__(self, system: FedIPR, venue: Venue) -> None:
        self._system = system
        count = bits_for(system.bits, venue.scales)
        self.words = []
        for station in range(venue.stations):
            rng = venue.rng(_KEYS, station)
            bits = rng.integers(0, 2, count).astype("uint8")
            self.words.append(
                ScaleWord(directions=gaussian(rng, count, venue.layers, apart=system.centred), bits=bits)
            )
        self._forgiven = allowed_errors(count, Fraction(system.level))

    def penalty(self, station: int, number: int) -> Penalty:
        """The hinges of a station's own bits."""
        return self.words[station].penalty(weight=self._system.alpha, margin=self._system.margin)

    def read(self, suspect: State) -> MarkReading:
        """Every station's bits."""
        length = len(self.words[0].bits)
        right = [word.right(suspect) for word in self.words]
        scores = tuple(each / length for each in right)
        named = tuple(k for k, each in enumerate(right) if length - each <= self._forgiven)
        return MarkReading(
            mark=sum(scores) / len(scores),
            present=2 * len(named) > len(right),
            scores=scores,
            named=named,
        )

    def payload(self) -> dict[str, int]:
        """Of one station."""
        return self.words[0].payload()
