"""A station's side of a round: train the state it was handed on its own samples, and send it back."""

from dataclasses import dataclass
from functools import lru_cache

from zktrace.federation.spec import RunSpec, build_model
from zktrace.learning.arrays import State
from zktrace.learning.episodes import can_form
from zktrace.learning.states import load_state, state_of
from zktrace.learning.training import EpisodicReport, Penalty, train_episodes
from zktrace.marking.hinge import HingePenalty
from zktrace.readouts.scales import layer_sizes

_TRAINING, _DROPOUT = 2, 3  # purposes of randomness


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """What a station sends back."""

    station: int
    round: int  # it was trained for, from 0
    state: State
    samples: int
    report: EpisodicReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A station that does not take part in a round, and why."""

    station: int
    round: int
    reason: str


@lru_cache(maxsize=64)
def client(spec: RunSpec, station: int) -> "Client":
    """The client of a station, made once a process."""
    return Client(spec, station)


class Client:
    """One station: its samples, its codeword, its directions."""

    def __init__(self, spec: RunSpec, station: int) -> None:
        dataset, plan = spec.source.load()
        self._spec = spec
        self._station = station
        self._images, self._labels = dataset.take(plan.shard(station))
        self._model = build_model(spec, dataset.shape[0])
        self._layers = layer_sizes(state_of(self._model))

    def fit(self, state: State, number: int) -> Update | Absence:
        """Train for round `number` (from 0), starting from `state`."""
        preset = self._spec.preset
        config = preset.episodes.at_round(number, preset.federation.rounds)
        if not can_form(self._labels, config.shape):
            return Absence(
                station=self._station, round=number, reason=f"its samples cannot form a {config.shape}"
            )
        load_state(self._model, state)
        rng = self._spec.rng(_TRAINING, self._station, number)
        penalty = self._penalty(number)
        report = train_episodes(self._model, self._images, self._labels, config, rng, penalty=penalty)
        return Update(
            station=self._station,
            round=number,
            state=state_of(self._model),
            samples=len(self._labels),
            report=report,
        )

    def _penalty(self, number: int) -> Penalty | None:
        """Of the codeword, and what the run adds."""
        mark = self._mark(number) if self._spec.marked else None
        added = self._spec.added
        more = None if added is None else added.penalty(self._spec, self._station, number)
        if mark is None or more is None:
            return mark or more
        return lambda model: mark(model) + more(model)

    def _mark(self, number: int) -> Penalty:
        """Push the scales towards this station's codeword; then lambda times its hinge, for the episodes."""
        marks = self._spec.preset.marks
        hinge = HingePenalty(
            self._spec.codebook(self._layers).block(self._station),
            self._spec.codewords()[self._station],
            margin=marks.mu,
            drop=marks.p_drop,
            seed=int(self._spec.rng(_DROPOUT, self._station, number).integers(1 << 62)),
        )
        if marks.push_margin:
            hinge.push(self._model, margin=marks.push_margin)
        return lambda model: marks.lambda_wm * hinge(model)
