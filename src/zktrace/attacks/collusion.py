"""Several leakers who put their copies together."""

from collections.abc import Sequence

from zktrace.errors import InputError
from zktrace.learning.aggregation import fedavg
from zktrace.learning.arrays import Arrays, State


def average(states: Sequence[Arrays], *, weights: Sequence[float] | None = None) -> State:
    """The mean of copies, running statistics included, in their own types; a counter is one copy's."""
    if len(states) < 2:
        raise InputError(f"{len(states)} copies: a coalition has at least two")
    return fedavg(states, [1.0] * len(states) if weights is None else list(weights))
