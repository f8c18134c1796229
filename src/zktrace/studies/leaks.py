"""What colluders put into a suspect's readouts: a function of their own rows, and of nobody else's.

A readout of a model that carries no row is taken for what else a suspect says. A coalition's mark is added to
it, as large as the mark of a copy would be that is as strong as everything else together: a linear readout is
what a carrier makes of averaged copies (`codes.strategies.linear_channel`), and no training is needed.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from zktrace.codes import Code, unpack
from zktrace.codes.strategies import STRATEGIES
from zktrace.readouts.directions import Floats
from zktrace.readouts.readout import Attempt, Readout


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """How many copies a suspect is made of, and how."""

    colluders: int
    strategy: str = "average"  # or one of `codes.strategies`: a word instead of a mean
    reversed: bool = False
    hidden: bool = False  # the suspect is disguised: marks are found again by alignments alone


LEAKS: Final = {
    "nobody": Leak(colluders=0),
    "one copy": Leak(colluders=1),
    "one copy, reversed": Leak(colluders=1, reversed=True),
    "average of three": Leak(colluders=3),
    "majority of three": Leak(colluders=3, strategy="majority"),
    "minority of three": Leak(colluders=3, strategy="minority"),
    "all ones of three": Leak(colluders=3, strategy="all-ones"),
    "average of two, disguised": Leak(colluders=2, hidden=True),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class CoalitionMark:
    """The mark of one coalition under one code key."""

    leak: Leak
    members: tuple[int, ...]
    codes: dict[str, Code]  # by carrier
    strength: float  # of the mark, in root mean squares of the readout it is added to
    rng: np.random.Generator

    def readout(self, found: Readout) -> Readout:
        """A suspect as it is."""
        return found if self.leak.hidden else self._marked(found)

    def attempt(self, found: Attempt) -> Attempt:
        """A suspect through an alignment."""
        return replace(found, read=lambda: self._marked(found.read()))

    def _marked(self, found: Readout) -> Readout:
        if not self.members:
            return found
        size = float(np.sqrt(np.mean(found.values**2))) or 1.0
        return replace(found, values=found.values + self.strength * size * self._signs(found.carrier))

    def _signs(self, carrier: str) -> Floats:
        """Between -1 and 1, from the members' rows."""
        code = self.codes[carrier]
        bits = unpack(code.rows(self.members), code.length)
        if self.leak.strategy == "average":
            said = bits.mean(axis=0)
        else:
            said = STRATEGIES[self.leak.strategy](bits, self.rng).astype(np.float64)
        signs: Floats = 2.0 * said - 1.0
        return -signs if self.leak.reversed else signs
