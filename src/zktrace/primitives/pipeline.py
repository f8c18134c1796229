"""Work on one piece after the other by a few threads, its results in their order.

numpy, ciphers, hashes and files let go of the interpreter while they work, so threads are enough.
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


def ahead(items: Iterator[T], count: int) -> Iterator[T]:
    """The same items, made by a thread of their own while those before are used; so many wait at most.

    Who stops early stops the thread too, after the item that it is at.
    """
    with ThreadPoolExecutor(1) as maker:
        waiting: deque[Future[list[T]]] = deque()

        def ask() -> None:
            waiting.append(maker.submit(lambda: list(islice(items, 1))))

        for _ in range(count):
            ask()
        try:
            while found := waiting.popleft().result():
                ask()
                yield from found
        finally:
            for each in waiting:
                each.cancel()
