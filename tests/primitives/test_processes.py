"""Worker processes: who does what, what a death costs, and that nobody is left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from zktrace.errors import WorkerDied
from zktrace.primitives.processes import _uninterrupted, processors, workers


def square(value: int) -> int:
    return value * value


def whoami(value: int) -> int:
    return os.getpid()


def sometimes(value: int) -> object:
    if value == 1:
        raise ValueError("one is bad")
    if value == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return (lambda: None) if value == 3 else value


def forever(value: int) -> int:
    time.sleep(600)
    return value


def test_every_item_is_done_once() -> None:
    with workers(2) as pool:
        assert sorted(pool.work(square, range(5))) == [(value, value * value) for value in range(5)]
        assert list(pool.work(square, [])) == []
        assert list(pool.work(square, [7])) == [(7, 49)]


def test_an_item_goes_to_its_own_worker_and_workers_stay() -> None:
    with workers(2) as pool:
        first = dict(pool.work(whoami, range(4), worker_of=lambda value: value))
        again = dict(pool.work(whoami, range(4), worker_of=lambda value: value))
    assert first == again
    assert first[0] == first[2] != first[1] == first[3]


def test_a_lane_stays_with_whoever_took_it() -> None:
    with workers(2) as pool:
        lanes = [[10 * lane + place for place in range(3)] for lane in range(5)]
        done = list(pool.lanes(whoami, lanes))
    assert sorted(value for value, _ in done) == sorted(value for lane in lanes for value in lane)
    who = dict(done)
    assert all(len({who[value] for value in lane}) == 1 for lane in lanes)
    order = [value for value, _ in done]
    assert all(order.index(lane[0]) < order.index(lane[1]) < order.index(lane[2]) for lane in lanes)


def spared(value: int) -> int:
    return processors()


def test_a_worker_starts_no_workers() -> None:
    assert processors() >= 1
    with workers(1) as pool:
        assert list(pool.work(spared, [1])) == [(1, 0)]


def test_items_are_taken_only_when_a_worker_is_free() -> None:
    taken: list[int] = []

    def items() -> object:
        for value in range(10):
            taken.append(value)
            yield value

    with workers(1) as pool:
        done = pool.work(square, items())  # type: ignore[arg-type]
        assert next(done) == (0, 0)
        assert taken == [0, 1]
        done.close()


def test_a_failure_is_that_item_s_alone() -> None:
    with workers(1) as pool:
        found = dict(pool.work(sometimes, range(6)))
    assert (found[0], found[4], found[5]) == (0, 4, 5)
    assert isinstance(found[1], ValueError)
    assert isinstance(found[2], WorkerDied)
    assert isinstance(found[3], RuntimeError)
    assert "cannot be handed back" in str(found[3])


def test_who_stops_listening_ends_what_is_under_way() -> None:
    with workers(2) as pool:
        done = pool.work(forever, range(4))
        with pytest.raises(RuntimeError, match="enough"):
            _abandon(pool.work(square, [1, 2]))
        done.close()
        assert list(pool.work(square, [3])) == [(3, 9)]
    assert multiprocessing.active_children() == []


def _abandon(done: object) -> None:
    next(done)  # type: ignore[call-overload]
    raise RuntimeError("enough")


CHILD = """
import sys, time
from pathlib import Path
from primitives.test_processes import forever
from zktrace.primitives.processes import _uninterrupted, processors, workers
if __name__ == "__main__":
    with workers(2) as pool:
        Path(sys.argv[1]).touch()
        list(pool.work(forever, range(4)))
"""


def test_an_interrupt_leaves_no_process_and_no_word_of_a_worker(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(CHILD)
    child = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "begun")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeding,  # noqa: PLW1509
    )
    try:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        os.killpg(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
    assert said.count("Traceback") == 1  # the caller's own
    assert said.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        _await_the_end_of(child.pid)


def heeding() -> None:
    """As on a terminal, also where these tests run in a background that ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _await_the_end_of(group: int) -> None:
    """ProcessLookupError once nobody of the group is left; multiprocessing's own helper goes last."""
    for _ in range(600):
        os.killpg(group, 0)
        time.sleep(0.1)


def test_an_interruption_waits_until_a_process_has_started() -> None:
    """Also where another thread is there to be sent the signal, as those of a library are."""
    ended, reached = threading.Event(), []

    def block() -> None:
        with _uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(20):
                time.sleep(0.005)
            reached.append("the end")

    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            block()
    finally:
        ended.set()
        thread.join()
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interruption_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
