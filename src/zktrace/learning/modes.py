"""Training and evaluation mode: batch statistics of the batch, or those that were learnt."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Training or evaluation mode inside, the former mode afterwards."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)
