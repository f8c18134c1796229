"""A seventh system in forty lines: the server moves one bias of a station's copy. CONTRIBUTING shows it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zktrace.baselines.protocol import MarkReading, Scheme, System, Venue, parameter
from zktrace.learning.arrays import State

PLACE = "layer4.1.bn2.bias"


@dataclass(frozen=True, kw_only=True)
class OneBias(System):
    name: ClassVar[str] = "one-bias"
    title: ClassVar[str] = "nobody's"
    place: ClassVar[str] = "weight-space"
    metric: ClassVar[str] = "the bias at the station's place"
    rule: ClassVar[str] = "every station whose bias is above 0.5"
    names_recipients: ClassVar[bool] = True

    size: float = parameter(1.0, "ours", "of the change")

    def set_up(self, venue: Venue) -> "Places":
        return Places(self, venue)


class Places(Scheme):
    def __init__(self, system: OneBias, venue: Venue) -> None:
        self._system = system
        self._places = venue.rng(0).permutation(venue.features)[: venue.stations]

    def outgoing(self, shared: State, station: int, number: int) -> State:
        bias = np.array(shared[PLACE])
        bias[self._places[station]] += self._system.size
        return shared | {PLACE: bias}

    def read(self, suspect: State) -> MarkReading:
        scores = tuple(suspect[PLACE][self._places].tolist())
        named = tuple(k for k, each in enumerate(scores) if each > 0.5)
        return MarkReading(mark=max(scores), scores=scores, named=named)

    def payload(self) -> dict[str, int]:
        return {"places": 4 * len(self._places)}
