"""The finite tracing guarantees: the paper's table, two slow references, and simulated attacks."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from zktrace.certificates.finite import (
    FiniteGuarantee,
    TracingCode,
    finite_guarantee,
    missed_coalition,
    soundness_threshold,
    threshold_at,
)
from zktrace.certificates.intervals import ball, dyadic, lower_float, upper_decimal, upper_float
from zktrace.certificates.moments import (
    Bias,
    Column,
    Method,
    coalition_mean,
    coalition_moment,
    coalition_slope,
    innocent_mean,
    innocent_slope,
)
from zktrace.certificates.search import search_threshold, search_tilt
from zktrace.errors import InputError
from zktrace.primitives.precision import precision

WEIGHT = TracingCode(design=2, length=512, bias_bits=None)
FEATURE = TracingCode(design=3, length=2048, bias_bits=None)
Row: TypeAlias = tuple[TracingCode, Fraction]
ROWS: list[Row] = [(WEIGHT, Fraction(4, 100)), (FEATURE, Fraction(15, 100))]


def stored(code: TracingCode, bits: int | None = 32) -> TracingCode:
    return TracingCode(design=code.design, length=code.length, bias_bits=bits)


def guarantee(code: TracingCode, flip: float | Fraction, **options: Any) -> FiniteGuarantee:
    return finite_guarantee(code=code, recipients=10, level=1e-3, flip=flip, **options)


# ── the table ──


@pytest.mark.parametrize(
    ("row", "threshold", "missed"),
    [(ROWS[0], "111.0004", "0.0096"), (ROWS[1], "214.9809", "0.00201")],
)
def test_the_papers_method_prints_the_papers_table(row: Row, threshold: str, missed: str) -> None:
    found = guarantee(*row, method="paper")
    assert f"{found.threshold:.4f}" == threshold
    assert upper_decimal(found.threshold, 7) == threshold
    digits = len(missed.split(".")[1].lstrip("0"))
    assert upper_decimal(found.missed_bound, digits) == missed
    assert f"{found.missed_bound:.{digits}g}" == missed


@pytest.mark.parametrize(
    ("row", "threshold", "missed"),
    [(ROWS[0], 109.4799, 0.004997), (ROWS[1], 206.6931, 9.0986e-5)],
)
@pytest.mark.parametrize("bits", [None, 32])
def test_the_tight_method_is_within_a_thousandth_of_quadrature(
    row: Row, threshold: float, missed: float, bits: int | None
) -> None:
    code, flip = row
    found = guarantee(stored(code, bits), flip, method="tight")
    assert found.threshold == pytest.approx(threshold, rel=1e-3)
    assert found.missed_bound == pytest.approx(missed, rel=1e-3)
    assert found.missed_bound == found.per_size[-1].bound
    assert [size.size for size in found.per_size] == list(range(1, code.design + 1))


@pytest.mark.parametrize("row", ROWS)
def test_the_panels_are_looser_than_the_integral(row: Row) -> None:
    tight, panels = guarantee(*row, method="tight"), guarantee(*row, method="paper")
    assert tight.threshold < panels.threshold
    assert all(a.log_bound < b.log_bound for a, b in zip(tight.per_size, panels.per_size, strict=True))


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("method", ["tight", "paper"])
def test_storing_biases_costs_less_than_a_ten_thousandth(row: Row, method: Method) -> None:
    code, flip = row
    free, held = guarantee(code, flip, method=method), guarantee(stored(code), flip, method=method)
    assert free.threshold < held.threshold < free.threshold * (1 + 1e-4)
    assert free.missed_bound < held.missed_bound < free.missed_bound * (1 + 1e-4)


def test_a_guarantee_can_be_checked_from_its_own_fields() -> None:
    found = guarantee(stored(WEIGHT), 0.04)
    again = threshold_at(found.a, code=found.code, recipients=10, level=found.level)
    assert again.value == found.threshold
    for size in found.per_size:
        assert size == missed_coalition(
            size.t, size=size.size, threshold=found.threshold, flip=found.flip, code=found.code
        )


# ── slow references ──


def arcsine_mean(f: Callable[[Any], Any], cut: Fraction, breaks: Sequence[float] = ()) -> Any:
    """E f(p) straight from `def:overlay`, not rigorous, at 30 digits."""
    with mpmath.workdps(30):
        low = mpmath.mpf(cut.numerator) / cut.denominator
        norm = mpmath.pi - 4 * mpmath.asin(mpmath.sqrt(low))
        points = [low, 4 * low, 16 * low, 0.25, 0.5, 0.75, 1 - 16 * low, 1 - 4 * low, 1 - low, *breaks]
        return mpmath.quad(lambda p: f(p) / (norm * mpmath.sqrt(p * (1 - p))), sorted(points))


def innocent_reference(a: float, v: int, p: float) -> Any:
    up = mpmath.sqrt((1 - p) / p)
    return (1 - p) * mpmath.exp(-a * (2 * v - 1) / up) + p * mpmath.exp(a * (2 * v - 1) * up)


def coalition_reference(t: float, q: float, s: int, k: int, v: int, p: float) -> Any:
    score = (k - s * p) / mpmath.sqrt(p * (1 - p)) * (2 * v - 1)
    return p**k * (1 - p) ** (s - k) * ((1 - q) * mpmath.exp(-t * score) + q * mpmath.exp(t * score))


@pytest.mark.parametrize(("code", "a"), [(WEIGHT, 0.15), (FEATURE, 0.08), (FEATURE, 0.5)])
def test_innocent_mean_against_quadrature(code: TracingCode, a: float) -> None:
    reference = arcsine_mean(
        lambda p: max(innocent_reference(mpmath.mpf(a), 0, p), innocent_reference(mpmath.mpf(a), 1, p)),
        code.cutoff,
    )
    found = innocent_mean(a, code=code)
    assert float(found.rad()) < 1e-15
    assert abs(float(found) / float(reference) - 1) < 1e-12
    panels = innocent_mean(a, code=code, method="paper")
    assert lower_float(panels) < float(reference) < upper_float(panels)


@pytest.mark.parametrize(
    ("code", "size", "t", "flip"),
    [(WEIGHT, 1, 0.4, 0.04), (WEIGHT, 2, 0.1, 0.04), (FEATURE, 3, 0.06, 0.15), (FEATURE, 3, 0.6, 0.02)],
)
def test_coalition_mean_against_quadrature(code: TracingCode, size: int, t: float, flip: float) -> None:
    total = mpmath.mpf(0)
    for k in range(size + 1):
        outputs = [1] if k == size else [0] if k == 0 else [0, 1]
        total += math.comb(size, k) * max(
            arcsine_mean(
                lambda p, k=k, v=v: coalition_reference(mpmath.mpf(t), flip, size, k, v, p), code.cutoff
            )
            for v in outputs
        )
    found = coalition_mean(t, size=size, flip=flip, code=code)
    assert abs(float(found) / float(total) - 1) < 1e-12
    panels = coalition_mean(t, size=size, flip=flip, code=code, method="paper")
    assert lower_float(panels) < float(total) < upper_float(panels)


def test_panels_against_another_interval_library() -> None:
    """mpmath.iv, one panel at a time, in the paper's own words: (x - p)/sqrt(p(1 - p)) on 4096 panels."""
    iv = mpmath.iv
    before, iv.dps = iv.dps, 30
    try:
        a = iv.mpf(0.0834497)
        first = mpmath.mpf(float(mpmath.asin(mpmath.sqrt(mpmath.mpf(1) / 900))))
        step = (mpmath.pi / 2 - 2 * first) / 4096
        total = iv.mpf(0)
        for i in range(4096):
            p = iv.sin(iv.mpf([first + step * i, first + step * (i + 1)])) ** 2
            zero, one = -p / iv.sqrt(p * (1 - p)), (1 - p) / iv.sqrt(p * (1 - p))
            moments = [(1 - p) * iv.exp(w * zero) + p * iv.exp(w * one) for w in (a, -a)]
            total += max(moment.b for moment in moments) / 4096
    finally:
        iv.dps = before
    assert upper_float(innocent_mean(0.0834497, code=FEATURE, method="paper")) == pytest.approx(
        float(total.b), rel=1e-10
    )


@given(st.floats(1e-3, 2), st.floats(1e-3, 1 - 1e-3))
def test_the_likelier_accusing_output_is_the_rarer_symbol(a: float, p: float) -> None:
    zero, one = (float(innocent_reference(mpmath.mpf(a), v, mpmath.mpf(p))) for v in (0, 1))
    assert (one - zero) * (0.5 - p) >= -1e-12 * max(one, zero)


# ── stored biases ──


def point(p: float) -> Bias[arb]:
    with precision(80):
        value = dyadic(p)
        return Bias(value, 1 - value, (value * (1 - value)).sqrt())


biases = st.floats(1 / 600, 1 - 1 / 600)


@given(st.floats(1e-3, 1), st.sampled_from([-1, 1]), biases)
def test_innocent_slope_bounds_both_terms(a: float, sign: int, p: float) -> None:
    def missing(u: Any) -> Any:
        return mpmath.log(1 - u) - sign * a * mpmath.sqrt(u / (1 - u))

    def present(u: Any) -> Any:
        return mpmath.log(u) + sign * a * mpmath.sqrt((1 - u) / u)

    slope = float(innocent_slope(dyadic(a), point(p), arb(0)))
    assert max(abs(mpmath.diff(term, p)) for term in (missing, present)) <= slope * (1 + 1e-6)


def test_innocent_slope_is_sharp_at_the_cutoff() -> None:
    p, a = 1 / 600, 0.15
    steepest = 1 / p + a / 2 * p**-1.5 * (1 - p) ** -0.5
    assert float(innocent_slope(dyadic(a), point(p), arb(0))) == pytest.approx(steepest, rel=0.01)


@given(st.floats(1e-3, 1), st.integers(0, 1), st.integers(0, 3), st.integers(0, 1), biases, st.floats(-1, 1))
def test_coalition_slope_bounds_what_a_moved_bias_does(
    t: float, output: int, ones: int, flip: int, p: float, move: float
) -> None:
    """With flip 0 or 1 one of the two terms stands alone."""
    h = 2.0**-14
    moved = min(max(p + h * move, 1 / 600), 1 - 1 / 600)
    column, reach = Column(3, ones, output), h / (1 - 600 * h) ** 3
    here, there = (
        float(coalition_moment(dyadic(t), ball(flip), column, point(u), arb(0))) for u in (p, moved)
    )
    assert there <= here * math.exp(reach * float(coalition_slope(dyadic(t), column, point(p), arb(0)))) * (
        1 + 1e-12
    )


def test_coalition_slope_is_reached() -> None:
    """A column of ones read as one: p^3 e^(-3t√((1-p)/p)), whose slope is the bound itself."""
    t, p = 0.3, 0.01
    column, h = Column(3, 3, 1), 1e-7
    here, there = (
        float(coalition_moment(dyadic(t), ball(0), column, point(u), arb(0)).log()) for u in (p, p + h)
    )
    assert (there - here) / h == pytest.approx(
        float(coalition_slope(dyadic(t), column, point(p), arb(0))), rel=1e-4
    )


@pytest.mark.parametrize("bits", [12, 14])
def test_the_reach_is_used_up_by_biases_that_all_move_one_way(bits: int) -> None:
    """A lone leaker: (1 - p)e^(-t√(p/(1-p))) grows as fast as allowed when every bias falls by 2^-bits."""
    t, h, cut = 0.4, 2.0**-bits, 1 / 600

    def zeros(p: Any) -> Any:
        fallen = max(p - h, cut)
        return 2 * (1 - fallen) * mpmath.exp(-t * mpmath.sqrt(fallen / (1 - fallen)))

    moved = float(arcsine_mean(zeros, Fraction(1, 600), breaks=[cut + h]))
    still = upper_float(coalition_mean(t, size=1, flip=0, code=WEIGHT))
    bound = upper_float(coalition_mean(t, size=1, flip=0, code=stored(WEIGHT, bits)))
    assert still < moved <= bound
    assert bound - still < 2.5 * (moved - still)


def stored_law(design: int, bits: int, rounding: str) -> tuple[np.ndarray, np.ndarray]:
    """Every stored bias and its exact probability: the arcsine law, rounded and clipped into the cutoff."""
    grid, cut = 1 << bits, 1 / (300 * design)
    least, most = math.ceil(cut * grid), math.floor((1 - cut) * grid)
    integers = np.arange(least, most + 1)
    shift = 0.5 if rounding == "nearest" else 0.0
    edges = np.clip((np.append(integers, most + 1) - shift) / grid, cut, 1 - cut)
    edges[0], edges[-1] = cut, 1 - cut  # clipped mass stays at the ends
    angle = np.arcsin(np.sqrt(edges))
    return integers / grid, np.diff(angle) / (angle[-1] - angle[0])


@pytest.mark.parametrize("rounding", ["nearest", "down"])
@pytest.mark.parametrize("bits", [11, 13, 16])
def test_the_bound_holds_for_the_stored_law(bits: int, rounding: str) -> None:
    p, chance = stored_law(2, bits, rounding)
    assert chance.sum() == pytest.approx(1)
    code = TracingCode(design=2, length=512, bias_bits=bits)
    up = np.sqrt((1 - p) / p)
    for a in (0.05, 0.15, 0.6):
        moments = [(1 - p) * np.exp(-w / up) + p * np.exp(w * up) for w in (a, -a)]
        assert chance @ np.maximum(*moments) <= upper_float(innocent_mean(a, code=code))
    for t, flip in ((0.1, 0.04), (0.4, 0.2)):
        total = 0.0
        for k, outputs in ((0, [0]), (1, [0, 1]), (2, [1])):
            score = (k - 2 * p) / np.sqrt(p * (1 - p))
            column = p**k * (1 - p) ** (2 - k)
            total += math.comb(2, k) * max(
                chance @ (column * ((1 - flip) * np.exp(-w * score) + flip * np.exp(w * score)))
                for w in (t * (2 * v - 1) for v in outputs)
            )
        assert total <= upper_float(coalition_mean(t, size=2, flip=flip, code=code))


def test_a_finer_grid_costs_less() -> None:
    costs = [upper_float(innocent_mean(0.15, code=stored(WEIGHT, bits))) for bits in (12, 16, 24, 32)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] > upper_float(innocent_mean(0.15, code=WEIGHT))


# ── stored coefficients ──


def fine_law(design: int) -> tuple[np.ndarray, np.ndarray]:
    """A hundred thousand midpoints of the angle: the continuous law for all that matters here."""
    first = math.asin(math.sqrt(1 / (300 * design)))
    x = (np.arange(100_000) + 0.5) / 100_000
    return np.sin(first + (math.pi / 2 - 2 * first) * x) ** 2, np.full(100_000, 1e-5)


@pytest.mark.parametrize("bits", [0, 3, 8])
def test_the_innocent_bound_holds_for_rounded_coefficients(bits: int) -> None:
    p, chance = fine_law(2)
    code = TracingCode(design=2, length=512, bias_bits=None, scale_bits=bits)
    exact = 1 / np.sqrt(p * (1 - p))
    rounded, worst = np.rint(exact * 2**bits) / 2**bits, exact + 2.0 ** -(bits + 1)
    for a in (0.05, 0.15, 0.6):
        bound = upper_float(innocent_mean(a, code=code))
        for weight in (rounded, worst):
            moments = [(1 - p) * np.exp(-a * c * p) + p * np.exp(a * c * (1 - p)) for c in (weight, -weight)]
            mean = chance @ np.maximum(*moments)
            assert mean <= bound * (1 + 1e-8)
        assert mean == pytest.approx(bound, rel=1e-3)  # the worst rounding uses the bound up


@pytest.mark.parametrize("bits", [0, 3, 8])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_coalition_bound_holds_for_rounded_coefficients(bits: int, size: int) -> None:
    """Whatever the rounding does within half a step: here it always helps the coalition."""
    p, chance = fine_law(3)
    code = TracingCode(design=3, length=512, bias_bits=None, scale_bits=bits)
    for t, flip in ((0.06, 0.15), (0.3, 0.0)):
        total = 0.0
        for k in range(size + 1):
            distance = k - size * p
            column = p**k * (1 - p) ** (size - k) * np.exp(t * 2.0 ** -(bits + 1) * np.abs(distance))
            up, down = (np.exp(sign * t * distance / np.sqrt(p * (1 - p))) for sign in (1, -1))
            said_one = chance @ (column * ((1 - flip) * down + flip * up))
            said_zero = chance @ (column * ((1 - flip) * up + flip * down))
            worst = said_one if k == size else said_zero if k == 0 else max(said_one, said_zero)
            total += math.comb(size, k) * worst
        assert total <= upper_float(coalition_mean(t, size=size, flip=flip, code=code)) * (1 + 1e-8)


@given(st.floats(0.01, 1), st.sampled_from([-1, 1]), st.floats(0.01, 0.5), biases)
def test_slopes_with_rounded_coefficients(t: float, sign: int, grain: float, p: float) -> None:
    """Logarithms of the terms, straight from the formulas, against the bounds on their derivatives."""

    def missing(u: Any) -> Any:
        return mpmath.log(1 - u) - sign * t * u * (1 / mpmath.sqrt(u * (1 - u)) + grain)

    def present(u: Any) -> Any:
        return mpmath.log(u) + sign * t * (1 - u) * (1 / mpmath.sqrt(u * (1 - u)) + grain)

    def column(u: Any) -> Any:
        score = (1 - 3 * u) / mpmath.sqrt(u * (1 - u))
        return mpmath.log(u * (1 - u) ** 2) - sign * t * score + t * grain * (1 - u + 2 * u)

    innocent = float(innocent_slope(dyadic(t), point(p), dyadic(grain)))
    coalition = float(coalition_slope(dyadic(t), Column(3, 1, 0), point(p), dyadic(grain)))
    assert max(abs(mpmath.diff(term, p)) for term in (missing, present)) <= innocent * (1 + 1e-6)
    assert abs(mpmath.diff(column, p)) <= coalition * (1 + 1e-6)


@pytest.mark.parametrize("row", ROWS)
def test_a_step_of_a_256th_costs_little(row: Row) -> None:
    code, flip = row
    plain = guarantee(code, flip)
    rounded = guarantee(TracingCode(design=code.design, length=code.length, scale_bits=8), flip)
    assert plain.threshold < rounded.threshold < plain.threshold * 1.001
    assert plain.missed_bound < rounded.missed_bound < plain.missed_bound * 1.35


# ── simulated attacks ──


def draw_biases(rng: np.random.Generator, shape: int | tuple[int, ...], design: int) -> np.ndarray:
    first = math.asin(math.sqrt(1 / (300 * design)))
    return np.sin(rng.uniform(first, math.pi / 2 - first, shape)) ** 2


STRATEGIES = {
    "majority": lambda ones, size, rng: 2 * ones + rng.integers(0, 2, ones.shape) > size,
    "minority": lambda ones, size, rng: 2 * ones + rng.integers(0, 2, ones.shape) <= size,
    "all ones": lambda ones, size, rng: ones > 0,
    "all zeros": lambda ones, size, rng: ones == size,
    "coin": lambda ones, size, rng: rng.integers(0, 2, ones.shape) == 1,
    "interleave": lambda ones, size, rng: rng.random(ones.shape) * size < ones,
}


def pirate_word(rows: np.ndarray, strategy: str, flip: float, rng: np.random.Generator) -> np.ndarray:
    """Marking: unanimous positions keep their bit; then independent residual flips."""
    size, ones = rows.shape[-2], rows.sum(axis=-2)
    word = np.where(ones == 0, False, np.where(ones == size, True, STRATEGIES[strategy](ones, size, rng)))
    return word ^ (rng.random(word.shape) < flip)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("size", "design"), [(1, 2), (2, 2), (3, 3)])
def test_no_strategy_beats_the_column_bound(strategy: str, size: int, design: int) -> None:
    rng = np.random.default_rng(20 + size)
    t, flip, trials = 0.12, 0.1, 200_000
    p = draw_biases(rng, trials, design)
    rows = rng.random((size, trials)) < p
    word = pirate_word(rows, strategy, flip, rng)
    score = np.where(word, 1, -1) * (rows - p).sum(axis=0) / np.sqrt(p * (1 - p))
    moment = np.exp(-t * score)
    code = TracingCode(design=design, length=1)
    bound = upper_float(coalition_mean(t, size=size, flip=flip, code=code))
    assert moment.mean() - 4 * moment.std() / math.sqrt(trials) <= bound


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_coalitions_are_missed_no_more_often_than_the_bound(strategy: str) -> None:
    rng = np.random.default_rng(7)
    code = TracingCode(design=2, length=220)
    found = finite_guarantee(code=code, recipients=5, level=0.1, flip=0.02)
    bound, trials = found.per_size[1].bound, 1500
    assert 0.001 < bound < 0.5
    p = draw_biases(rng, (trials, 1, code.length), 2)
    rows = rng.random((trials, 2, code.length)) < p
    word = pirate_word(rows, strategy, 0.02, rng)[:, None, :]
    scores = (np.where(word, 1, -1) * (rows - p) / np.sqrt(p * (1 - p))).sum(axis=2)
    missed = (scores.max(axis=1) <= found.threshold).mean()
    assert missed <= bound + 4 * math.sqrt(bound / trials)


def test_innocents_are_accused_no_more_often_than_the_level() -> None:
    """Even by a word that is chosen from the biases themselves: always the rarer symbol."""
    rng = np.random.default_rng(3)
    code, trials, innocents = TracingCode(design=2, length=60), 1500, 8
    found = soundness_threshold(code=code, recipients=innocents, level=0.3)
    p = draw_biases(rng, (trials, 1, code.length), 2)
    rows = rng.random((trials, innocents, code.length)) < p
    scores = (np.where(p <= 0.5, 1, -1) * (rows - p) / np.sqrt(p * (1 - p))).sum(axis=2)
    accused = (scores.max(axis=1) > found.value).mean()
    assert accused <= 0.3
    assert accused > 0  # the bound is not vacuous: such a word comes near it


# ── properties ──


@settings(max_examples=15)
@given(st.floats(0.01, 0.6))
def test_every_a_gives_a_threshold_above_the_best(a: float) -> None:
    best = soundness_threshold(code=WEIGHT, recipients=10, level=1e-3)
    assert threshold_at(a, code=WEIGHT, recipients=10, level=1e-3).value >= best.value * (1 - 1e-9)


@settings(max_examples=15)
@given(st.floats(0.01, 0.5))
def test_every_t_gives_a_bound_above_the_best(t: float) -> None:
    best = search_tilt(size=2, threshold=109.48, flip=Fraction(1, 25), code=WEIGHT)
    options = {"size": 2, "threshold": 109.48, "flip": 0.04, "code": WEIGHT}
    assert missed_coalition(t, **options).log_bound >= missed_coalition(best, **options).log_bound - 1e-9


def test_the_search_agrees_with_what_is_certified() -> None:
    a, searched = search_threshold(code=WEIGHT, recipients=10, level=Fraction(1, 1000))
    assert searched == pytest.approx(109.47990101333, abs=1e-9)
    assert threshold_at(a, code=WEIGHT, recipients=10, level=1e-3).value == pytest.approx(searched)


def test_the_threshold_satisfies_the_inequality_it_solves() -> None:
    found = soundness_threshold(code=WEIGHT, recipients=10, level=1e-3)
    with precision():
        mean = innocent_mean(found.a, code=WEIGHT)
        exponent = -dyadic(found.a) * dyadic(found.value) + 512 * mean.log()
        assert upper_float(10 * exponent.exp()) <= 1e-3 * (1 + 1e-14)


def test_more_recipients_and_smaller_levels_need_higher_thresholds() -> None:
    def threshold(recipients: int, level: float) -> float:
        return soundness_threshold(code=WEIGHT, recipients=recipients, level=level).value

    assert threshold(10, 1e-3) < threshold(100, 1e-3) < threshold(100, 1e-6)
    assert threshold(10, 1e-3) == pytest.approx(threshold(100, 1e-2))


def test_noise_and_short_codes_make_coalitions_harder_to_catch() -> None:
    def missed(length: int, flip: float) -> float:
        return guarantee(TracingCode(design=2, length=length), flip).missed_bound

    assert missed(800, 0.0) < missed(600, 0.0) < missed(600, 0.05) < missed(600, 0.1)


def test_a_channel_without_information_promises_nothing() -> None:
    found = guarantee(stored(WEIGHT), 0.5)
    assert found.missed_bound == 1.0


def test_bounds_too_small_for_a_float_keep_their_logarithm() -> None:
    found = guarantee(TracingCode(design=2, length=100_000), 0.0)
    assert found.missed_bound > 0
    assert found.per_size[0].log_bound < -100_000


# ── refusals ──


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipients": 0}, "recipients"),
        ({"level": 0}, r"\(0, 1\)"),
        ({"level": 1}, r"\(0, 1\)"),
        ({"level": math.nan}, "finite"),
        ({"flip": -0.1}, "flip rate"),
        ({"flip": 0.6}, "flip rate"),
        ({"method": "fast"}, "method"),
    ],
)
def test_refused_arguments(change: dict[str, Any], message: str) -> None:
    arguments = {"code": WEIGHT, "recipients": 10, "level": 1e-3, "flip": 0.04} | change
    with pytest.raises(InputError, match=message):
        finite_guarantee(**arguments)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"design": 1, "length": 512}, "coalition size of a code"),
        ({"design": 2, "length": 0}, "one position"),
        ({"design": 2, "length": 512, "bias_bits": 10}, "coarser"),
        ({"design": 2, "length": 512, "bias_bits": -3}, "coarser"),
        ({"design": 2, "length": 512, "scale_bits": -1}, "coefficients"),
        ({"design": 2, "length": 512, "scale_bits": 25}, "coefficients"),
    ],
)
def test_refused_codes(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TracingCode(**fields)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_refused_parameters(bad: float) -> None:
    with pytest.raises(InputError, match="positive"):
        innocent_mean(bad, code=WEIGHT)
    with pytest.raises(InputError, match="positive"):
        coalition_mean(bad, size=1, flip=0, code=WEIGHT)


@pytest.mark.parametrize("size", [0, 3])
def test_coalitions_outside_the_design_are_refused(size: int) -> None:
    with pytest.raises(InputError, match=r"outside 1\.\.2"):
        missed_coalition(0.1, size=size, threshold=100, flip=0.1, code=WEIGHT)


def test_a_threshold_must_be_finite() -> None:
    with pytest.raises(InputError, match="finite"):
        missed_coalition(0.1, size=1, threshold=math.inf, flip=0.1, code=WEIGHT)
