"""Worker processes that can be left at any moment.

Every worker has a pipe of its own and at most one task; the caller's thread does all the waiting. So an
interruption reaches the caller at once, nothing is joined when the interpreter ends, and a worker that dies
is one failed task. Workers never see Ctrl-C: their caller does, and ends them.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, TypeVar

from zktrace.errors import WorkerDied

Item = TypeVar("Item")
Result = TypeVar("Result")

_SPAWN: Final = multiprocessing.get_context("spawn")  # torch's threads do not survive a fork
_DONE: Final = object()


def processors() -> int:
    """Processes that are worth starting: as many as this one may use processors; none in a worker."""
    return 0 if _SPAWN.current_process().daemon else len(os.sched_getaffinity(0))


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, prepare: Callable[[], None] | None) -> None:
        self.pipe, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(other, prepare), daemon=True)
        resource_tracker.ensure_running()  # here: starting it would lift the block
        with _uninterrupted():
            self.process.start()
        other.close()  # so that its death is the end of the pipe

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Workers(Generic[Item, Result]):
    """A number of processes that call functions. Made as they are needed; gone when `close` returns."""

    def __init__(self, count: int, *, prepare: Callable[[], None] | None = None) -> None:
        self._prepare = prepare
        self._workers: list[_Worker | None] = [None] * count

    def work(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        worker_of: Callable[[Item], int] | None = None,
    ) -> Iterator[tuple[Item, Result | Exception]]:
        """(item, what the function made of it or raised) as they are done.

        An item goes to the worker with the number `worker_of` it, or to the next one that is free. Items are
        taken from `items` only when a worker is free. Whoever stops listening ends what is under way.
        """
        return self._work(function, self._sources(items, worker_of))

    def lanes(
        self, function: Callable[[Item], Result], lanes: Iterable[Iterable[Item]]
    ) -> Iterator[tuple[Item, Result | Exception]]:
        """The same; whoever takes the first item of a lane takes all of it, in order."""
        shared = iter(lanes)
        return self._work(function, [chain.from_iterable(shared) for _ in self._workers])

    def _work(
        self, function: Callable[[Item], Result], sources: list[Iterator[Item]]
    ) -> Iterator[tuple[Item, Result | Exception]]:
        busy: dict[object, tuple[int, Item]] = {}
        try:
            for number, source in enumerate(sources):
                self._hand(number, source, function, busy)
            while busy:
                for pipe in wait([self._pipe(number) for number, _ in busy.values()]):
                    number, item = busy.pop(pipe)
                    answer = self._answer(number)
                    self._hand(number, sources[number], function, busy)
                    yield item, answer
        finally:
            for number, _ in busy.values():
                self._kill(number)

    def close(self) -> None:
        """End all processes now."""
        for number in range(len(self._workers)):
            self._kill(number)

    def _sources(
        self, items: Iterable[Item], worker_of: Callable[[Item], int] | None
    ) -> list[Iterator[Item]]:
        count = len(self._workers)
        if worker_of is None:
            return [iter(items)] * count  # one iterator, which all take from
        known = [(worker_of(item) % count, item) for item in items]
        return [iter([item for place, item in known if place == number]) for number in range(count)]

    def _hand(
        self,
        number: int,
        source: Iterator[Item],
        function: Callable[[Item], Result],
        busy: dict[object, tuple[int, Item]],
    ) -> None:
        """Give a worker its next task, if there is one."""
        item = next(source, _DONE)
        if item is _DONE:
            return
        worker = self._workers[number] or _Worker(self._prepare)
        self._workers[number] = worker
        busy[worker.pipe] = (number, item)  # type: ignore[assignment]
        with suppress(OSError):  # it died: its answer says so
            worker.pipe.send((function, item))

    def _answer(self, number: int) -> Any:  # noqa: ANN401
        try:
            return self._pipe(number).recv()
        except (EOFError, OSError):
            self._kill(number)
            return WorkerDied("a worker process died")

    def _pipe(self, number: int) -> Connection:
        worker = self._workers[number]
        if worker is None:
            raise EOFError
        return worker.pipe

    def _kill(self, number: int) -> None:
        worker, self._workers[number] = self._workers[number], None
        if worker is not None:
            worker.kill()


@contextmanager
def workers(count: int, *, prepare: Callable[[], None] | None = None) -> Iterator["Workers[Any, Any]"]:
    """Workers that are gone when the block ends, however it ends."""
    made: Workers[Any, Any] = Workers(count, prepare=prepare)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """A process started in here inherits a blocked SIGINT, from its very first instruction on.

    An interruption waits until the block ends: other threads, as a library has them, may still be sent the
    signal, and a process that is half started would complain.
    """
    came: list[object] = []
    here = threading.current_thread() is threading.main_thread()  # elsewhere nothing is ever interrupted
    handler = signal.signal(signal.SIGINT, lambda *given: came.append(given)) if here else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if here:
            signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
            if came:
                signal.raise_signal(signal.SIGINT)


def _serve(pipe: Connection, prepare: Callable[[], None] | None) -> None:
    """A worker's life: it ends when nobody can give it tasks any more."""
    if prepare is not None:
        prepare()
    while True:
        try:
            function, item = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(item)
        except Exception as error:
            answer = error
        try:
            pipe.send(answer)
        except OSError:
            return
        except Exception as error:  # what cannot be pickled
            pipe.send(RuntimeError(f"{type(answer).__name__} cannot be handed back: {error}"))
