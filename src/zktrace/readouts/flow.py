"""The numbers of a tensor from front to end, a piece at a time: a model may be larger than memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.models import ModelState
from zktrace.readouts.matching import Matched
from zktrace.readouts.scales import Arrays


def runs(arrays: Arrays, name: str) -> Iterator[NDArray[Any]]:
    """Flat arrays in order; of a state, which may be mapped or made on demand, never the whole tensor."""
    if isinstance(arrays, ModelState):
        return arrays.tensor(name).runs()
    if isinstance(arrays, Matched):
        return arrays.runs(name)
    return iter((np.asarray(arrays[name]).reshape(-1),))


class Flow:
    """What is taken was not taken before."""

    def __init__(self, arrays: Arrays, name: str) -> None:
        self._runs = runs(arrays, name)
        self._rest: NDArray[Any] = np.empty(0, dtype=np.float32)

    def take(self, count: int) -> NDArray[Any]:
        """The next numbers; fewer at the end."""
        while len(self._rest) < count:
            more = next(self._runs, None)
            if more is None:
                break
            self._rest = np.concatenate((self._rest, more)) if len(self._rest) else more
        found, self._rest = self._rest[:count], self._rest[count:]
        return found


def every(arrays: Arrays, name: str, stride: int, *, size: int) -> NDArray[Any]:
    """Numbers 0, stride, 2 stride, ... of the first `size` of a tensor."""
    found, begin = [], 0
    for run in runs(arrays, name):
        end = min(begin + len(run), size)
        found.append(run[-begin % stride : max(end - begin, 0) : stride].copy())
        begin += len(run)
        if begin >= size:
            break
    return np.concatenate(found)
