"""Results come in the order of their pieces, whatever takes how long, and errors come through."""

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zktrace.primitives.pipeline import THREADS, ahead, in_order


@given(st.lists(st.integers(0, 3), max_size=12))
@settings(max_examples=30, deadline=None)
def test_results_are_in_order(delays: list[int]) -> None:
    def work(piece: tuple[int, int]) -> int:
        time.sleep(piece[1] / 1000)
        return piece[0]

    assert list(in_order(work, enumerate(delays))) == list(range(len(delays)))


def test_no_more_pieces_are_asked_for_than_are_under_way() -> None:
    asked, given_back = 0, 0

    def pieces() -> Iterator[int]:
        nonlocal asked
        for each in range(20):
            asked += 1
            assert asked - given_back <= THREADS + 2
            yield each

    for _ in in_order(lambda each: each, pieces()):
        given_back += 1
    assert asked == given_back == 20


def test_an_error_in_a_piece_is_raised() -> None:
    def work(piece: int) -> int:
        return 1 // (3 - piece)

    with pytest.raises(ZeroDivisionError):
        list(in_order(work, range(6)))


def test_pieces_are_worked_on_elsewhere() -> None:
    assert threading.get_ident() not in set(in_order(lambda _piece: threading.get_ident(), range(4)))


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_items_that_are_made_ahead_are_the_same(items: list[int], count: int) -> None:
    assert list(ahead(iter(items), count)) == items


def test_so_many_items_are_made_ahead_and_no_more() -> None:
    made, used = 0, 0

    def items() -> Iterator[int]:
        nonlocal made
        for each in range(20):
            made += 1
            assert made - used <= 3 + 2  # three wait, one is used, one is asked for
            yield each

    for _ in ahead(items(), 3):
        used += 1
    assert made == used == 20


def test_an_error_of_an_item_comes_after_those_before_it() -> None:
    items = ahead((1 // (3 - each) for each in range(6)), 2)
    assert [next(items), next(items), next(items)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(items)


def test_who_stops_early_stops_the_thread() -> None:
    before, made = threading.active_count(), []
    items = ahead((made.append(each) or each for each in range(1000)), 2)  # type: ignore[func-returns-value]
    next(items)
    items.close()
    assert threading.active_count() == before
    assert len(made) < 10
