"""DeepMarks (Chen et al.): every user's copy carries a vector of an anti-collusion code in its weights.

The code comes from a balanced incomplete block design: a user has zeros on a block of its own and ones
elsewhere. Where copies are averaged, a one is read where all of them have it, so zeros are the union of the
colluders' blocks. Whoever's block is in it is accused. That is exact as long as reading is exact and
colluders are few; nothing bounds how often it is not.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import torch

from zktrace.baselines.protocol import MarkReading, Scheme, System, Venue, parameter
from zktrace.baselines.scale_words import Bits, gaussian
from zktrace.errors import InputError
from zktrace.learning.arrays import State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.states import state_of
from zktrace.learning.training import train_episodes
from zktrace.marking.hinge import scales
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import gather

DESIGNS: Final = {  # positions: the block whose shifts are the others, a perfect difference set
    7: (0, 1, 3),
    13: (0, 1, 3, 9),
    21: (3, 6, 7, 12, 14),
    31: (1, 5, 11, 24, 25, 27),
}
_BASIS, _HOST, _EPISODES = 51, 52, 53  # purposes of randomness


@dataclass(frozen=True, kw_only=True)
class DeepMarks(System):
    """A cyclic design, written by fine-tuning the copy at dispatch."""

    name: ClassVar[str] = "deepmarks"
    title: ClassVar[str] = "DeepMarks (Chen et al., ICMR 2019)"
    place: ClassVar[str] = "weight-space"
    metric: ClassVar[str] = "agreement with the code vector of the user with the largest"
    rule: ClassVar[str] = (
        "every user whose zeros are all read as zeros; a bit is one above 0.85 (released code)"
    )
    names_recipients: ClassVar[bool] = True

    positions: int = parameter(31, "published", "of the code: as many users, made for five colluders")
    strength: float = parameter(0.1, "reported", "weight of the squared distance to the fingerprint")
    centred: bool = parameter(
        True, "ours", "directions less their mean in each layer, as our own marks have; false: as published"
    )
    threshold: float = parameter(0.85, "code", "above which a bit is a one")
    episodes: int = parameter(40, "ours", "of fine-tuning a copy on the server's samples")

    def __post_init__(self) -> None:
        if self.positions not in DESIGNS:
            raise InputError(
                f"no design of {self.positions} positions; known: {', '.join(map(str, DESIGNS))}"
            )

    def set_up(self, venue: Venue) -> "Codes":
        """Draw basis and projection."""
        return Codes(self, venue)

    @classmethod
    def smallest(cls) -> "DeepMarks":
        """Few episodes."""
        return cls(episodes=15)


def code_vectors(positions: int) -> Bits:
    """The anti-collusion code, a row a user: zeros on the user's block."""
    found = np.ones((positions, positions), np.uint8)
    for user in range(positions):
        found[user, [(place + user) % positions for place in DESIGNS[positions]]] = 0
    return found


class Codes(Scheme):
    """What the owner holds."""

    def __init__(self, system: DeepMarks, venue: Venue) -> None:
        if venue.stations > system.positions:
            raise InputError(f"{venue.stations} stations for a code of {system.positions} users")
        self._system, self._venue = system, venue
        self._basis: Floats = np.linalg.qr(
            venue.rng(_BASIS).standard_normal((system.positions, system.positions))
        )[0]
        self._host = gaussian(venue.rng(_HOST), system.positions, venue.layers, apart=system.centred)
        self._code = code_vectors(system.positions)[: venue.stations]

    def outgoing(self, shared: State, station: int, number: int) -> State:
        """Copies are marked when rounds are over, and not before."""
        if number < self._venue.rounds:
            return shared
        system, venue, model = self._system, self._venue, backbone_of(shared)
        wanted = torch.from_numpy(self._basis @ (2.0 * self._code[station] - 1.0)).to(torch.float32)
        host = torch.from_numpy(self._host).to(torch.float32)
        images, labels = venue.samples()
        train_episodes(
            model,
            images,
            labels,
            replace(venue.episodes, episodes=system.episodes),
            venue.rng(_EPISODES, station),
            penalty=lambda now: system.strength * (wanted - host @ scales(now)).square().sum(),
        )
        return state_of(model.eval())

    def values(self, suspect: State) -> Floats:
        """What is read at each position: 1 for a one, 0 for a zero."""
        found: Floats = (self._basis.T @ (self._host @ gather(suspect)) + 1.0) / 2.0
        return found

    def read(self, suspect: State) -> MarkReading:
        """Zeros, and whose blocks they cover."""
        ones = self.values(suspect) > self._system.threshold
        scores = tuple(float((ones == user).mean()) for user in self._code)
        named = tuple(k for k, user in enumerate(self._code) if not ones[user == 0].any())
        return MarkReading(mark=max(scores), scores=scores, named=named)

    def payload(self) -> dict[str, int]:
        """Projection and basis as 32-bit numbers, and the code of everybody."""
        code = -(-self._code.size // 8)
        return {"projection": 4 * self._host.size, "basis": 4 * self._basis.size, "code": code}
