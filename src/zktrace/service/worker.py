"""The process that does the jobs: it alone opens the code key. What was uploaded a child of it opens.

It is started by the service, renews its claim from a thread of its own, and ends when the service does. If it
is killed, the service starts another one, and the job is taken up again when the claim has run out. Of one
that was asked to end the service gives the job back, once that worker is no more.
"""

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from zktrace.errors import Error, Unavailable
from zktrace.front.workspace import Workspace
from zktrace.primitives.text import one_line
from zktrace.service.job import JobRow
from zktrace.service.jobs import LEASE, Cancelled, Jobs, Lost
from zktrace.service.store import prepared
from zktrace.service.tidying import EVERY, tidy
from zktrace.service.work import carry_out, drop_upload, said

PAUSE: Final = 0.5  # seconds between two looks for a job
LOST: Final = 75  # exit code of a worker whose job was given to another one
_SPAWN: Final = multiprocessing.get_context("spawn")
_ASKED: Final = (0, -signal.SIGTERM)  # exit codes of workers that were asked to end, by us or the system
_CLAIM: Final = 64  # bytes: which job, and by which attempt


def work(
    root: Path,
    ended: Event,
    *,
    lease: float = LEASE,
    pause: float = PAUSE,
    claimed: Callable[[JobRow], None] = lambda job: None,
) -> None:
    """Do jobs until `ended`; `claimed` is told of each before it begins."""
    home = Workspace.open(root)
    jobs = Jobs(prepared(home), lease=lease)
    tidied = -EVERY
    while not ended.is_set():
        if time.monotonic() - tidied >= EVERY:
            tidied = time.monotonic()
            with suppress(Error, OSError):
                tidy(home, jobs)
        try:
            job = jobs.claim(lease=lease)
        except Error:  # a database that is away comes back
            job = None
        if job is None:
            ended.wait(pause)
        else:
            claimed(job)
            do(home, jobs, job, lease=lease)


def do(home: Workspace, jobs: Jobs, job: JobRow, *, lease: float = LEASE) -> None:
    """One job that was claimed, whatever comes of it."""
    done = Event()
    keeper = Thread(target=_keep, args=(jobs, job, done, lease), daemon=True)
    keeper.start()
    away = ""
    try:
        carry_out(home, jobs, job)
    except Lost:
        return
    except Cancelled as error:
        _cancelled(jobs, job, str(error))
    except Unavailable as error:  # not what was asked is wrong: it is taken up again
        away = said(home, job, str(error))
    except Error as error:
        _failed(jobs, job, said(home, job, str(error)))
    except Exception as error:
        _failed(jobs, job, said(home, job, f"a fault of ours, {type(error).__name__}: {error}"))
    finally:
        done.set()
        keeper.join()
    if away:
        with suppress(Error):  # the database is still away: the claim runs out by itself
            jobs.let_go(job, error=one_line(away, limit=1000))


def _failed(jobs: Jobs, job: JobRow, error: str) -> None:
    with suppress(Error):  # it is another worker's, or the database is away: the claim runs out
        jobs.settle(job, "failed", error=one_line(error, limit=1000))
        if job.confirmed_by is None:  # else it may have been paid for
            drop_upload(job)


def _cancelled(jobs: Jobs, job: JobRow, reason: str) -> None:
    """What was uploaded for it goes with it."""
    with suppress(Error):
        jobs.settle(job, "cancelled", error=reason)
        drop_upload(job)


def _keep(jobs: Jobs, job: JobRow, done: Event, lease: float) -> None:
    """Renew a claim. A worker that lost it stops at once, before it does anything twice."""
    while not done.wait(lease / 3):
        try:
            jobs.renew(job, lease=lease)
        except Lost:
            if not done.is_set() and multiprocessing.parent_process() is not None:
                os._exit(LOST)
            return
        except Error:  # a database that is away
            continue


class Crew:
    """Worker processes that are there as long as the service is."""

    def __init__(self, root: Path, count: int, *, lease: float = LEASE) -> None:
        self._root, self._count, self._lease = root, count, lease
        self._ended = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._pipes: dict[int, Connection] = {}
        self._claims: dict[int, ctypes.Array[Any]] = {}
        self.processes: dict[int, multiprocessing.process.BaseProcess] = {}

    def start(self) -> None:
        """Start them, and start one anew whenever one has ended."""
        for number in range(self._count):
            self._start(number)
        self._thread.start()

    def stop(self) -> None:
        """End them all; what they were at is given back, for whoever comes next."""
        self._ended.set()
        self._thread.join()
        for each in self._pipes.values():
            each.close()
        for number, process in self.processes.items():
            process.join(2)
            slow = process.is_alive()
            if slow:
                process.kill()
                process.join()
            if slow or process.exitcode in _ASKED:
                self._give_back(number)

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            for number, process in list(self.processes.items()):
                if not process.is_alive():
                    self._pipes[number].close()
                    if process.exitcode in _ASKED:
                        self._give_back(number)
                    self._start(number)

    def _give_back(self, number: int) -> None:
        """What a worker was at that is no more, and ended because it was asked to."""
        id, _, attempt = bytes(self._claims[number].value).decode().partition(" ")
        if attempt:
            with suppress(Error):  # the database is away: the claim runs out
                home = Workspace.open(self._root)
                Jobs(prepared(home)).give_back(id, int(attempt))

    def _start(self, number: int) -> None:
        ours, theirs = _SPAWN.Pipe()
        claim = _SPAWN.RawArray(ctypes.c_char, _CLAIM)
        process = _SPAWN.Process(target=_serve, args=(self._root, theirs, claim, self._lease))
        process.daemon = True
        process.start()
        theirs.close()
        self._pipes[number], self._claims[number], self.processes[number] = ours, claim, process


def _serve(root: Path, pipe: Connection, claim: "ctypes.Array[Any]", lease: float) -> None:
    """The life of a worker; the end of the pipe is the end of the service."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = Event()

    def listen() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        ended.set()
        if not Event().wait(1.0):
            os._exit(0)

    def claimed(job: JobRow) -> None:
        claim.value = f"{job.id} {job.attempt}".encode()

    Thread(target=listen, daemon=True).start()
    work(root, ended, lease=lease, claimed=claimed)
