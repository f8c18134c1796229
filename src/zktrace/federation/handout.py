"""What stations receive in a round, and what the server keeps of what comes back.

A state that is another for every station comes back in the average: a row that was handed out would be in the
next shared model, and tracing that model would name innocents. So whoever hands out states of its own also
says how an aggregate is cleaned of them, and the two cannot be had apart.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from zktrace.errors import Refused
from zktrace.federation.client import Absence, Update
from zktrace.learning.arrays import State

Answers = Callable[[int, tuple[int, ...], State], Iterable[Update | Absence]]  # round, asked, shared state


def _nothing(*_: object) -> None:
    """What a handout does at a step that it has no part in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handout:
    """States of the stations' own, and the way back; in the order in which a run calls them."""

    check: Callable[[State], None] = _nothing  # raises, before any training, of a network it cannot hand out
    opening: Callable[[int, State, State], None] = _nothing  # round, the first shared state, this round's
    outgoing: Callable[[int, State], State]  # (station, shared state) -> the state this station receives
    sent: Callable[[], None] = _nothing  # nobody else receives anything in this round
    incoming: Callable[[State], State]  # an aggregate -> the same without what the stations' states had

    def given(self, station: int, number: int, state: State) -> State | Absence:
        """What a station receives; one to whom it is refused is absent from the round."""
        try:
            return self.outgoing(station, state)
        except Refused as error:
            return Absence(station=station, round=number, reason=str(error))


SAME_FOR_ALL: Final = Handout(outgoing=lambda _station, state: state, incoming=lambda state: state)


@dataclass(frozen=True, slots=True)
class Engine:
    """Answers of the stations, and how their aggregate is cleaned."""

    answers: Answers
    handout: Handout = SAME_FOR_ALL
