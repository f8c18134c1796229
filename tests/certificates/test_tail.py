"""Tail certificates against enumeration, exact rational convolution, Monte Carlo, mpmath."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from zktrace.certificates import tail as tail_module
from zktrace.certificates.certificate import Certificate, certify, check, smallest_threshold, tail_bound
from zktrace.certificates.intervals import upper_float
from zktrace.certificates.law import InnocentLaw
from zktrace.certificates.lengths import bernstein_threshold, candidate_threshold
from zktrace.certificates.tail import convolved
from zktrace.codes import Biases, Code, CodeKey, Coefficients, quantise, soft, sums, symmetric, unpack
from zktrace.codes.strategies import linear_channel
from zktrace.errors import InputError, InvalidCertificate

ONE = 1 << 32


def code(length: int, colluders: int, seed: int = 0) -> Code:
    key = CodeKey.generate(entropy=np.random.default_rng(seed).bytes)
    return Code(key=key, label="test", length=length, colluders=colluders)


def biases_of(thresholds: list[int], colluders: int = 2) -> Biases:
    return Biases(thresholds=np.array(thresholds, dtype=np.uint32), colluders=colluders)


def exact_law(coefficients: Coefficients) -> dict[int, Fraction]:
    """L -> probability, by convolving exact rationals one position after the other."""
    law = {0: Fraction(1)}
    for c, t in zip(coefficients.numerators.tolist(), coefficients.biases.thresholds.tolist(), strict=True):
        after: dict[int, Fraction] = {}
        for value, chance in law.items():
            after[value] = after.get(value, Fraction(0)) + chance * (1 - Fraction(t, ONE))
            after[value + c] = after.get(value + c, Fraction(0)) + chance * Fraction(t, ONE)
        law = after
    return law


def exact_tail(coefficients: Coefficients, law: dict[int, Fraction], threshold: Fraction) -> Fraction:
    """P[S > threshold] from the definition of S."""
    return sum((p for value, p in law.items() if coefficients.score(value) > threshold), Fraction(0))


def enumerated_tail(coefficients: Coefficients, threshold: Fraction) -> float:
    """P[S > threshold] over all 2^n rows."""
    n = len(coefficients.numerators)
    rows = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    p = coefficients.biases.probabilities()
    chances = np.where(rows == 1, p, 1 - p).prod(axis=1)
    return float(
        chances[
            rows @ coefficients.numerators > InnocentLaw(coefficients=coefficients).greatest_sum(threshold)
        ].sum()
    )


@pytest.mark.parametrize("length", [1, 5, 12, 20])
def test_the_convolved_tail_is_the_enumerated_tail(length: int) -> None:
    random = np.random.default_rng(length)
    biases = code(length, 2, seed=length).biases
    for coefficients in (
        symmetric(random.integers(0, 2, length), biases),
        quantise(random.normal(size=length), biases),
    ):
        law = InnocentLaw(coefficients=coefficients)
        spread = math.sqrt(float(coefficients.variance()))
        for deviations in (0.5, 1.5, 2.5, 4.0):
            z = Fraction(deviations * spread)
            truth = enumerated_tail(coefficients, z)
            bound = upper_float(tail_bound(coefficients, z).exp()) if truth else 0.0
            assert bound >= truth * (1 - 1e-12)
            if law.tilt_at(z) * law.jumps.max() < 20:  # not at the very end of the range
                assert bound <= truth * 1.001 + 1e-300


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(-600, 600), st.integers(ONE // 599, ONE - ONE // 599)), min_size=1, max_size=14
    ),
    st.floats(-1, 30),
)
def test_never_below_the_true_tail(positions: list[tuple[int, int]], z: float) -> None:
    biases = biases_of([t for _, t in positions])
    coefficients = Coefficients(numerators=np.array([c for c, _ in positions]), scale_bits=8, biases=biases)
    truth = exact_tail(coefficients, exact_law(coefficients), Fraction(z))
    for method in ("exact", "chernoff"):
        log_bound = tail_bound(coefficients, Fraction(z), method=method)
        if truth:
            assert upper_float(log_bound) >= math.log(truth) - 1e-9


@pytest.mark.parametrize("level", [0.3, 1e-3, 1e-9, 1e-40])
def test_the_smallest_threshold_is_the_smallest(level: float) -> None:
    """Against the exact law in rationals: it passes, and one lattice step less would be too much."""
    random = np.random.default_rng(3)
    coefficients = symmetric(random.integers(0, 2, 40), code(40, 2).biases, scale_bits=2)
    law = exact_law(coefficients)
    certificate = smallest_threshold(coefficients, recipients=7, level=level)
    assert certificate.passes
    assert 7 * exact_tail(coefficients, law, certificate.threshold) <= certificate.level
    below = certificate.threshold - Fraction(1, 4)
    assert 7 * exact_tail(coefficients, law, below) > certificate.level * Fraction(999_999, 1_000_000)
    check(certificate, coefficients)


@pytest.mark.parametrize("scale_bits", [9, 12, 17])
def test_a_finer_scale_is_rounded_up_to_a_lattice_and_stays_a_bound(scale_bits: int) -> None:
    random = np.random.default_rng(4)
    word, biases = random.integers(0, 2, 512), code(512, 2).biases
    coarse = smallest_threshold(symmetric(word, biases), recipients=10, level=5e-4)
    coefficients = symmetric(word, biases, scale_bits=scale_bits)
    law = InnocentLaw(coefficients=coefficients)
    fine = smallest_threshold(coefficients, recipients=10, level=5e-4)
    tail = convolved(law, float.fromhex(fine.tilt))
    assert (tail.step > 1) == (scale_bits > 9)
    assert float(coarse.threshold) * 0.999 < float(fine.threshold) < float(coarse.threshold) * 1.02
    check(fine, coefficients)


def test_the_window_and_the_lattice_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow window (much foreign mass) and a coarse lattice give larger bounds, never smaller ones."""
    coefficients = symmetric(np.random.default_rng(5).integers(0, 2, 60), code(60, 2).biases, scale_bits=3)
    law = exact_law(coefficients)
    z = Fraction(25)
    truth = float(exact_tail(coefficients, law, z))
    sharp = upper_float(tail_bound(coefficients, z).exp())
    assert truth <= sharp <= truth * 1.0001
    monkeypatch.setattr(tail_module, "_FADE", 4.0)
    narrow = upper_float(tail_bound(coefficients, z).exp())
    monkeypatch.setattr(tail_module, "_LARGEST_WINDOW", 16)
    coarse = upper_float(tail_bound(coefficients, z).exp())
    assert sharp < narrow < coarse


def chernoff_by_mpmath(coefficients: Coefficients, threshold: Fraction, tilt: float) -> tuple[float, float]:
    """The exponent again with mpmath's intervals, from the formula of the paper in units of the score."""
    iv = mpmath.iv
    before = iv.prec
    iv.prec = 120
    try:
        a = iv.mpf(tilt) * 2**coefficients.scale_bits
        total = iv.mpf(0)
        pairs = zip(coefficients.numerators.tolist(), coefficients.biases.thresholds.tolist(), strict=True)
        for c, t in pairs:
            p = iv.mpf(t) / ONE
            u = iv.mpf(c) / 2**coefficients.scale_bits
            total += iv.log((1 - p) * iv.exp(-a * u * p) + p * iv.exp(a * u * (1 - p)))
        z = iv.mpf(threshold.numerator) / threshold.denominator
        exponent = a * z - total
        return float(exponent.a), float(exponent.b)
    finally:
        iv.prec = before


@pytest.mark.parametrize("length", [64, 512])
def test_a_second_implementation_agrees_on_chernoff(length: int) -> None:
    random = np.random.default_rng(length)
    biases = code(length, 2).biases
    for coefficients in (
        symmetric(random.integers(0, 2, length), biases),
        soft(random.normal(size=length), biases),
    ):
        certificate = smallest_threshold(coefficients, recipients=10, level=1e-3, method="chernoff")
        low, high = chernoff_by_mpmath(coefficients, certificate.threshold, float.fromhex(certificate.tilt))
        assert low <= float(certificate.exponent[1]) + 1e-15 * high
        assert high >= float(certificate.exponent[0]) - 1e-15 * high
        assert high - low < 1e-9


def test_the_order_of_the_thresholds_is_that_of_their_strength() -> None:
    """n = 512, N = 10, two tails of 10^-3: exact < Chernoff, and the paper's candidate is 100.7."""
    word = np.random.default_rng(0).integers(0, 2, 512)
    coefficients = symmetric(word, code(512, 2).biases)
    exact = smallest_threshold(coefficients, recipients=10, level=5e-4)
    chernoff = smallest_threshold(coefficients, recipients=10, level=5e-4, method="chernoff")
    candidate = candidate_threshold(length=512, recipients=10, level=1e-3, tails=2)
    bernstein = bernstein_threshold(design=2, length=512, recipients=10, level=5e-4)
    assert candidate == pytest.approx(100.7, abs=0.05)
    assert 80 < exact.threshold < candidate
    assert exact.threshold < chernoff.threshold < bernstein


@settings(max_examples=25)
@given(st.integers(1, 10**6), st.floats(1e-12, 0.5), st.sampled_from(["exact", "chernoff"]))
def test_thresholds_are_monotone_and_idempotent(recipients: int, level: float, method: str) -> None:
    coefficients = symmetric(np.random.default_rng(1).integers(0, 2, 64), code(64, 2).biases)

    def at(n: int, eps: float) -> Certificate:
        return smallest_threshold(coefficients, recipients=n, level=eps, method=method)

    one = at(recipients, level)
    assert one == at(recipients, level)
    assert one.passes
    assert at(recipients * 2, level).threshold >= one.threshold
    assert at(recipients, level / 2).threshold >= one.threshold
    again = certify(coefficients, one.threshold, recipients=recipients, level=level, method=method)
    assert again.passes
    lower = one.threshold - Fraction(1, 16)
    assert not certify(coefficients, lower, recipients=recipients, level=level, method=method).passes


# --- Monte Carlo -------------------------------------------------------------------------------------


def innocent_sums(
    coefficients: Coefficients, p: NDArray[np.float64], count: int, seed: int
) -> NDArray[np.int64]:
    """L of `count` innocent rows drawn with probabilities p."""
    random = np.random.default_rng(seed)
    blocks = [random.random((20_000, len(p))) < p for _ in range(count // 20_000)]
    return np.concatenate([sums(np.packbits(block, axis=1), coefficients) for block in blocks]).astype(
        np.int64
    )


def exceeds_interval(hits: int, rows: int, bound: float) -> bool:
    """Whether so many hits are too many for a probability of `bound`, at 99.9 %."""
    return hits > stats.binom.ppf(0.999, rows, bound)


READOUTS: dict[str, Callable[[NDArray[np.float64], Biases], Coefficients]] = {
    "hard": lambda values, biases: symmetric((values > 0).astype(np.int64), biases),
    "soft": soft,
}


@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("size", range(1, 9))
def test_innocents_exceed_no_more_often_than_certified(readout: str, size: int) -> None:
    random = np.random.default_rng(size)
    own = code(128, 2, seed=size)
    values = linear_channel(unpack(own.rows(range(size)), 128), 0.3, random)
    coefficients = READOUTS[readout](values, own.biases)
    drawn = innocent_sums(coefficients, own.biases.probabilities(), 200_000, seed=size)
    law = InnocentLaw(coefficients=coefficients)
    for level in (0.05, 0.005, 0.0005):
        for method in ("exact", "chernoff"):
            z = smallest_threshold(coefficients, recipients=1, level=level, method=method).threshold
            hits = int((drawn > law.greatest_sum(z)).sum())
            assert not exceeds_interval(hits, len(drawn), level)
            if method == "exact":  # and it is no looser than its lattice
                assert hits > 0.8 * stats.binom.ppf(0.001, len(drawn), level)


def test_the_monte_carlo_test_would_notice_a_bias_that_is_off_by_one_percent() -> None:
    """Planted: rows drawn with every bias moved 1 % of the way towards what the readout favours."""
    own = code(2048, 3, seed=1)
    coefficients = symmetric(np.random.default_rng(2).integers(0, 2, 2048), own.biases)
    p = own.biases.probabilities()
    wrong = p + 0.01 * np.where(coefficients.numerators > 0, 1 - p, -p)
    law = InnocentLaw(coefficients=coefficients)
    z = smallest_threshold(coefficients, recipients=1, level=0.05).threshold
    honest = innocent_sums(coefficients, p, 20_000, seed=3)
    planted = innocent_sums(coefficients, wrong, 20_000, seed=3)
    assert not exceeds_interval(int((honest > law.greatest_sum(z)).sum()), 20_000, 0.05)
    assert exceeds_interval(int((planted > law.greatest_sum(z)).sum()), 20_000, 0.05)


# --- records -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "chernoff"])
def test_a_certificate_is_checked_again_and_every_lie_is_noticed(method: str) -> None:
    random = np.random.default_rng(6)
    coefficients = symmetric(random.integers(0, 2, 64), code(64, 2).biases)
    other = symmetric(random.integers(0, 2, 64), code(64, 2).biases)
    good = smallest_threshold(coefficients, recipients=10, level=1e-3, method=method)
    check(good, coefficients)
    lies = [
        replace(good, recipients=11),
        replace(good, level=good.level / 2),
        replace(good, threshold=good.threshold - 1),
        replace(good, exponent=("50", "51")),
        replace(good, required="1"),
        replace(good, tilt="nonsense"),
        replace(good, tilt=(0.0).hex()),
        replace(good, tilt="inf"),
        replace(good, tilt="nan"),
        replace(good, tilt="-0x1p-5"),
        replace(good, law="00" * 32),
        replace(good, passes=False),
        replace(good, method="divine"),
        replace(good, method="chernoff" if method == "exact" else "exact"),
        replace(good, exponent=(good.exponent[0], "garbage")),
        replace(good, exponent=("NaN", "NaN")),
        replace(good, exponent=("-1e9", "1e-9")),
        replace(good, exponent=("1e99999999999999999999", "2")),
        replace(good, exponent=()),
        replace(good, exponent=(None, None)),
        replace(good, recipients=10.0),
        replace(good, recipients="10"),
        replace(good, recipients=10**2000),
        replace(good, level="0.001"),
        replace(good, threshold=float(good.threshold)),
        replace(good, threshold="9"),
        replace(good, threshold=Fraction(10**2000)),
        replace(good, threshold=None),
        replace(good, tilt="0x1p-300"),
        replace(good, tilt="0x1p+300"),
        replace(good, tilt=0.5),
    ]
    for lie in lies:
        with pytest.raises(InvalidCertificate):
            check(lie, coefficients)
    with pytest.raises(InvalidCertificate, match="other coefficients"):
        check(good, other)


def test_no_information_certifies_nothing_and_accuses_nobody() -> None:
    coefficients = quantise(np.zeros(64), code(64, 2).biases)
    for method in ("exact", "chernoff"):
        certificate = smallest_threshold(coefficients, recipients=10, level=1e-3, method=method)
        assert (certificate.threshold, certificate.passes) == (0, True)
        check(certificate, coefficients)
    assert InnocentLaw(coefficients=coefficients).greatest_sum(Fraction(0)) == 0


@pytest.mark.parametrize(
    ("recipients", "level"),
    [(0, 1e-3), (-1, 1e-3), (10, 0), (10, 1), (10, -1), (10, float("nan")), (10, 2.0)],
)
def test_impossible_requests_are_errors(recipients: int, level: float) -> None:
    coefficients = symmetric(np.zeros(64, dtype=int), code(64, 2).biases)
    with pytest.raises(InputError):
        smallest_threshold(coefficients, recipients=recipients, level=level)


def test_a_float_is_the_number_it_is() -> None:
    """One ulp below the exact threshold is below it: no rounding may lift it back."""
    coefficients = symmetric(np.ones(64, dtype=int), code(64, 2).biases)
    least = smallest_threshold(coefficients, recipients=1, level=0.05)
    above, below = float(least.threshold), math.nextafter(float(least.threshold), 0.0)
    while Fraction(above) < least.threshold:
        above = math.nextafter(above, math.inf)
    while Fraction(below) >= least.threshold:
        below = math.nextafter(below, 0.0)
    assert certify(coefficients, above, recipients=1, level=0.05).passes
    assert not certify(coefficients, below, recipients=1, level=0.05).passes
    for wrong in (math.nan, math.inf):
        with pytest.raises(InputError):
            certify(coefficients, wrong, recipients=1, level=0.05)


def test_thresholds_are_not_negative() -> None:
    coefficients = symmetric(np.ones(64, dtype=int), code(64, 2).biases)
    for method in ("exact", "chernoff"):
        certificate = smallest_threshold(coefficients, recipients=1, level=0.9, method=method)
        assert certificate.threshold >= 0
        check(certificate, coefficients)


@pytest.mark.parametrize(("length", "colluders"), [(512, 2), (2048, 3)])
@pytest.mark.parametrize("level", [5e-4, 1e-9, 1e-15])
def test_the_bound_is_sharp_where_it_decides(length: int, colluders: int, level: float) -> None:
    """Against the whole law, convolved in float64 without a tilt or a window (relative error 1e-12)."""
    own = code(length, colluders)
    coefficients = symmetric(unpack(own.rows([0]), length)[0], own.biases, scale_bits=3)
    law = InnocentLaw(coefficients=coefficients)
    whole = np.ones(1)
    for jump, odds in zip(law.jumps.tolist(), law.odds.tolist(), strict=True):
        longer = np.zeros(len(whole) + jump)
        longer[: len(whole)] = whole * (1 - odds / ONE)
        longer[jump:] += whole * (odds / ONE)
        whole = longer
    least = smallest_threshold(coefficients, recipients=10, level=level)
    beyond = law.greatest_sum(least.threshold) + 1 - law.floor
    truth = float(whole[beyond:].sum())
    bound = math.exp(-float(least.exponent[0]))
    assert truth * (1 - 1e-9) <= bound <= truth * 1.001
    assert 10 * whole[beyond - 1 :].sum() > level * 0.999


def test_a_level_beyond_the_range_of_the_score_is_met_above_all_scores() -> None:
    """P[L = max] is above the level: the threshold is the maximum itself, which nobody exceeds."""
    coefficients = symmetric(np.ones(5, dtype=int), code(5, 2).biases)
    certificate = smallest_threshold(coefficients, recipients=1, level=1e-60)
    top = coefficients.score(int(coefficients.numerators.sum()))
    assert certificate.threshold == top
    assert certificate.passes
    assert certificate.exponent[0] == "Infinity"
    check(certificate, coefficients)


def test_equal_jumps_are_convolved_in_the_order_of_the_code() -> None:
    """Sums of floats depend on their order: a sort that is free to swap equals gives other last digits."""
    rng = np.random.default_rng(7)
    jumps = rng.integers(1, 9, 512)
    leap = rng.uniform(0.1, 0.9, 512)
    found = tail_module._convolve(jumps, 1.0 - leap, leap, 64)
    wanted = np.zeros(64)
    wanted[0] = 1.0
    for at in sorted(range(512), key=lambda each: int(jumps[each])):  # Python's sort is stable
        wanted = wanted * (1.0 - leap[at]) + np.roll(wanted * leap[at], jumps[at])
    assert np.array_equal(found, wanted)
