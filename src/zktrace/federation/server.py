"""The server's side of a round: whom to ask, whom to believe, what to average."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from zktrace.errors import Error, InputError
from zktrace.federation.client import Absence, Update
from zktrace.federation.spec import RunSpec
from zktrace.learning.aggregation import aggregate, check_update
from zktrace.learning.arrays import State

_SELECTION = 4  # purpose of randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """What happened in a round. Nobody who was asked is missing from it."""

    round: int  # from 0
    asked: tuple[int, ...]
    trained: tuple[int, ...]
    absent: Mapping[int, str]  # station -> reason: it could not train, or did not answer
    excluded: Mapping[int, str]  # station -> reason: it answered, and its update was not used
    loss: float  # sample-weighted means over those who trained; NaN if nobody did
    penalty: float
    accuracy: float  # on their own training episodes
    attribution: float | None = None  # share of the stations that are attributed to themselves afterwards
    held_out: float | None = None  # accuracy on a few validation episodes afterwards

    def as_dict(self) -> dict[str, Any]:
        """For a line of the log."""
        return asdict(self)


def participants(spec: RunSpec, number: int) -> tuple[int, ...]:
    """The stations asked in a round: a fixed share of the roster, drawn without regard to anything."""
    federation = spec.preset.federation
    count = max(1, round(federation.participation * federation.clients))
    chosen = spec.rng(_SELECTION, number).choice(federation.clients, count, replace=False)
    return tuple(sorted(chosen.tolist()))


def conclude(
    spec: RunSpec,
    number: int,
    state: State,
    asked: tuple[int, ...],
    answers: Iterable[Update | Absence],
    *,
    counts: Sequence[int],
) -> tuple[State, RoundReport]:
    """The next state from the answers to round `number`.

    An update of another round, of a station that was not asked, of another architecture, with NaN or infinity
    in it, or with another number of samples than the roster says is left out and reported. A weight is always
    the roster's: `counts`, by station, fixed before the first round. If nobody's update is usable the state
    stays as it is.
    """
    absent: dict[int, str] = {}
    excluded: dict[int, str] = {}
    usable: dict[int, Update] = {}
    for answer in answers:
        if isinstance(answer, Absence):
            absent[answer.station] = answer.reason
            continue
        fault = _fault(answer, number, state, asked, usable=usable, counts=counts)
        if fault is None:
            usable[answer.station] = answer
        else:
            excluded[answer.station] = fault
    for station in asked:
        if station not in usable and station not in excluded:
            absent.setdefault(station, "no answer")
    updates = [usable[station] for station in sorted(usable)]
    weights = [float(counts[update.station]) for update in updates]
    if updates:
        rule = spec.preset.federation.aggregation
        state = aggregate(rule, [update.state for update in updates], weights, like=state)
    return state, RoundReport(
        round=number,
        asked=asked,
        trained=tuple(update.station for update in updates),
        absent=absent,
        excluded=excluded,
        loss=_mean([update.report.loss for update in updates], weights),
        penalty=_mean([update.report.penalty for update in updates], weights),
        accuracy=_mean([update.report.accuracy for update in updates], weights),
    )


def _fault(
    update: Update,
    number: int,
    state: State,
    asked: tuple[int, ...],
    *,
    usable: Mapping[int, Update],
    counts: Sequence[int],
) -> str | None:
    """Why an update must not be averaged."""
    if update.station not in asked:
        return "was not asked in this round"
    if update.station in usable:
        return "answered twice"
    if update.round != number:
        return f"an update of round {update.round + 1}, not of round {number + 1}"
    if update.samples != counts[update.station]:
        return f"claims {update.samples} samples, the roster says {counts[update.station]}"
    try:
        check_update(update.state, state, station=update.station)
    except InputError as error:
        return str(error)
    return None


def _mean(values: list[float], weights: list[float]) -> float:
    if not values:
        return float("nan")
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def failed(station: int, number: int, error: BaseException) -> Absence:
    """The answer of a station whose training ended in an error."""
    reason = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
    return Absence(station=station, round=number, reason=reason)
