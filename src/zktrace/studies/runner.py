"""One way to run every study: what has no row yet is done, by several processes, and its row is appended.

    Trial          one row: what it is about, and how its outcome is found
    Batch          trials that share what was made for them; one process does them, one after the other
    Prerequisite   what batches need beforehand and find on disk: a trained federation, a trained network

Processes that work have a low priority and one thread of torch each. The caller's process alone writes rows:
whatever ends it leaves whole lines, and the next run goes on with the trials that have none. A trial that
fails is told at the end and keeps no other from being done.
"""

import os
import time
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import mean
from typing import Any, Final, Protocol

from zktrace.errors import Error, MissingExtra
from zktrace.learning.threads import one_thread
from zktrace.primitives.processes import workers as workers_of
from zktrace.studies.rows import Row, Rows, trial_id

WORKERS: Final = 2
_NICE: Final = 10

Progress = Callable[[str, int, int], None]  # what, done, of


def quietly(_what: str, _done: int, _of: int) -> None:
    """No progress is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One row. An outcome of None makes none: there turned out to be nothing to try."""

    facts: Mapping[str, Any]
    outcome: Callable[[], Mapping[str, Any] | None]

    @property
    def key(self) -> str:
        """What tells it from others."""
        return trial_id(self.facts)


class Prerequisite(Protocol):
    """What is made once, before the trials that need it, and kept on disk."""

    @property
    def key(self) -> str:
        """What tells it from others."""

    @property
    def guess(self) -> float:
        """Seconds that it takes, roughly."""

    def ready(self) -> bool:
        """Whether it is there."""

    def make(self, report: Progress) -> None:
        """Make it; what was stopped goes on."""


class Batch(Protocol):
    """Trials that one process does. It can be handed to another process, where there is more than one."""

    @property
    def name(self) -> str:
        """For people; and what tells it from other batches of a run."""

    @property
    def study(self) -> str:
        """As its rows call it."""

    @property
    def needs(self) -> Sequence[Prerequisite]:
        """What must be there before its trials are asked for."""

    @property
    def size(self) -> int:
        """How many trials it has."""

    @property
    def guess(self) -> float:
        """Seconds that all of them take, roughly, where no row says better."""

    def trials(self, report: Progress) -> Iterable[Trial]:
        """Always the same, in the same order; nothing is computed before an outcome is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What was not done, and why."""

    name: str
    message: str
    trace: str  # empty where the message says all


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is left of a study."""

    trials: int
    seconds: float  # of one process


@dataclass(slots=True, kw_only=True)
class Ran:
    """What a run came to."""

    made: list[Row] = field(default_factory=list)
    there: int = 0  # trials that had a row
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    outcome: Mapping[str, Any] | None
    seconds: float


_Task = tuple[Batch, str]  # and the key of one of its trials
_Crew = Callable[[Callable[[Any], Any], Iterable[Iterable[Any]]], Iterator[tuple[Any, Any]]]
_Wanted = dict[str, Mapping[str, Any]]  # of trials, by their keys


def run_study(
    batches: Sequence[Batch], rows: Rows, *, workers: int = WORKERS, progress: Progress | None = None
) -> Ran:
    """Do the trials that have no row. With one batch, or one worker, everything happens in this process."""
    report, ran, done = progress or quietly, Ran(), rows.done()
    batches = [each for each in _different(batches) if not _finished(each, done, ran)]
    with _crew(min(workers, len(batches)), report) as crew:
        _prepare(batches, crew, ran, report)
        left = _left([each for each in batches if _able(each)], rows, ran)
        lanes = [[(batch, key) for key in facts] for batch, facts in left]
        known = {key: each for _, facts in left for key, each in facts.items()}
        for number, ((_, key), answer) in enumerate(crew(_try, lanes), start=1):
            if isinstance(answer, _Done):
                row = None if answer.outcome is None else rows.add(known[key], answer.outcome, answer.seconds)
                ran.made += [] if row is None else [row]
            else:
                ran.failures.append(_failure(f"trial {key}", answer))
            report("trials", number, len(known))
    return ran


def estimate(batches: Sequence[Batch], rows: Rows) -> Estimate:
    """How many trials are left and how long they take, by rows of the same study, or else by guess."""
    typical, done, trials, seconds, missing = _typical(rows), rows.done(), 0, 0.0, dict[str, float]()
    for batch in _different(batches):
        keys = _keys(batch)
        left = batch.size if keys is None else len(keys - done)
        done |= keys or set()
        if not left:
            continue
        missing |= {need.key: need.guess for need in batch.needs if not need.ready()}
        trials += left
        seconds += left * typical.get(batch.study, batch.guess / max(batch.size, 1))
    return Estimate(trials=trials, seconds=seconds + sum(missing.values()))


def _different(batches: Sequence[Batch]) -> list[Batch]:
    """One of each name."""
    return list({each.name: each for each in batches}.values())


def _able(batch: Batch) -> bool:
    return all(need.ready() for need in batch.needs)


def _keys(batch: Batch) -> set[str] | None:
    """What tells its trials from others; None where they cannot be told before what it needs is there."""
    try:
        return {each.key for each in batch.trials(quietly)}
    except (MissingExtra, ModuleNotFoundError):
        raise
    except Exception:
        return None


def _finished(batch: Batch, done: Container[str], ran: Ran) -> bool:
    """Whether all of its trials have a row: then nothing has to be made for it."""
    keys = _keys(batch)
    if keys is None or not all(each in done for each in keys):
        return False
    ran.there += len(keys)
    return True


def _prepare(batches: Sequence[Batch], crew: _Crew, ran: Ran, report: Progress) -> None:
    """Make what batches need, each once. What was not made is a failure; its batches are left out."""
    needs = {need.key: need for batch in batches for need in batch.needs if not need.ready()}
    for number, (need, answer) in enumerate(crew(_make, [[each] for each in needs.values()]), start=1):
        if answer is not None:
            ran.failures.append(_failure(need.key, answer))
        report("prerequisites", number, len(needs))


def _left(batches: Sequence[Batch], rows: Rows, ran: Ran) -> list[tuple[Batch, _Wanted]]:
    """Trials without a row, each once. A batch that cannot say what its trials are is a failure."""
    seen, found = rows.done(), list[tuple[Batch, _Wanted]]()
    for batch in batches:
        try:
            facts = {each.key: each.facts for each in batch.trials(quietly)}
        except Exception as error:
            ran.failures.append(_failure(batch.name, error))
            continue
        ran.there += sum(key in seen for key in facts)
        found.append((batch, {key: each for key, each in facts.items() if key not in seen}))
        seen |= facts.keys()
    return found


def _typical(rows: Rows) -> dict[str, float]:
    """Mean seconds of a trial by study, as far as rows tell."""
    told: dict[str, list[float]] = {}
    for row in rows.read():
        if "seconds" in row.origin:
            told.setdefault(row.trial["study"], []).append(row.origin["seconds"])
    return {study: mean(each) for study, each in told.items()}


@contextmanager
def _crew(count: int, report: Progress) -> Iterator[_Crew]:
    """Whoever works: this process, or several others."""
    if count > 1:
        with workers_of(count, prepare=_modestly) as pool:
            yield pool.lanes
        return
    try:
        yield partial(_here, report)
    finally:
        _OPEN.clear()


def _here(
    report: Progress, function: Callable[..., Any], lanes: Iterable[Iterable[Any]]
) -> Iterator[tuple[Any, Any]]:
    return ((item, function(item, report)) for lane in lanes for item in lane)


def _modestly() -> None:
    os.nice(_NICE)
    one_thread()


_OPEN: dict[str, dict[str, Trial]] = {}  # the trials of the batch that this process is at, by their keys


def _make(need: Prerequisite, report: Progress = quietly) -> Failure | None:
    try:
        need.make(report)
    except Exception as error:
        return _failure(need.key, error)
    return None


def _try(task: _Task, report: Progress = quietly) -> _Done | Failure:
    """One trial, where the last one of its batch left off."""
    batch, key = task
    try:
        if batch.name not in _OPEN:
            _OPEN.clear()
            _OPEN[batch.name] = {each.key: each for each in batch.trials(report)}
        started = time.perf_counter()
        outcome = _OPEN[batch.name][key].outcome()
        return _Done(outcome=outcome, seconds=round(time.perf_counter() - started, 3))
    except Exception as error:
        return _failure(f"{batch.name}, trial {key}", error)


def _failure(name: str, answer: Failure | Exception) -> Failure:
    """Of an error that was raised. A package that is not installed fails them all, and is raised again."""
    if isinstance(answer, Failure):
        return answer
    if isinstance(answer, MissingExtra | ModuleNotFoundError):
        raise answer
    if isinstance(answer, Error):
        return Failure(name=name, message=str(answer), trace="")
    trace = "".join(traceback.format_exception(answer))
    return Failure(name=name, message=f"{type(answer).__name__}: {answer}", trace=trace)
