"""Work on one piece after the other by a few threads, its results in their order.

numpy and ciphers let go of the interpreter while they work, so threads are enough.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS: Final = 2  # at most


def in_order(work: Callable[[T], R], pieces: Iterable[T]) -> Iterator[R]:
    """`work` of every piece, in their order; no more are under way than there are threads, and one."""
    threads = min(THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else THREADS)
    coming = iter(pieces)
    first = list(islice(coming, 2))
    if len(first) < 2:  # one piece, or none: nothing to be done beside it
        yield from map(work, first)
        return
    coming = chain(first, coming)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque(pool.submit(work, each) for each in islice(coming, threads + 1))
        while waiting:
            done = waiting.popleft().result()
            waiting.extend(pool.submit(work, each) for each in islice(coming, 1))
            yield done
