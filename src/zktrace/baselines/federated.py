"""A system in a federation of this package: what stations add to their loss, are sent, and send back.

`added` goes with the run's spec to every process; `handout` stays with the server. Both are set up from the
spec alone, so they have the same keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from zktrace.baselines.protocol import Scheme, System, Venue
from zktrace.errors import InputError
from zktrace.federation.handout import Handout
from zktrace.federation.spec import RunSpec, build_model
from zktrace.learning.arrays import Images, Labels, State
from zktrace.learning.checkpoints import load_checkpoint
from zktrace.learning.data.proxy import proxy_pool
from zktrace.learning.states import state_of
from zktrace.learning.training import KIND, Penalty
from zktrace.readouts.scales import layer_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class StationTerm:
    """What a system's stations add to their loss: an `Addition` of the engine."""

    system: System

    def facts(self) -> dict[str, Any]:
        """The system with its parameters."""
        return self.system.facts()

    def penalty(self, spec: RunSpec, station: int, number: int) -> Penalty | None:
        """By the scheme of this process."""
        return _stations_scheme(self.system, spec).penalty(station, number)


@lru_cache(maxsize=8)
def _stations_scheme(system: System, spec: RunSpec) -> Scheme:
    return system.set_up(venue_of(spec))


def spec_with(spec: RunSpec, system: System) -> RunSpec:
    """The same run with a system in the place of the codewords."""
    marks = replace(spec.preset.marks, lambda_wm=0.0)
    return replace(spec, preset=replace(spec.preset, marks=marks), words=(), added=StationTerm(system=system))


def venue_of(spec: RunSpec, *, seed: int | None = None, first: Callable[[], State] | None = None) -> Venue:
    """What a run is for a system; keys of another seed than the run's for whoever asks."""
    dataset, _ = spec.source.load()
    model = build_model(spec, dataset.shape[0])
    return Venue(
        stations=spec.preset.federation.clients,
        rounds=spec.preset.federation.rounds,
        seed=spec.seed if seed is None else seed,
        layers=layer_sizes(state_of(model)),
        features=model.features,
        shape=dataset.shape,
        classes=dataset.classes,
        episodes=spec.preset.episodes,
        samples=lambda: servers_samples(spec),
        first=first or _not_here,
    )


def pretrained(folder: Path) -> State:
    """The network of a run as pre-training left it, which is how rounds begin."""
    return load_checkpoint(folder / "pretraining.safetensors", kind=KIND).group("model")


def _not_here() -> State:
    raise InputError("a station has no model of before the first round")


@lru_cache(maxsize=2)
def servers_samples(spec: RunSpec) -> tuple[Images, Labels]:
    """The validation part of the run's data, which no station trains on."""
    pool = proxy_pool(spec.source, spec.preset.episodes)
    return np.array(pool.images), np.array(pool.labels)


class _Rounds:
    """The server's side, in the order in which a run calls it."""

    def __init__(self, scheme: Scheme, keep: dict[int, State], watched: tuple[int, int] | None) -> None:
        self._scheme, self._kept, self._watched = scheme, keep, watched
        self._number, self._shared = -1, State()

    def opening(self, number: int, first: State, state: State) -> None:
        if self._number < 0 < number:
            raise InputError("a scheme remembers its rounds: a run that was interrupted begins them again")
        self._number = number
        self._shared = self._scheme.begun(state) if number == 0 else state

    def outgoing(self, station: int, _: State) -> State:
        sent = self._scheme.outgoing(self._shared, station, self._number)
        if self._watched == (station, self._number):
            self._kept[self._number] = sent
        return sent

    def incoming(self, aggregate: State) -> State:
        return self._scheme.incoming(aggregate, self._shared)


def handout(
    scheme: Scheme, *, kept: dict[int, State] | None = None, watched: tuple[int, int] | None = None
) -> Handout:
    """How a scheme's server treats a run. What the `watched` station receives in the watched round is put
    into `kept`, for whoever asks what an early leak says."""
    rounds = _Rounds(scheme, {} if kept is None else kept, watched)
    return Handout(opening=rounds.opening, outgoing=rounds.outgoing, incoming=rounds.incoming)
