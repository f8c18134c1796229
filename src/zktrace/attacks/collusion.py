"""Several leakers who put their copies together."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.aggregation import fedavg

State = Mapping[str, NDArray[Any]]


def average(states: Sequence[State], *, weights: Sequence[float] | None = None) -> dict[str, NDArray[Any]]:
    """The mean of copies, running statistics included, in their own types; a counter is one copy's."""
    if len(states) < 2:
        raise InputError(f"{len(states)} copies: a coalition has at least two")
    return fedavg(states, [1.0] * len(states) if weights is None else list(weights))
