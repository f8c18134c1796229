"""Score stability against every possible flip of small codes and random flips of long ones."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zktrace.certificates.stability import (
    bad_fraction,
    distilled_flip_bound,
    flip_weights,
    measured_flips,
    most_flips,
    moved_flips,
    probe_residuals,
    score_interval,
    set_loss,
    small_margins,
    survival,
    worst_loss,
)
from zktrace.errors import InputError

seeds = st.integers(0, 2**32)


def code(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A row, a word, and biases that are multiples of 2^-32."""
    rng = np.random.default_rng(seed)
    p = np.floor(np.sin(rng.uniform(0.05, math.pi / 2 - 0.05, n)) ** 2 * 2**32) / 2**32
    row = rng.random(n) < p
    return row, rng.random(n) < 0.5, p


def increments(row: np.ndarray, word: np.ndarray, p: np.ndarray) -> list[Fraction]:
    """U of `eq:U-def` position by position, at 60 digits."""
    with mpmath.workdps(60):
        terms = []
        for x, y, bias in zip(row, word, p, strict=True):
            exact = mpmath.mpf(float(bias))
            terms.append((2 * int(y) - 1) * (int(x) - exact) / mpmath.sqrt(exact * (1 - exact)))
        return [Fraction(mpmath.nstr(term, 55)) for term in terms]


def exact_score(row: np.ndarray, word: np.ndarray, p: np.ndarray) -> Fraction:
    return sum(increments(row, word, p), Fraction(0))


@given(seeds, st.integers(1, 60))
def test_the_score_interval_holds_the_score(seed: int, n: int) -> None:
    row, word, p = code(seed, n)
    low, high = score_interval(row, word, p)
    assert low <= exact_score(row, word, p) <= high
    assert high - low < 1e-11 * n


@given(seeds, st.integers(1, 60))
def test_a_weight_is_what_one_flip_moves(seed: int, n: int) -> None:
    row, word, p = code(seed, n)
    for weight, term in zip(flip_weights(row, p), increments(row, word, p), strict=True):
        assert 2 * abs(term) <= Fraction(weight) <= 2 * abs(term) * (1 + Fraction(1, 10**13))


@settings(max_examples=30)
@given(seeds, st.integers(1, 8))
def test_no_choice_of_flips_loses_more(seed: int, n: int) -> None:
    """Every subset of the positions of a short code."""
    row, word, p = code(seed, n)
    terms, weights = increments(row, word, p), flip_weights(row, p)
    for k in range(n + 1):
        for chosen in combinations(range(n), k):
            change = abs(2 * sum((terms[b] for b in chosen), Fraction(0)))
            assert change <= Fraction(set_loss(weights, np.isin(np.arange(n), chosen)))
            assert change <= Fraction(worst_loss(weights, k))


@given(seeds, st.integers(1, 9), st.data())
def test_the_worst_loss_is_reached_by_the_accused_own_word(seed: int, n: int, data: st.DataObject) -> None:
    """With y = X every flip takes its whole weight away, so A(k) cannot be improved."""
    row, _, p = code(seed, n)
    k = data.draw(st.integers(0, n))
    weights = flip_weights(row, p)
    flipped = row.copy()
    flipped[np.argsort(weights)[n - k :]] ^= True
    loss = exact_score(row, row, p) - exact_score(row, flipped, p)
    assert float(loss) == pytest.approx(worst_loss(weights, k), rel=1e-12, abs=1e-12)


@given(seeds, st.integers(0, 400))
def test_a_certified_score_survives_random_flips(seed: int, k: int) -> None:
    row, word, p = code(seed, 400)
    rng = np.random.default_rng(seed + 1)
    word = np.where(rng.random(400) < 0.9, row, word)
    found = survival(row=row, word=word, biases=p, threshold=60.0, changed=k)
    flipped = word.copy()
    flipped[rng.choice(400, k, replace=False)] ^= True
    after = score_interval(row, flipped, p)[1]
    assert after >= found.score - found.loss
    assert not found.survives or after > 60.0
    assert found.survives == (found.margin > 0)
    assert found.changed == k


def test_a_mask_is_sharper_than_its_size() -> None:
    row, _, p = code(1, 300)
    mask = np.arange(300) % 10 == 0
    by_mask = survival(row=row, word=row, biases=p, threshold=10, changed=mask)
    by_count = survival(row=row, word=row, biases=p, threshold=10, changed=30)
    assert by_mask.changed == by_count.changed == 30
    assert by_mask.loss < by_count.loss


def test_nothing_changes_nothing_lost() -> None:
    row, word, p = code(2, 50)
    found = survival(row=row, word=word, biases=p, threshold=-1e6, changed=0)
    assert found.loss == 0.0
    assert found.survives
    assert set_loss(flip_weights(row, p), np.zeros(50, dtype=bool)) == 0.0


def test_perfect_negation_reverses_the_score() -> None:
    """`lem:tamper-feature`: Y = 1 - X gives minus the sum of |X - p|/sqrt(p(1 - p))."""
    row, _, p = code(3, 200)
    low, high = score_interval(row, ~row, p)
    assert low <= -flip_weights(row, p).sum() / 2 <= high or high == pytest.approx(
        -flip_weights(row, p).sum() / 2
    )


@given(seeds, st.integers(1, 60), st.integers(0, 12))
def test_stored_coefficients_instead_of_the_papers(seed: int, n: int, bits: int) -> None:
    """Coefficients rounded to multiples of 2^-bits are dyadic, so fractions give the score itself."""
    row, word, p = code(seed, n)
    weights = np.rint(2.0**bits / np.sqrt(p * (1 - p))) / 2**bits
    terms = [
        (2 * int(y) - 1) * Fraction(w) * (int(x) - Fraction(b))
        for x, y, w, b in zip(row, word, weights, p, strict=True)
    ]
    low, high = score_interval(row, word, p, weights)
    assert Fraction(low) <= sum(terms) <= Fraction(high)
    for flip, term in zip(flip_weights(row, p, weights), terms, strict=True):
        assert 2 * abs(term) <= Fraction(flip) <= 2 * abs(term) * (1 + Fraction(1, 10**13))
    found = survival(row=row, word=word, biases=p, threshold=0.0, changed=n, weights=weights)
    assert Fraction(found.score) <= sum(terms)
    assert Fraction(found.loss) >= 2 * sum(abs(term) for term in terms)


# ── probes ──


def probes(seed: int, n: int = 60, width: int = 16, noise: float = 0.3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    teacher = rng.standard_normal((n, width))
    student = teacher + noise * rng.standard_normal((n, width)) * rng.random((n, 1))
    unit = rng.standard_normal((n, width))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return teacher, student, (unit * teacher).sum(axis=1), (unit * student).sum(axis=1)


@given(seeds, st.floats(0.01, 1.5), st.floats(0.05, 2))
def test_decoded_bits_change_only_where_allowed(seed: int, noise: float, mu: float) -> None:
    teacher, student, before, after = probes(seed, noise=noise)
    residuals = probe_residuals(teacher, student)
    changed = (before > 0) != (after > 0)
    allowed = measured_flips(margins=before, residuals=residuals)
    assert not (changed & ~allowed).any()
    most = most_flips(margins=before, residuals=residuals, mu=mu)
    assert changed.sum() <= most <= 60
    assert allowed.sum() <= most


@given(seeds, st.floats(0.01, 1.5), st.floats(0.05, 2))
def test_distilled_disagreement_stays_below_its_bound(seed: int, noise: float, mu: float) -> None:
    teacher, student, before, after = probes(seed, noise=noise)
    row = np.random.default_rng(seed + 1).random(60) < 0.5
    row = np.where(np.abs(before) > 0.2, before > 0, row)
    bad = bad_fraction(row=row, margins=before, mu=mu)
    bound = distilled_flip_bound(bad=bad, residuals=probe_residuals(teacher, student), mu=mu)
    assert ((after > 0) != row).mean() <= bound <= 1


def test_the_most_flips_of_a_worked_example() -> None:
    margins, residuals = np.array([0.5, -2.0, 3.0, 0.0]), np.array([0.1, 2.0, 1.0, 0.0])
    assert small_margins(margins, 1).tolist() == [True, False, False, True]
    assert most_flips(margins=margins, residuals=residuals, mu=1) == 4  # 2 + floor(5.01), capped
    assert most_flips(margins=margins, residuals=residuals, mu=2) == 3  # 2 + floor(5.01 / 4)
    assert measured_flips(margins=margins, residuals=residuals).tolist() == [False, True, False, True]
    assert bad_fraction(row=np.array([1, 1, 1, 0]), margins=margins, mu=1) == Fraction(3, 4)
    assert distilled_flip_bound(bad=0.25, residuals=residuals, mu=5) == pytest.approx(0.25 + 5.01 / 4 / 25)
    assert distilled_flip_bound(bad=0.25, residuals=residuals, mu=0.1) == 1.0


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_weights_that_move_little_keep_the_signs_of_large_projections(seed: int) -> None:
    """`lem:flip`, with the worst change there is: straight against one direction."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(40, 12))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    gamma, length = rng.normal(size=12), float(rng.uniform(0, 2))
    before = directions @ gamma
    allowed = moved_flips(projections=before, moved=length)
    assert allowed.tolist() == [abs(each) <= length for each in before.tolist()]
    for number, direction in enumerate(directions):
        against = -np.sign(before[number]) * length * (1 - 1e-9) * direction
        changed = (directions @ (gamma + against) > 0) != (before > 0)
        assert not (changed & ~allowed).any()
        assert changed[number] == (abs(before[number]) < length * (1 - 1e-9))


def test_a_margin_equal_to_mu_is_large_enough() -> None:
    assert small_margins(np.array([0.1, -0.1, math.nextafter(0.1, 0)]), 0.1).tolist() == [False, False, True]


def test_residuals_are_norms_rounded_up() -> None:
    residuals = probe_residuals([[0.0, 0.0], [1.0, 1.0]], [[3.0, 4.0], [1.0, 1.0]])
    assert residuals[0] >= 5.0
    assert residuals.tolist() == pytest.approx([5.0, 0.0])


# ── refusals ──

HALF = np.full(4, 0.5)
ROW = np.array([0, 1, 1, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: flip_weights(ROW, np.array([0.5, 0.5, 1.0, 0.5])),
        lambda: flip_weights(ROW, np.array([0.5, 0.5, 0.0, 0.5])),
        lambda: flip_weights(ROW, np.array([0.5, 0.5, math.nan, 0.5])),
        lambda: flip_weights(ROW, HALF[:3]),
        lambda: flip_weights(ROW, HALF.reshape(2, 2)),
        lambda: flip_weights(ROW, np.array(["a", "b", "c", "d"])),
        lambda: flip_weights(np.array([0, 1, 2, 0]), HALF),
        lambda: flip_weights(np.array([0.0, 1.0, 1.0, 0.0]), HALF),
        lambda: flip_weights(np.array([], dtype=int), np.array([])),
        lambda: score_interval(ROW, ROW[:3], HALF),
        lambda: score_interval(ROW, ROW, HALF, np.ones(3)),
        lambda: score_interval(ROW, ROW, HALF, -np.ones(4)),
        lambda: score_interval(ROW, ROW, HALF, np.full(4, 1e300)),
        lambda: score_interval(ROW, ROW, HALF, np.full(4, 1e-300)),
        lambda: worst_loss(np.ones(4), 5),
        lambda: worst_loss(np.ones(4), -1),
        lambda: worst_loss(-np.ones(4), 1),
        lambda: set_loss(np.ones(4), np.array([0, 1, 1, 0])),
        lambda: set_loss(np.ones(4), np.array([True])),
        lambda: survival(row=ROW, word=ROW, biases=HALF, threshold=math.inf, changed=1),
        lambda: survival(row=ROW, word=ROW, biases=HALF, threshold=1.0, changed=9),
        lambda: survival(row=ROW, word=ROW, biases=HALF, threshold=1.0, changed=True),
        lambda: small_margins(np.ones(4), 0),
        lambda: most_flips(margins=np.ones(4), residuals=np.ones(3), mu=1),
        lambda: measured_flips(margins=np.ones(4), residuals=-np.ones(4)),
        lambda: measured_flips(margins=np.full(4, math.inf), residuals=np.ones(4)),
        lambda: bad_fraction(row=ROW, margins=np.ones(3), mu=1),
        lambda: distilled_flip_bound(bad=1.5, residuals=np.ones(3), mu=1),
        lambda: probe_residuals(np.ones((2, 3)), np.ones((3, 2))),
        lambda: probe_residuals(np.ones(3), np.ones(3)),
        lambda: probe_residuals(np.full((2, 2), math.nan), np.ones((2, 2))),
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
