"""Numbers of a tensor a piece at a time are the numbers of the tensor."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zktrace.models import LazyTensor, ModelState
from zktrace.readouts.flow import Flow, every

PIECES = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def made_of(pieces: list[int]) -> tuple[ModelState, np.ndarray]:
    numbers = np.arange(sum(pieces), dtype=np.float32)

    def make() -> Iterator[np.ndarray]:
        at = 0
        for size in pieces:
            yield numbers[at : at + size]
            at += size

    return ModelState([LazyTensor(name="w", dtype="float32", shape=numbers.shape, make=make)]), numbers


@given(PIECES, st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_what_is_taken_goes_on_where_it_ended(pieces: list[int], counts: list[int]) -> None:
    state, numbers = made_of(pieces)
    flow, at = Flow(state, "w"), 0
    for count in counts:
        assert flow.take(count).tolist() == numbers[at : at + count].tolist()
        at += count


@given(PIECES, st.integers(1, 50), st.integers(1, 200))
def test_every_so_many_are_those_of_the_whole(pieces: list[int], stride: int, size: int) -> None:
    state, numbers = made_of(pieces)
    size = min(size, len(numbers))
    assert every(state, "w", stride, size=size).tolist() == numbers[:size:stride].tolist()
    assert every({"w": numbers}, "w", stride, size=size).tolist() == numbers[:size:stride].tolist()
