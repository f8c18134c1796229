"""A guard around any strategy of Flower: every model that leaves is its node's own, and none comes back.

    strategy = Guarded(FedAvg(), workspace="operator", begin=True)

The strategy inside samples nodes, configures and aggregates as before. What it sends is exchanged, message by
message, for the copy of the station that the node is; what it makes of the replies is freed of all marks
(docs/guard.md). Metrics, configurations and failures pass through.

A node is a station by the key it is registered with at the SuperLink. One that is nobody's gets no message,
unless the operator lets it be enrolled under its key's fingerprint: never an unmarked copy.
"""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Final

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from zktrace.credentials import SecretKey
from zktrace.errors import InputError, Refused
from zktrace.federation.flower.runfile import node_key
from zktrace.guarding import Guard, guard_of
from zktrace.guarding.guard import NAME
from zktrace.learning.arrays import State
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home

_log = logging.getLogger(__name__)
_SHOWN: Final = 20  # hexadecimal digits of a fingerprint in a station's name


class Guarded(Strategy):
    """A strategy whose messages carry the stations' own copies."""

    def __init__(
        self,
        strategy: Strategy,
        *,
        workspace: Home | str | PathLike[str],
        nodes: Mapping[str, str] | None = None,
        enrol: bool = False,
        begin: bool = False,
        name: str = NAME,
        strength: float | None = None,
        transport: str | None = None,
        keep: bool = False,
    ) -> None:
        """`nodes` are the stations' node keys, lines of OpenSSH; with `enrol` other nodes become stations.

        With `begin` the first round puts the release on record that a guard needs, made of the first arrays
        it sees; else it was made by `zktrace guard init`. The rest is `Workspace.guard`'s.
        """
        self.strategy = strategy
        self.home = workspace if isinstance(workspace, Home) else Home.open(Path(workspace))
        self._stations = {node_key(line): station for station, line in (nodes or {}).items()}
        self._enrol, self._begin, self._name = enrol, begin, name
        self._strength, self._transport, self._keep = strength, transport, keep
        self._guard: Guard | None = None
        known = self.home.registry.ledger().stations
        for station in self._stations.values():
            if station not in known:
                raise Refused(f"a node key of {station}, and no station of that name is enrolled")

    def guard(self, arrays: ArrayRecord) -> Guard:
        """The guard of this federation."""
        if self._guard is None:
            made = self._name in self.home.registry.ledger().releases
            if not made and not self._begin:
                raise Refused(
                    f"there is no release {self._name} in the workspace: make it (zktrace guard init), or "
                    "let the first round do it (begin=True)"
                )
            self._guard = guard_of(
                self.home,
                _state(arrays),
                name=self._name,
                strength=self._strength,
                transport=self._transport,
                keep=self._keep,
            )
        return self._guard

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """What the strategy sends, with each node's own copy."""
        messages = self.strategy.configure_train(server_round, arrays, config, grid)
        return self._own(messages, arrays, grid, f"train {server_round}")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the strategy makes of the replies, freed of all marks."""
        arrays, metrics = self.strategy.aggregate_train(server_round, replies)
        if arrays is None or not self.guard(arrays).strength:
            return arrays, metrics
        return _record(self.guard(arrays).incoming(_state(arrays))), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The same for whoever evaluates: that model leaves, too."""
        messages = self.strategy.configure_evaluate(server_round, arrays, config, grid)
        return self._own(messages, arrays, grid, f"evaluate {server_round}")

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The strategy's."""
        return self.strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """The strategy's, and a line about the guard."""
        self.strategy.summary()
        _log.info("every model that is sent carries its station's row (workspace %s)", self.home.root)

    def _own(self, messages: Iterable[Message], arrays: ArrayRecord, grid: Grid, label: str) -> list[Message]:
        given = list(messages)
        if not given:
            return given
        keys = {info.node_id: info.public_key for info in grid.get_nodes()}
        broadcast = self.guard(arrays).broadcast(_state(arrays), label)
        made: list[Message] = []
        copies: dict[str, ArrayRecord] = {}
        for message in given:
            node = message.metadata.dst_node_id
            station = self._station(node, keys.get(node, b""))
            if station is None:
                _log.warning("node %s is no station of this workspace: it is sent nothing", node)
                continue
            if station not in copies:
                copies[station] = _record(broadcast.outgoing(station))
            message.content = _exchanged(message.content, arrays, copies[station])
            made.append(message)
        broadcast.close()
        return made

    def _station(self, node: int, key: bytes) -> str | None:
        """Who a node is. Without a key of its own it is nobody but itself."""
        if key and (named := self._stations.get(key)) is not None:
            return named
        mark = hashlib.sha256(key or f"node {node}".encode()).hexdigest()[:_SHOWN]
        station = f"node-{mark}"
        if station in self.home.registry.ledger().stations:
            return station
        if not self._enrol:
            return None
        self.home.enrol(station, Request.make(SecretKey.generate(), self.home.offer))
        return station


def _state(arrays: ArrayRecord) -> State:
    return {name: each.numpy() for name, each in arrays.items()}


def _record(arrays: State) -> ArrayRecord:
    return ArrayRecord({name: Array(each) for name, each in arrays.items()})


def _exchanged(content: RecordDict, shared: ArrayRecord, own: ArrayRecord) -> RecordDict:
    """A message's records with a node's own arrays for the shared ones; InputError if it has none."""
    found = [name for name, each in content.array_records.items() if each is shared or _alike(each, shared)]
    if not found:
        raise InputError("a message of the strategy does not carry the shared model: it cannot be marked")
    return RecordDict({name: own if name in found else each for name, each in content.items()})


def _alike(one: ArrayRecord, other: ArrayRecord) -> bool:
    return {name: each.shape for name, each in one.items()} == {
        name: each.shape for name, each in other.items()
    }
