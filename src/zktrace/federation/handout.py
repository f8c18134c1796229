"""What stations receive in a round, and what the server keeps of what comes back.

A state that is another for every station comes back in the average: a row that was handed out would be in the
next shared model, and tracing that model would name innocents. So whoever hands out states of its own also
says how an aggregate is cleaned of them, and the two cannot be had apart.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from zktrace.federation.client import Absence, Update
from zktrace.learning.arrays import State

Answers = Callable[[int, tuple[int, ...], State], Iterable[Update | Absence]]  # round, asked, shared state


@dataclass(frozen=True, slots=True, kw_only=True)
class Handout:
    """States of the stations' own, and the way back."""

    outgoing: Callable[[int, State], State]  # (station, shared state) -> the state this station receives
    incoming: Callable[[State], State]  # an aggregate -> the same without what the stations' states had


SAME_FOR_ALL: Final = Handout(outgoing=lambda _station, state: state, incoming=lambda state: state)


@dataclass(frozen=True, slots=True)
class Engine:
    """Answers of the stations, and how their aggregate is cleaned."""

    answers: Answers
    handout: Handout = SAME_FOR_ALL
