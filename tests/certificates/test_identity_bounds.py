"""Identity survival: the sphere law, the survival table, and attribution by codeword separation."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats

from zktrace.certificates.identity import (
    attribution_error_bound,
    best_envelope,
    bit_recovery,
    cross_norm_bound,
    envelope,
    gram_deviation_floor,
    load,
    near_collision_bound,
    normal_cdf,
    normal_gap,
    quadrature_accuracy,
    quadrature_snr,
    radius_check,
    rank_reference,
    sphere_cdf,
)
from zktrace.certificates.intervals import dyadic, exact, lower_float, upper_float
from zktrace.errors import InputError
from zktrace.primitives.precision import precision

# ── the sphere law ──


@pytest.mark.parametrize("omega", [2, 3, 10, 4800])
@pytest.mark.parametrize("x", [-3.0, -1.25, -0.001, 0.0, 0.5, 1.0, 1.3])
def test_sphere_cdf_against_scipy(x: float, omega: int) -> None:
    square = min(1.0, x * x / omega)
    expected = 0.5 + math.copysign(0.5, x) * special.betainc(0.5, (omega - 1) / 2, square)
    assert float(sphere_cdf(x, omega)) == pytest.approx(expected, rel=1e-10, abs=1e-15)


def test_sphere_cdf_in_three_dimensions_is_uniform() -> None:
    """Archimedes: a coordinate on the sphere in R^3 is uniform on [-1, 1]."""
    with precision():
        assert sphere_cdf(Fraction(3, 2), 3).overlaps((1 + arb(3).sqrt() / 2) / 2)


def test_sphere_cdf_against_sampled_vectors() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((40_000, 25))
    first = 5 * vectors[:, 0] / np.linalg.norm(vectors, axis=1)
    for x in (-1.5, -0.3, 0.4, 1.0, 2.2):
        chance = float(sphere_cdf(x, 25))
        assert (first <= x).mean() == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 40_000))


def test_sphere_cdf_against_the_density() -> None:
    def density(u: Any) -> Any:
        return (1 - u * u) ** (mpmath.mpf(37) / 2)

    share = mpmath.quad(density, [-1, 1 / mpmath.sqrt(40)]) / mpmath.quad(density, [-1, 1])
    assert float(sphere_cdf(1, 40)) == pytest.approx(float(share), rel=1e-12)


@given(st.floats(-80, 80), st.integers(2, 6000))
def test_sphere_cdf_is_symmetric_and_a_probability(x: float, omega: int) -> None:
    here, there = sphere_cdf(x, omega), sphere_cdf(-x, omega)
    with precision():
        assert (here + there).overlaps(arb(1))
    assert 0 <= lower_float(here) <= upper_float(here) <= 1 or upper_float(here) - 1 < 1e-15


@given(st.floats(-6, 6), st.integers(5, 10_000))
def test_the_normal_law_is_within_its_gap(x: float, omega: int) -> None:
    difference = abs(float(sphere_cdf(x, omega)) - stats.norm.cdf(x))
    assert difference <= float(normal_gap(omega)) + 1e-12


def test_sphere_cdf_beyond_the_sphere() -> None:
    assert sphere_cdf(70, 4800) == 1
    assert sphere_cdf(-70, 4800) == 0


@given(st.floats(-8, 8))
def test_normal_cdf(x: float) -> None:
    with precision():
        assert float(normal_cdf(dyadic(x))) == pytest.approx(stats.norm.cdf(x), rel=1e-11)


def test_normal_gap_of_the_deployed_carrier() -> None:
    assert normal_gap(4800) == Fraction(8, 4796)


def test_bit_recovery_is_rounded_down_and_the_sphere_law_is_sharper() -> None:
    found = bit_recovery(weight=0.1, margin=1, cross_norm=5, omega=4800)
    s = 0.1 * math.sqrt(4800) / 5
    assert found.s == pytest.approx(s)
    assert found.sphere == pytest.approx(stats.norm.cdf(s), abs=1e-3)
    assert found.normal == pytest.approx(stats.norm.cdf(s) - 8 / 4796, rel=1e-12)
    assert found.normal < found.sphere


def test_bit_recovery_against_simulated_projections() -> None:
    """A margin λμ against a fixed cross-vector on random unit directions."""
    rng = np.random.default_rng(11)
    omega, share, mu = 60, 0.25, 1.0
    u = rng.standard_normal(omega) * 0.3
    directions = rng.standard_normal((40_000, omega))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    correct = (share * mu + directions @ u > 0).mean()
    found = bit_recovery(weight=share, margin=mu, cross_norm=float(np.linalg.norm(u)), omega=omega)
    assert correct == pytest.approx(found.sphere, abs=4 * math.sqrt(0.25 / 40_000))


def test_without_cross_talk_every_bit_is_right() -> None:
    assert bit_recovery(weight=0.1, margin=1, cross_norm=0, omega=4800).sphere == 1.0


@given(
    st.floats(0, 20),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 5)), min_size=1, max_size=8),
    st.integers(0, 2**32),
)
def test_cross_norm_bound_holds_for_any_updates(
    baseline: float, others: list[tuple[float, float]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    base = rng.standard_normal(12)
    base *= baseline / np.linalg.norm(base)
    u = np.zeros(12)
    for share, radius in others:
        step = rng.standard_normal(12)
        u += share * (base + step * radius / np.linalg.norm(step))
    weights, radii = zip(*others, strict=True)
    bound = cross_norm_bound(baseline=baseline, weights=weights, radii=radii)
    assert np.linalg.norm(u) <= bound + 1e-9


# ── the survival table ──


@pytest.mark.parametrize(
    ("baseline", "clients", "printed"),
    [
        *(
            (7.32, n, p)
            for n, p in zip((5, 10, 20, 40, 80, 120), (0.97, 0.83, 0.68, 0.59, 0.55, 0.53), strict=True)
        ),
        *((4.73, n, p) for n, p in zip((5, 10, 20, 40), (0.99, 0.90, 0.75, 0.64), strict=True)),
    ],
)
def test_survival_table(baseline: float, clients: int, printed: float) -> None:
    found = quadrature_accuracy(clients=clients, baseline=baseline, length=128, omega=4800)
    assert round(found, 2) == printed


@pytest.mark.parametrize(
    ("clients", "printed"), [(5, 0.13), (10, 0.27), (20, 0.53), (40, 1.07), (80, 2.13), (120, 3.20)]
)
def test_identity_load(clients: int, printed: float) -> None:
    assert round(float(load(clients=clients, length=128, omega=4800)), 2) == printed


def test_rank_reference() -> None:
    assert rank_reference(length=128, omega=4800) == Fraction(75, 2)


def test_quadrature_snr_is_the_formula() -> None:
    found = quadrature_snr(clients=10, baseline=7.32, length=128, omega=4800)
    assert found == pytest.approx(math.sqrt(4800) / math.sqrt(9 * (9 * 7.32**2 + 128)))


@pytest.mark.parametrize(("columns", "floor"), [(6, 0), (8, 0), (9, 1), (16, 1)])
def test_beyond_the_rank_the_gram_matrix_is_singular(columns: int, floor: int) -> None:
    rng = np.random.default_rng(columns)
    e = rng.standard_normal((8, columns))
    e /= np.linalg.norm(e, axis=0)
    deviation = np.linalg.norm(e.T @ e - np.eye(columns), 2)
    assert gram_deviation_floor(clients=columns, length=1, omega=8) == floor
    assert deviation >= floor - 1e-12


def test_two_identity_blocks_have_load_two_and_deviation_one() -> None:
    """The example after `lem:capacity`."""
    e = np.hstack([np.eye(5), np.eye(5)])
    assert np.linalg.norm(e.T @ e - np.eye(10), 2) == pytest.approx(1)
    assert load(clients=2, length=5, omega=5) == 2


# ── attribution ──


def slow_check(read: np.ndarray, known: np.ndarray) -> tuple[tuple[int, ...], int, tuple[int | None, ...]]:
    clients = range(len(known))
    distance = [[sum(int(a) != int(b) for a, b in zip(r, w, strict=True)) for w in known] for r in read]
    apart = min(
        sum(int(a) != int(b) for a, b in zip(known[i], known[j], strict=True))
        for i in clients
        for j in clients
        if i < j
    )
    named = []
    for row in distance:
        best = [j for j in clients if row[j] == min(row)]
        named.append(best[0] if len(best) == 1 else None)
    return tuple(distance[i][i] for i in clients), apart, tuple(named)


@given(
    st.tuples(st.integers(2, 6), st.integers(1, 24)).flatmap(
        lambda shape: st.tuples(*[hnp.arrays(np.uint8, shape, elements=st.integers(0, 1))] * 2)
    )
)
def test_radius_check_against_double_loops(words: tuple[np.ndarray, np.ndarray]) -> None:
    read, known = words
    found = radius_check(read, known)
    distances, apart, named = slow_check(read, known)
    assert (found.distances, found.min_distance, found.attributed) == (distances, apart, named)
    assert found.within == tuple(2 * d < apart for d in distances)


@given(st.integers(0, 2**32), st.integers(2, 8), st.integers(0, 30))
def test_within_the_radius_attribution_is_right(seed: int, clients: int, errors: int) -> None:
    rng = np.random.default_rng(seed)
    known = rng.integers(0, 2, (clients, 64))
    read = known.copy()
    for row in read:
        row[rng.choice(64, errors, replace=False)] ^= 1
    found = radius_check(read, known)
    assert all(
        named == i for i, (named, safe) in enumerate(zip(found.attributed, found.within, strict=True)) if safe
    )
    assert not found.holds or found.correct == clients


def test_a_tie_names_nobody() -> None:
    known = np.array([[0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    found = radius_check(np.array([[1, 1, 0, 0], [1, 1, 1, 1]], dtype=bool), known)
    assert found.attributed == (None, 1)
    assert found.within == (False, True)
    assert found.correct == 1
    assert not found.holds


def test_near_collisions_against_simulated_codebooks() -> None:
    rng = np.random.default_rng(2)
    clients, n, trials = 6, 40, 4000
    words = rng.integers(0, 2, (trials, clients, n), dtype=np.int16)
    weight = words.sum(axis=2)
    distance = weight[:, :, None] + weight[:, None, :] - 2 * words @ words.transpose(0, 2, 1)
    i, j = np.triu_indices(clients, 1)
    closest = distance[:, i, j].min(axis=1)
    for zeta in (0.15, 0.2, 0.25):
        bound = near_collision_bound(clients=clients, length=n, zeta=zeta)
        rate = (closest <= (0.5 - zeta) * n).mean()
        assert rate <= bound + 4 * math.sqrt(bound / trials)


def test_attribution_error_against_simulated_decoding() -> None:
    """Radius errors that depend on the whole codebook: bits flipped towards the nearest rival."""
    rng = np.random.default_rng(8)
    clients, n, trials, r = 4, 48, 1500, 0.125
    wrong = 0
    for _ in range(trials):
        known = rng.integers(0, 2, (clients, n))
        read = known.copy()
        for i in range(clients):
            rival = min((j for j in range(clients) if j != i), key=lambda j: (known[i] != known[j]).sum())
            read[i, np.flatnonzero(known[i] != known[rival])[: int(r * n)]] ^= 1
        wrong += radius_check(read, known).correct < clients
    bound = attribution_error_bound(clients=clients, length=n, radius=r, eta=0)
    assert bound < 1
    assert wrong / trials <= bound + 4 * math.sqrt(bound / trials)


def test_attribution_error_is_the_formula() -> None:
    found = attribution_error_bound(clients=10, length=128, radius=0.1, eta=0.01)
    assert found == pytest.approx(0.01 + 45 * math.exp(-2 * 128 * 0.3**2))
    assert attribution_error_bound(clients=10, length=8, radius=0.2, eta=0) == 1.0


def test_envelope_is_the_formula() -> None:
    found = envelope(clients=10, length=512, accuracy=0.96, slack=0.1)
    assert found.radius == pytest.approx(0.14)
    assert found.error == pytest.approx(10 * math.exp(-1024 * 0.01) + 45 * math.exp(-1024 * 0.22**2))


@given(st.floats(0.8, 1), st.integers(64, 4096), st.floats(0.001, 0.2))
def test_no_slack_beats_the_best_one_by_much(accuracy: float, length: int, slack: float) -> None:
    if 1 - exact(accuracy, "p") + exact(slack, "slack") >= Fraction(1, 4):  # as the envelope has it
        return
    best = best_envelope(clients=10, length=length, accuracy=accuracy)
    other = envelope(clients=10, length=length, accuracy=accuracy, slack=slack)
    assert best.error <= min(1.0, 2.5 * other.error) or best.error < 1e-300


def test_envelope_against_simulated_bits() -> None:
    rng = np.random.default_rng(4)
    clients, n, p, trials = 5, 200, 0.95, 300
    found = best_envelope(clients=clients, length=n, accuracy=p)
    assert found.error < 0.5
    wrong = 0
    for _ in range(trials):
        known = rng.integers(0, 2, (clients, n))
        wrong += radius_check(known ^ (rng.random(known.shape) > p), known).correct < clients
    assert wrong / trials <= found.error + 4 * math.sqrt(found.error / trials)


# ── refusals ──


@pytest.mark.parametrize(
    "call",
    [
        lambda: sphere_cdf(0.5, 1),
        lambda: sphere_cdf(math.nan, 10),
        lambda: normal_gap(4),
        lambda: bit_recovery(weight=0, margin=1, cross_norm=1, omega=10),
        lambda: bit_recovery(weight=0.1, margin=-1, cross_norm=1, omega=10),
        lambda: bit_recovery(weight=0.1, margin=1, cross_norm=-1, omega=10),
        lambda: cross_norm_bound(baseline=1, weights=[0.5], radii=[]),
        lambda: cross_norm_bound(baseline=-1, weights=[0.5], radii=[1]),
        lambda: quadrature_snr(clients=1, baseline=1, length=128, omega=4800),
        lambda: quadrature_snr(clients=2, baseline=math.inf, length=128, omega=4800),
        lambda: quadrature_snr(clients=2, baseline=1, length=128, omega=4800, margin=0),
        lambda: load(clients=0, length=128, omega=4800),
        lambda: rank_reference(length=0, omega=4800),
        lambda: near_collision_bound(clients=2, length=10, zeta=0.5),
        lambda: near_collision_bound(clients=1, length=10, zeta=0.1),
        lambda: attribution_error_bound(clients=3, length=10, radius=0.25, eta=0),
        lambda: attribution_error_bound(clients=3, length=10, radius=0.1, eta=2),
        lambda: envelope(clients=3, length=10, accuracy=0.9, slack=0.15),
        lambda: envelope(clients=3, length=10, accuracy=0.9, slack=0),
        lambda: best_envelope(clients=3, length=10, accuracy=0.75),
        lambda: radius_check(np.zeros((2, 4), dtype=int), np.zeros((3, 4), dtype=int)),
        lambda: radius_check(np.zeros((1, 4), dtype=int), np.zeros((1, 4), dtype=int)),
        lambda: radius_check(np.zeros(4, dtype=int), np.zeros(4, dtype=int)),
        lambda: radius_check(np.full((2, 4), 2), np.zeros((2, 4), dtype=int)),
        lambda: radius_check(np.zeros((2, 4)), np.zeros((2, 4), dtype=int)),
        lambda: radius_check(np.zeros((2, 0), dtype=int), np.zeros((2, 0), dtype=int)),
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
