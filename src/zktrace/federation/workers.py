"""The engine of one machine: local training in worker processes, one torch thread each.

A station always goes to the same worker, which keeps its samples between rounds.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from zktrace.federation.client import Absence, Update, client
from zktrace.federation.handout import SAME_FOR_ALL, Engine, Handout
from zktrace.federation.server import failed
from zktrace.federation.spec import RunSpec
from zktrace.learning.arrays import State
from zktrace.learning.threads import one_thread
from zktrace.primitives.processes import processors
from zktrace.primitives.processes import workers as workers_of


@contextmanager
def worker_engine(
    spec: RunSpec, *, workers: int | None = None, handout: Handout = SAME_FOR_ALL
) -> Iterator[Engine]:
    """Answers of the asked stations, as they come. With no workers everything happens in this process."""
    count = processors() if workers is None else workers
    if count == 0:

        def here(number: int, asked: tuple[int, ...], state: State) -> Iterator[Update | Absence]:
            for station in asked:
                given = handout.given(station, number, state)
                yield given if isinstance(given, Absence) else _fit(spec, station, number, given)
            handout.sent()

        yield Engine(here, handout)
        return
    with workers_of(count, prepare=one_thread) as pool:

        def apart(number: int, asked: tuple[int, ...], state: State) -> Iterator[Update | Absence]:
            refused: list[Absence] = []

            def tasks() -> Iterator[_Task]:
                for station in asked:
                    given = handout.given(station, number, state)
                    if isinstance(given, Absence):
                        refused.append(given)
                    else:
                        yield spec, station, number, given
                handout.sent()

            for task, answer in pool.work(_fit_task, tasks(), worker_of=_station_of):
                yield failed(task[1], number, answer) if isinstance(answer, Exception) else answer
            yield from refused

        yield Engine(apart, handout)


_Task = tuple[RunSpec, int, int, State]


def _station_of(task: _Task) -> int:
    return task[1]


def _fit_task(task: _Task) -> Update | Absence:
    return _fit(*task)


def _fit(spec: RunSpec, station: int, number: int, state: State) -> Update | Absence:
    try:
        return client(spec, station).fit(state, number)
    except Exception as error:
        return failed(station, number, error)
