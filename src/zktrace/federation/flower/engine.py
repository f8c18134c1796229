"""Rounds over a Flower grid: find the stations' nodes, send each its state, take what comes back in time.

A node is a station because of the key it is registered with, where the run file names the keys, and
otherwise because it says so; never because of its place in a list. Two nodes of one station are none.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import httpx
from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from zktrace.errors import InputError
from zktrace.federation.client import Absence, Update
from zktrace.federation.flower.records import (
    Introduction,
    Packer,
    TrainRequest,
    read_answer,
    read_introduction,
    request_record,
)
from zktrace.federation.flower.runfile import node_key
from zktrace.federation.handout import SAME_FOR_ALL, Engine, Handout
from zktrace.federation.server import failed
from zktrace.federation.spec import RunSpec
from zktrace.learning.arrays import State

_log = logging.getLogger(__name__)
_SLACK = 60.0  # seconds that a message outlives the wait for its answer, so that the wait decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the server waits, in seconds. It waits for nothing without end."""

    connect: float = 120.0  # for the nodes of stations that were not missed before
    query: float = 60.0  # for a node to say which station it is
    train: float = 3600.0  # for the updates of a round
    poll: float = 0.5  # between two looks

    def __post_init__(self) -> None:
        if self.connect < 0 or min(self.query, self.train, self.poll) <= 0:
            raise InputError("time-outs must be positive")


def flower_engine(
    spec: RunSpec,
    grid: Grid,
    *,
    nodes: Sequence[str] = (),
    handout: Handout = SAME_FOR_ALL,
    patience: Patience | None = None,
) -> Engine:
    """Answers of the asked stations over `grid`, as they come.

    `nodes` are the stations' node keys (OpenSSH lines in the order of the roster). Without them every node
    that the SuperLink admits is believed about its station.
    """
    chosen = patience or Patience()
    directory = _Directory(spec, grid, tuple(node_key(line) for line in nodes), chosen)

    def answers(number: int, asked: tuple[int, ...], state: State) -> Iterator[Update | Absence]:
        found = directory.find(asked)
        for station in asked:
            if station not in found.nodes:
                yield Absence(station=station, round=number, reason=found.reason(station))
        refused: list[Absence] = []

        def letters() -> Iterator[_Letter]:
            packer = Packer(state)
            for station, node in sorted(found.nodes.items()):
                if station not in asked:
                    continue
                given = handout.given(station, number, state)
                if isinstance(given, Absence):
                    refused.append(given)
                else:
                    yield _Letter(station, node, _request(spec, number, station, given, packer))
            handout.sent()

        for station, reply in _exchange(
            grid, letters(), MessageType.TRAIN, group=str(number), patience=chosen.train, poll=chosen.poll
        ):
            yield _answer(station, number, reply)
        yield from refused

    return Engine(answers, handout)


def _request(spec: RunSpec, number: int, station: int, state: State, packer: Packer) -> RecordDict:
    request = TrainRequest(number=number, station=station, spec=spec.digest(), state=state)
    return request_record(request, packer)


def _answer(station: int, number: int, reply: Message | str) -> Update | Absence:
    if isinstance(reply, str):
        return Absence(station=station, round=number, reason=reply)
    try:
        return read_answer(reply.content, station=station, number=number)
    except Exception as error:  # whatever a node sends, it is that node's failure
        return failed(station, number, error)


@dataclass(frozen=True, slots=True)
class _Found:
    """Who is there: station -> node, and what is known of those who are not."""

    nodes: Mapping[int, int]
    faults: Mapping[int, str]

    def reason(self, station: int) -> str:
        return self.faults.get(station, "no node of this station is connected")


class _Directory:
    """Which node is which station."""

    def __init__(self, spec: RunSpec, grid: Grid, keys: tuple[bytes, ...], patience: Patience) -> None:
        self._digest = spec.digest()
        self._clients = spec.preset.federation.clients
        self._grid = grid
        self._by_key = {key: station for station, key in enumerate(keys)}
        self._patience = patience
        self._ready: dict[int, int] = {}  # node -> station, of those that answered well
        self._missed: set[int] = set()  # stations that a round went on without

    def find(self, asked: tuple[int, ...]) -> _Found:
        """The nodes of the asked stations. A station that was missed before is not waited for again."""
        deadline = time.monotonic() + self._patience.connect
        queried: dict[int, str | Introduction] = {}
        while True:
            online = self._online()
            strangers = [node for node in online if node not in self._ready and node not in queried]
            queried |= self._query(strangers)
            found = self._sort(online, queried)
            awaited = set(asked) - set(found.nodes) - set(found.faults) - self._missed
            if not awaited or time.monotonic() >= deadline:
                break
            time.sleep(self._patience.poll)
        self._missed = (self._missed | set(asked)) - set(found.nodes)
        return found

    def _online(self) -> dict[int, int | None]:
        """Connected nodes, with the station of their key. With keys, others do not count."""
        nodes = {info.node_id: self._by_key.get(info.public_key) for info in self._grid.get_nodes()}
        return {node: station for node, station in nodes.items() if station is not None or not self._by_key}

    def _query(self, nodes: Sequence[int]) -> dict[int, str | Introduction]:
        letters = [_Letter(node, node, RecordDict()) for node in nodes]
        answers: dict[int, str | Introduction] = {}
        for node, reply in _exchange(
            self._grid,
            letters,
            MessageType.QUERY,
            group="query",
            patience=self._patience.query,
            poll=self._patience.poll,
        ):
            answers[node] = reply if isinstance(reply, str) else _introduced(reply)
        return answers

    def _sort(self, online: Mapping[int, int | None], queried: Mapping[int, str | Introduction]) -> _Found:
        """Put nodes to their stations, and faults to theirs."""
        places: dict[int, list[int]] = defaultdict(list)
        faults: dict[int, str] = {}
        for node, by_key in online.items():
            if node in self._ready:
                places[self._ready[node]].append(node)
                continue
            said = queried.get(node, "was not asked who it is")
            fault = self._fault(said, by_key)
            station = by_key if isinstance(said, str) or by_key is not None else said.station
            if fault is None and station is not None:
                self._ready[node] = station
                places[station].append(node)
            elif station is not None:
                faults[station] = fault or ""
            else:
                _log.warning("a node that is no station is passed over: %s", fault)
        for station, nodes in places.items():
            if len(nodes) > 1:
                faults[station] = f"{len(nodes)} nodes say they are this station"
        single = {station: nodes[0] for station, nodes in places.items() if len(nodes) == 1}
        return _Found(single, {s: fault for s, fault in faults.items() if s not in single})

    def _fault(self, said: str | Introduction, by_key: int | None) -> str | None:
        if isinstance(said, str):
            return said
        if not 0 <= said.station < self._clients:
            return f"its node says it is station {said.station} of {self._clients}"
        if by_key is not None and said.station != by_key:
            return f"its node says it is station {said.station}"
        if said.fault:
            return said.fault
        if said.spec != self._digest:
            return "its node is set up for another preset, seed or roster"
        return None


def _introduced(reply: Message) -> str | Introduction:
    try:
        return read_introduction(reply.content)
    except Exception as error:
        return f"its node does not say which station it is ({error})"


@dataclass(frozen=True, slots=True)
class _Letter:
    """A message to be sent: whose answer it asks for, to which node, what."""

    key: int
    node: int
    content: RecordDict


def _exchange(
    grid: Grid, letters: Iterable[_Letter], kind: str, *, group: str, patience: float, poll: float
) -> Iterator[tuple[int, Message | str]]:
    """For every letter the reply, or why there is none; at the latest when patience ends.

    Letters are made, go, and their replies come one by one: no more than one state is held at a time beyond
    what the grid holds, and a message that cannot be sent or read is nobody else's loss.
    """
    deadline = time.monotonic() + patience
    waiting: dict[str, tuple[int, int]] = {}
    for letter in letters:
        message = Message(letter.content, letter.node, kind, ttl=patience + _SLACK, group_id=group)
        names = [name for name in grid.push_messages([message]) if name]
        if names:
            waiting[names[0]] = letter.key, letter.node
        else:
            yield letter.key, "the SuperLink did not take the message to its node"
    while waiting:
        for name, (key, node) in list(waiting.items()):
            reply = _pull(grid, name, node)
            if reply is not None:
                del waiting[name]
                yield key, reply
        if time.monotonic() >= deadline:
            break
        if waiting:
            time.sleep(poll)
    for key, _ in waiting.values():
        yield key, f"no answer within {patience:g} s"


def _pull(grid: Grid, name: str, node: int) -> Message | str | None:
    """The reply to a message, why it is none, or None: not yet."""
    try:
        replies = list(grid.pull_messages([name]))
    except httpx.HTTPError:  # the SuperLink, not the node
        raise
    except Exception as error:
        return f"its answer cannot be read ({type(error).__name__})"
    if not replies:
        return None
    reply = replies[0]
    if reply.has_error():
        reason = " ".join((reply.error.reason or "no reason given").split())
        return f"its node failed: {reason[:300]}"
    if reply.metadata.src_node_id != node:
        return "another node answered in its place"
    return reply
