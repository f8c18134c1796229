"""Torch's threads: one, where a seed must have one outcome."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def one_thread() -> None:
    """Torch with one thread from now on: what a worker process is prepared with."""
    torch.set_num_threads(1)


@contextmanager
def single_threaded() -> Iterator[None]:
    """Torch with one thread inside the block: sums have one order, so a seed has one outcome."""
    before = torch.get_num_threads()
    one_thread()
    try:
        yield
    finally:
        torch.set_num_threads(before)
