"""How hard credentials are: figures of a public estimator, and the counts behind them by enumeration."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from zktrace.credentials import DEFAULT, by_name
from zktrace.credentials.hardness import Instance
from zktrace.credentials.params import PAPER, names
from zktrace.errors import InputError

SPEC = (Path(__file__).parents[2] / "docs" / "spec" / "credentials.md").read_text()

# PyPI cryptographic-estimators 2.1.1, SDProblem(n, k, w): log2 of bit operations, its own number of solutions
ESTIMATOR = {
    (1024, 512, 128): (127.858, 109.321),
    (1280, 640, 132): (170.384, 151.138),
    (2048, 1024, 160): (199.113, 177.930),
    (512, 256, 57): (85.945, 71.641),
}


def instance(length: int, secret: int, weight: int) -> Instance:
    return Instance(length=length, secret=secret, weight=weight)


@pytest.mark.parametrize("shape", ESTIMATOR, ids=str)
def test_a_public_estimator_says_the_same(shape: tuple[int, int, int]) -> None:
    prange, stern = ESTIMATOR[shape]
    found = instance(*shape)
    assert found.prange == pytest.approx(prange, abs=0.5)
    assert found.stern.bits == pytest.approx(stern, abs=0.5)


def test_the_papers_set_has_many_witnesses() -> None:
    found = instance(PAPER.length, PAPER.secret, PAPER.weight)
    assert found.log2_witnesses == pytest.approx(39.88, abs=0.005)
    assert found.distance == 115 < PAPER.weight
    assert found.stern_one_solution.bits == pytest.approx(149.201, abs=0.5)
    assert found.stern_one_solution.bits - found.stern.bits == pytest.approx(found.log2_witnesses)
    # what a refusal says to a person
    assert f"about 2^{found.log2_witnesses:.0f} witnesses" in PAPER.weakness
    assert f"about 2^{found.stern.bits:.0f} bit operations" in PAPER.weakness


def test_a_witness_of_the_default_set_is_alone() -> None:
    found = instance(DEFAULT.length, DEFAULT.secret, DEFAULT.weight)
    assert found.log2_witnesses < -30
    assert found.weight < found.distance == 143
    assert found.stern.bits > 150
    assert found.stern.bits == pytest.approx(found.stern_one_solution.bits, abs=1e-6)


@pytest.mark.parametrize(("length", "secret"), [(64, 32), (128, 64), (100, 37), (1280, 640)])
def test_the_distance_is_the_last_that_the_sum_leaves_room_for(length: int, secret: int) -> None:
    found = instance(length, secret, 1).distance
    balls = [sum(math.comb(length, i) for i in range(d)) for d in (found, found + 1)]
    assert balls[0] <= 2 ** (length - secret) < balls[1]


def test_the_number_of_witnesses_is_what_random_codes_show() -> None:
    """Weight-4 words in random cosets of random [16, 8] codes: C(16, 4) / 2^8 on average."""
    random = np.random.default_rng(5)
    errors = np.array([sum(1 << i for i in c) for c in itertools.combinations(range(16), 4)])
    masks = random.integers(0, 1 << 16, (400, 8))  # rows of parity checks
    wanted = random.integers(0, 2, (400, 8, 1))
    parity = np.bitwise_count(masks[:, :, None] & errors) & 1
    counts = (parity == wanted).all(axis=1).sum(axis=1)
    expected = 2 ** instance(16, 8, 4).log2_witnesses
    assert expected == pytest.approx(1820 / 256)
    assert abs(counts.mean() - expected) < 4 * counts.std() / 20


@pytest.mark.parametrize(("errors", "window"), [(0, 0), (1, 0), (1, 2), (2, 1)])
def test_iterations_are_counted_by_enumeration(errors: int, window: int) -> None:
    """Positions 0..2 and 3..5 are the halves of the information set, then comes the window."""
    n, k, w = 14, 6, 5
    hits = sum(
        sum(i < 3 for i in e) == sum(3 <= i < 6 for i in e) == errors
        and not any(6 <= i < 6 + window for i in e)
        for e in itertools.combinations(range(n), w)
    )
    listed = math.comb(3, errors)
    elimination = min((r * r + 2**r + max(0, n - k - r)) * math.ceil(n / r) for r in range(1, 9))
    iteration = n * (elimination + 2 * listed + listed**2 / 2**window)
    work = math.comb(n, w) / hits * iteration
    assert instance(n, k, w).stern_bits(errors, window, 0) == pytest.approx(math.log2(work))


@pytest.mark.parametrize("shape", [(1280, 640, 132), (256, 128, 28), (48, 20, 9)], ids=str)
def test_no_parameters_do_better_than_the_best(shape: tuple[int, int, int]) -> None:
    found = instance(*shape)
    n, k, w = shape
    grid = {
        found.stern_bits(p, l, found.solutions)
        for p in range(min(12, w // 2, k // 2) + 1)
        for l in range(min(90, n - k - w + 2 * p) + 1)
    }
    assert found.stern.bits == min(grid)


@pytest.mark.parametrize(
    "shape",
    [(0, 0, 1), (10, 10, 1), (10, 0, 1), (10, 5, 0), (10, 5, 6), (10, 8, 3), (1 << 17, 5, 1)],
    ids=str,
)
def test_what_is_no_instance_is_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(InputError):
        instance(*shape)


def test_the_smallest_and_the_largest_instances_have_figures() -> None:
    for found in (instance(2, 1, 1), instance(64, 1, 1), instance(1 << 16, 1 << 15, 7000)):
        assert math.isfinite(found.prange)
        assert math.isfinite(found.stern.bits)


def cells(line: str) -> list[str]:
    return [cell.strip(" `") for cell in line.strip("|\n").split("|")]


def test_the_specification_lists_every_set_as_it_is() -> None:
    rows = [cells(line) for line in re.findall(r"^\| `.*-.*` \| \d+ \|.*$", SPEC, re.MULTILINE)]
    listed = [
        (p.name, str(p.length), str(p.secret), str(p.weight), str(p.rounds), p.standing.value)
        for p in map(by_name, names())
    ]
    assert [tuple(row[:6]) for row in rows] == listed


def test_the_specification_prints_the_calculators_figures() -> None:
    rows = [cells(line) for line in re.findall(r"^\| \d+, \d+, \d+ \|.*$", SPEC, re.MULTILINE)]
    assert len(rows) == 2
    for shape, witnesses, distance, *work, _ in rows:
        found = instance(*map(int, shape.split(", ")))
        assert float(witnesses.removeprefix("2^")) == math.ceil(10 * found.log2_witnesses) / 10
        assert int(distance) == found.distance
        bits = (found.prange, found.stern.bits, found.stern_one_solution.bits)
        assert [float(each) for each in work] == [math.floor(10 * each) / 10 for each in bits]
