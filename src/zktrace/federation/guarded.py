"""The guard as the handout of this package's own rounds: every station trains a copy of its own."""

from collections.abc import Sequence

from zktrace.federation.handout import Handout
from zktrace.guarding import Broadcast, Guard, guard_of
from zktrace.guarding.guard import NAME
from zktrace.learning.arrays import State
from zktrace.registry.workspace import Home


class _Rounds:
    """One broadcast a round: it begins with the first station that is handed something."""

    def __init__(self, home: Home, stations: Sequence[str], name: str, *, keep: bool) -> None:
        self._home, self._stations, self._name, self._keep = home, tuple(stations), name, keep
        self._guard: Guard | None = None
        self._state: State | None = None
        self._broadcast: Broadcast | None = None

    def outgoing(self, station: int, state: State) -> State:
        if self._guard is None:
            self._guard = guard_of(self._home, state, name=self._name, keep=self._keep)
        if self._broadcast is None or state is not self._state:
            self._broadcast, self._state = self._guard.broadcast(state), state
        return self._broadcast.outgoing(self._stations[station])

    def incoming(self, aggregate: State) -> State:
        """Put the round on record, and free the aggregate."""
        if self._broadcast is None or self._guard is None:  # nobody was asked
            return aggregate
        self._broadcast.close()
        self._broadcast = None
        return self._guard.incoming(aggregate)


def guarded_handout(home: Home, stations: Sequence[str], *, name: str = NAME, keep: bool = False) -> Handout:
    """Copies by the rows of a workspace's stations, in the order of the roster; begun by the first round.

    A round comes on record when its answers are in. One that is interrupted is repeated, and then is on
    record once: the copies were the same. With `keep` every shared model stays on the disk.
    """
    rounds = _Rounds(home, stations, name, keep=keep)
    return Handout(outgoing=rounds.outgoing, incoming=rounds.incoming)
