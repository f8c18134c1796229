"""Assignments have the greatest total."""

from itertools import permutations

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.readouts.assignment import assign


@pytest.mark.parametrize("seed", range(40))
def test_no_other_assignment_is_worth_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    worth = rng.standard_normal((size, size)) if seed % 2 else rng.integers(-2, 3, (size, size)).astype(float)
    found = assign(worth)
    best = max(sum(worth[i, j] for i, j in enumerate(other)) for other in permutations(range(size)))
    assert sorted(found) == list(range(size))
    assert worth[np.arange(size), found].sum() == pytest.approx(best)


@pytest.mark.parametrize("size", [50, 160])
def test_totals_are_those_of_scipy(size: int) -> None:
    solve = pytest.importorskip("scipy.optimize").linear_sum_assignment
    worth = np.random.default_rng(size).standard_normal((size, size))
    rows, columns = solve(worth, maximize=True)
    assert worth[np.arange(size), assign(worth)].sum() == pytest.approx(worth[rows, columns].sum())


def test_nothing_is_assigned_to_nothing_and_nonsense_is_refused() -> None:
    assert assign(np.zeros((0, 0))).shape == (0,)
    assert sorted(assign(np.zeros((5, 5)))) == list(range(5))
    for bad in (np.zeros((2, 3)), np.zeros(4), np.full((2, 2), np.nan)):
        with pytest.raises(InputError, match="square"):
            assign(bad)
