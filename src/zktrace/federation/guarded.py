"""The guard as the handout of this package's own rounds: every station trains a copy of its own.

A run stands on a release of its own: the one whose shared model is what the run's pre-training ended in. So a
run that goes on finds its release, and another run in the same workspace makes another.
"""

from collections.abc import Sequence
from itertools import chain, count
from typing import Final

from zktrace.errors import InputError, Refused
from zktrace.federation.handout import Handout
from zktrace.guarding import Broadcast, Guard, guard_of, handed_out
from zktrace.guarding.guard import CARRIER, NAME
from zktrace.learning.arrays import State
from zktrace.models import ModelState, model_digest
from zktrace.readouts.blocks import check_length, usual
from zktrace.registry.ledger import Ledger
from zktrace.registry.records import BroadcastRecord
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease

_WITHOUT: Final = "--no-guard trains without it, and every station then receives the same, unmarked"


def guarded_release(ledger: Ledger, first: bytes) -> str | None:
    """The guarded release whose shared model has this digest, if there is one."""
    for name, (_, record) in ledger.releases.items():
        layout = record.layout(CARRIER)
        if record.model == first and layout is not None and layout.frozen:
            return name
    return None


class _Rounds:
    """One broadcast a round; on record when all copies are made, and once."""

    def __init__(self, home: Home, stations: Sequence[str], *, keep: bool) -> None:
        self._home, self._stations, self._keep = home, tuple(stations), keep
        self._guard: Guard | None = None
        self._label, self._state = "", State()
        self._broadcast: Broadcast | None = None
        self._handed: set[str] = set()

    def check(self, state: State) -> None:
        if self._home.registry.ledger().setup.code(CARRIER) is None:
            raise Refused(f"a guard needs the {CARRIER} carrier, and the workspace has none: {_WITHOUT}")
        try:
            check_length(usual(state), state)
        except InputError as error:
            raise InputError(f"no guard: {error}. {_WITHOUT}") from error

    def opening(self, number: int, first: State, state: State) -> None:
        if self._guard is None:
            self._guard = self._begun(number, first)
        self._label, self._state = f"round {number + 1}", state
        self._broadcast, self._handed = None, set()

    def _begun(self, number: int, first: State) -> Guard:
        """The guard of this run; its release is made before the first round, and never later."""
        ledger = self._home.registry.ledger()
        name = guarded_release(ledger, model_digest(ModelState.from_arrays(first)))
        if name is None and number:
            raise Refused(f"the rounds so far had no guard by this workspace: {_WITHOUT}")
        names = chain((NAME,), (f"{NAME}-{each}" for each in count(2)))
        free = next(each for each in names if each not in ledger.releases)
        return guard_of(self._home, first, name=name or free, keep=self._keep)

    def outgoing(self, station: int, state: State) -> State:
        if self._guard is None:
            raise InputError("a round is opened before anybody receives anything")
        if self._broadcast is None:
            self._broadcast = self._guard.broadcast(state, self._label)
        copy = self._broadcast.outgoing(self._stations[station])
        self._handed.add(self._stations[station])
        return copy

    def sent(self) -> None:
        if self._guard is not None and self._broadcast is not None:
            if not self._on_record(self._guard.release):
                self._broadcast.close()
            self._broadcast = None

    def _on_record(self, release: OpenRelease) -> bool:
        """Whether this very round was sent before, by a run that was interrupted then, to all of these."""
        before = [each for _, each in release.ledger.broadcasts(release.name) if each.label == self._label]
        if not before:
            return False
        shared = model_digest(ModelState.from_arrays(self._state))
        return any(self._handed <= _listed(release, each) for each in before if each.model == shared)

    def incoming(self, aggregate: State) -> State:
        return aggregate if self._guard is None else self._guard.incoming(aggregate)


def _listed(release: OpenRelease, record: BroadcastRecord) -> set[str]:
    """Who is on the list of a broadcast; nobody if the list is lost."""
    try:
        return {each.station for each in handed_out(release, record.number).copies}
    except InputError:
        return set()


def guarded_handout(home: Home, stations: Sequence[str], *, keep: bool = False) -> Handout:
    """Copies by the rows of a workspace's stations, in the order of the roster.

    A round comes on record as soon as all its copies are made. One that was interrupted is repeated with the
    same copies, and comes on record again only if somebody receives one who had none before. With
    `keep` every shared model stays on the disk.
    """
    rounds = _Rounds(home, stations, keep=keep)
    return Handout(
        check=rounds.check,
        opening=rounds.opening,
        outgoing=rounds.outgoing,
        sent=rounds.sent,
        incoming=rounds.incoming,
    )
