"""ZK-Trace behind the same face: the spread carrier under a guard, read as an operator reads it.

Rows stand in all weights of whatever leaves the server, also in the middle of training; what comes back is
freed of them. A suspect is scored through the looks of every investigation, and a station is named only under
a certificate. What the registry adds - promised seeds, evidence, a judge - needs no federation and is not
compared here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final

import numpy as np

from zktrace.baselines.proofs import tried
from zktrace.baselines.protocol import MarkReading, Proved, Scheme, System, Venue, parameter
from zktrace.carriers import carrier
from zktrace.codes import Code, CodeKey, unpack
from zktrace.derivation.key import KEY_BYTES
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.federation.roster import experimental_key
from zktrace.guarding.subspace import taken_out
from zktrace.learning.arrays import State
from zktrace.marking.spread import SpreadMark
from zktrace.models import ModelState
from zktrace.readouts.reader import Reader, Terms, reader_of, survey_of
from zktrace.readouts.readout import Attempt, Reading, Readout
from zktrace.tracing import Plan, investigate

CARRIER: Final = "spread"
_KEY, _DIRECTIONS = 61, 62  # purposes of randomness


@dataclass(frozen=True, kw_only=True)
class ZKTrace(System):
    """A row of a secret code in all weights of every copy."""

    name: ClassVar[str] = "zk-trace"
    title: ClassVar[str] = "ZK-Trace, spread carrier under a guard"
    place: ClassVar[str] = "weight-space"
    metric: ClassVar[str] = "positions read as in the row of the station with the largest score"
    rule: ClassVar[str] = "every station that a certificate names, within the budget of the investigation"
    names_recipients: ClassVar[bool] = True

    level: str = parameter("1/1000", "ours", "false-accusation budget of an investigation")
    positions: int = parameter(0, "ours", "of the code; 0: as many as suit the size of the model")

    def set_up(self, venue: Venue) -> "GuardedRows":
        """Draw the code and its directions."""
        return GuardedRows(self, venue)


class GuardedRows(Scheme):
    """What the operator holds. The model before the first round is what suspects are read beside."""

    def __init__(self, system: ZKTrace, venue: Venue) -> None:
        self._venue, self._level = venue, Fraction(system.level)
        self._positions = system.positions or None
        self._seed = venue.rng(_DIRECTIONS).bytes(KEY_BYTES)

    @cached_property
    def _first(self) -> ModelState:
        return ModelState.from_arrays(self._venue.first())

    @cached_property
    def _terms(self) -> Terms:
        draws = Stream("probes", self._seed)
        found = survey_of(CARRIER, self._first, length=self._positions, pool=None, draws=draws)
        return Terms(
            carrier=CARRIER,
            seed=self._seed,
            length=found.length,
            profile="informed",
            dimension=found.dimension,
            layers=found.layers,
            deviations=tuple(float(np.float32(each)) for each in found.deviations),
            shared=self._first,
            frozen=True,
        )

    @cached_property
    def _mark(self) -> SpreadMark:
        return SpreadMark.of(self._terms, self._first, None)

    @cached_property
    def _reader(self) -> Reader:
        return reader_of(self._terms)

    @cached_property
    def _code(self) -> Code:
        key, entry = CodeKey(secret=self._venue.rng(_KEY).bytes(KEY_BYTES)), carrier(CARRIER)
        length = self._terms.length
        return Code(key=key, label=CARRIER, length=length, colluders=entry.colluders, law=entry.law)

    @cached_property
    def rows(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """Everybody's."""
        return unpack(self._code.rows(range(self._venue.stations)), self._code.length)

    def outgoing(self, shared: State, station: int, number: int) -> State:
        """The station's own row in all weights that carry, in every round."""
        dither = Stream("spread/dither", self._seed, bytes([0]))
        given = {
            name: (np.ascontiguousarray(shared[name]), str(shared[name].dtype), dither)
            for name in self._mark.parts
        }
        made = self._mark.written(given, self._mark.signs(self.rows[station]))
        return shared | {name: each.reshape(shared[name].shape) for name, each in made.items()}

    def incoming(self, aggregate: State, shared: State) -> State:
        """Nothing of the aggregate lies along the directions of rows."""
        carrying = {name: aggregate[name] for name in self._mark.parts}
        return aggregate | taken_out(carrying, self._first, self._mark.parts, self._mark.blocks)

    def read(self, suspect: State) -> MarkReading:
        """As it is, then through the alignments that an investigation has."""
        try:
            found = investigate(
                Plan.of(self._reading(suspect), "certified"),
                lambda _: self._code,
                recipients=self._venue.stations,
                level=self._level,
            )
        except InputError:  # a suspect that has none of the matrices
            return MarkReading(mark=0.0, scores=(0.0,) * self._venue.stations)
        read, said = found.scored.readings[0], found.chosen.readouts[0].values
        scores = read.coefficients.scores_float(read.sums) / np.sqrt(self._code.length)
        own = self.rows[int(np.argmax(scores))]
        agreed = float(((said > 0) == own).mean())
        return MarkReading(mark=agreed, scores=tuple(scores.tolist()), named=found.named)

    def proved(self, suspect: State, other: State) -> Proved:
        """A station's proof of its credential over the suspect."""
        own, strangers = (experimental_key(self._venue.seed, station) for station in (0, 1))
        return tried(own, strangers.public, suspect, other)

    def payload(self) -> dict[str, int]:
        """What a judge needs beside a suspect: the first model, what is on record of it, seeds and a row."""
        terms, first = self._terms, self._first.values()
        return {
            "first model": sum(each.nbytes for each in first),
            "deviations and sizes": 4 * (len(terms.deviations) + len(terms.layers)),
            "seeds": 2 * KEY_BYTES,
            "row": -(-terms.length // 8),
        }

    def _reading(self, suspect: State) -> Reading:
        values = Readout(carrier=CARRIER, values=self._reader.read(suspect), reference=None)
        return Reading(readouts=(values,), further=tuple(self._attempts(suspect)))

    def _attempts(self, suspect: State) -> Iterator[Attempt]:
        for how in (each.name for each in carrier(CARRIER).alignments):
            if self._reader.disguised(suspect, how):
                yield Attempt(carrier=CARRIER, alignment=how, read=partial(self._aligned, suspect, how))

    def _aligned(self, suspect: State, how: str) -> Readout:
        values = self._reader.aligned(suspect, how, shared=self._first, pool=None)
        return Readout(carrier=CARRIER, values=values, reference=None)
