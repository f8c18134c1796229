"""The four verdicts, their precedence and their level; stages; the simulated linear channel."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from zktrace.carriers.split import tail_share
from zktrace.certificates.adjudicate import CarrierScores, Verdict, adjudicate, joined
from zktrace.certificates.certificate import check, smallest_threshold
from zktrace.certificates.law import InnocentLaw
from zktrace.certificates.lengths import candidate_threshold
from zktrace.certificates.stages import Source, Staged, investigate
from zktrace.codes import Biases, Code, CodeKey, Coefficients, quantise, soft, sums, symmetric, unpack
from zktrace.codes.blind import blind
from zktrace.codes.strategies import linear_channel, minority
from zktrace.errors import InputError

N = 10


def code(seed: int, *, length: int = 512, colluders: int = 2, label: str = "weight") -> Code:
    key = CodeKey.generate(entropy=np.random.default_rng(seed).bytes)
    return Code(key=key, label=label, length=length, colluders=colluders)


def reading(
    own: Code,
    word: NDArray[np.int64],
    *,
    count: int = N,
    carrier: str = "weight",
    share: Fraction = Fraction(1),
) -> CarrierScores:
    coefficients = symmetric(word, own.biases)
    return CarrierScores(
        carrier=carrier,
        coefficients=coefficients,
        sums=sums(own.rows(range(count)), coefficients),
        share=share,
    )


def least_sum(coefficients: Coefficients, score: Fraction | int) -> int:
    """The least L whose score is at least `score`."""
    return math.ceil(InnocentLaw(coefficients=coefficients).sum_at(Fraction(score)))


def row(own: Code, i: int) -> NDArray[np.int64]:
    return unpack(own.rows([i]), own.length)[0].astype(np.int64)


@pytest.mark.parametrize("rule", ["certified", "paper"])
def test_a_clean_copy_names_its_owner_and_nobody_else(rule: str) -> None:
    own = code(1)
    decision = adjudicate([reading(own, row(own, 3))], level=1e-3, rule=rule)
    assert decision.verdict == Verdict.ATTRIBUTE == "certified-attribute"
    assert [each.recipient for each in decision.named] == [3]
    assert decision.named[0].score > decision.named[0].threshold
    certificate = decision.named[0].certificate
    assert certificate is not None
    assert certificate.level == Fraction(1, 1000) * tail_share("positive", rule)
    check(certificate, reading(own, row(own, 3)).coefficients)


@pytest.mark.parametrize("rule", ["certified", "paper"])
def test_a_negated_copy_is_tampering(rule: str) -> None:
    own = code(1)
    decision = adjudicate([reading(own, 1 - row(own, 3))], level=1e-3, rule=rule)
    assert decision.verdict == Verdict.TAMPER
    assert [(each.recipient, each.tail) for each in decision.named] == [(3, "negative")]
    assert decision.named[0].score > 0  # of the reflected score


@pytest.mark.parametrize("rule", ["certified", "paper"])
def test_an_unrelated_word_is_no_evidence(rule: str) -> None:
    own = code(2)
    word = np.random.default_rng(0).integers(0, 2, 512)
    decision = adjudicate([reading(own, word)], level=1e-3, rule=rule)
    assert (decision.verdict, decision.named) == (Verdict.NOTHING, ())
    assert len(decision.certificates) == 2


def test_positive_decisions_take_precedence_over_stronger_negative_ones() -> None:
    own, other = code(1), code(2, label="feature")
    positive = row(own, 3).copy()
    positive[:200] = np.random.default_rng(1).integers(0, 2, 200)
    decision = adjudicate(
        [
            reading(own, positive, share=Fraction(1, 4)),
            reading(other, 1 - row(other, 7), carrier="feature", share=Fraction(3, 4)),
        ],
        level=1e-3,
    )
    assert decision.verdict == Verdict.ATTRIBUTE
    assert {each.recipient for each in decision.named} == {3}
    assert len(decision.certificates) == 4
    assert [certificate.level * 40_000 for certificate in decision.certificates] == [9, 1, 27, 3]


def test_all_who_pass_are_named_the_strongest_first() -> None:
    own = code(3)
    strong, weak = row(own, 0), row(own, 1)
    word = np.where(np.random.default_rng(2).random(512) < 0.65, strong, weak)
    decision = adjudicate([reading(own, word)], level=1e-3)
    assert [each.recipient for each in decision.named] == [0, 1]
    assert decision.named[0].strength > decision.named[1].strength


@pytest.mark.parametrize(("flip", "verdict"), [(0, Verdict.ATTRIBUTE), (1, Verdict.TAMPER)])
def test_the_papers_rule_names_the_largest_alone(flip: int, verdict: Verdict) -> None:
    """`prop:adjudicate`: "with the largest positive score selected", of negative ones the smallest."""
    own = code(3)
    mixed = np.where(np.random.default_rng(2).random(512) < 0.55, row(own, 0), row(own, 1)) ^ flip
    decision = adjudicate([reading(own, mixed)], level=1e-3, rule="paper")
    beyond = reading(own, mixed).sums if not flip else -reading(own, mixed).sums
    coefficients = reading(own, mixed).coefficients
    side = coefficients.negated() if flip else coefficients
    passed = [i for i in range(N) if side.score(int(beyond[i])) > decision.named[0].threshold]
    assert passed == [0, 1]
    assert (decision.verdict, [each.recipient for each in decision.named]) == (verdict, [0])


def test_the_papers_rule_gates_a_threshold_exceedance() -> None:
    """Where Chernoff does not certify the candidate threshold, a score beyond it is only a lead."""
    own = code(4)
    p = own.biases.probabilities()
    word = (p < 0.5).astype(np.int64)  # the rare symbol everywhere: heavy upper tails
    coefficients = symmetric(word, own.biases)
    z = candidate_threshold(length=512, recipients=N, level=1e-3, tails=2)
    totals = np.zeros(N, dtype=np.int64) + least_sum(coefficients, 0)
    totals[6] = least_sum(coefficients, Fraction(z)) + 1
    made = CarrierScores(carrier="weight", coefficients=coefficients, sums=totals)
    decision = adjudicate([made], level=1e-3, rule="paper")
    assert not decision.certificates[0].passes
    assert decision.verdict == Verdict.LEAD
    assert [(each.recipient, each.certificate) for each in decision.leads] == [(6, None)]
    assert decision.named == ()
    certified = adjudicate([made], level=1e-3)  # the exact tail certifies even here, below the candidate
    assert certified.certificates[0].threshold < Fraction(z)
    assert certified.verdict == Verdict.ATTRIBUTE


def test_the_threshold_itself_does_not_accuse_and_the_next_score_does() -> None:
    coefficients = symmetric(np.random.default_rng(5).integers(0, 2, 512), code(5).biases)
    certificate = smallest_threshold(coefficients, recipients=N, level=9e-4)
    at = least_sum(coefficients, certificate.threshold)
    assert coefficients.score(at) == certificate.threshold
    for extra, verdict in ((0, Verdict.NOTHING), (1, Verdict.ATTRIBUTE)):
        totals = np.full(N, least_sum(coefficients, 0))
        totals[4] = at + extra
        made = CarrierScores(carrier="weight", coefficients=coefficients, sums=totals)
        assert adjudicate([made], level=1e-3).verdict == verdict


def test_an_empty_roster_a_single_recipient_and_no_information_have_answers() -> None:
    own = code(6)
    word = row(own, 0)
    empty = adjudicate([reading(own, word, count=0)], level=1e-3)
    assert (empty.verdict, empty.recipients, empty.certificates) == (Verdict.NOTHING, 0, ())
    alone = adjudicate([reading(own, word, count=1)], level=1e-3)
    assert [each.recipient for each in alone.named] == [0]
    for values in (np.zeros(512), np.full(512, 3.5)):
        coefficients = soft(values, own.biases)
        made = CarrierScores(
            carrier="weight", coefficients=coefficients, sums=sums(own.rows(range(N)), coefficients)
        )
        assert adjudicate([made], level=1e-3).verdict == Verdict.NOTHING


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_readout_with_no_numbers_is_an_error(value: float) -> None:
    values = np.ones(512)
    values[7] = value
    with pytest.raises(InputError):
        soft(values, code(6).biases)


def test_biases_beyond_the_cutoff_are_an_error() -> None:
    with pytest.raises(InputError, match="beyond the cutoff 1/600"):
        Biases(thresholds=np.array([1], dtype=np.uint32), colluders=2)


def test_impossible_investigations_are_errors() -> None:
    own = code(7)
    one = reading(own, row(own, 0))
    shorter = reading(own, row(own, 0), count=3, carrier="feature")
    for readings in ([], [one, one], [one, shorter]):
        with pytest.raises(InputError):
            adjudicate(readings, level=1e-3)
    for level in (0, 1, -1e-3, 1.5, float("nan")):
        with pytest.raises(InputError):
            adjudicate([one], level=level)
        with pytest.raises(InputError):
            investigate([], level=level)
    with pytest.raises(InputError, match="unknown rule"):
        adjudicate([one], level=1e-3, rule="generous")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stages"):
        investigate([], level=1e-3, max_stages=0)


# --- soundness of the decision as a whole ------------------------------------------------------------


def test_innocents_are_named_no_more_often_than_the_level_allows() -> None:
    """A level of 0.2 over two tails and two carriers, rosters of innocents only, 2,000 investigations."""
    random = np.random.default_rng(8)
    own, other = code(8, length=64), code(9, length=64, label="feature")
    codes = (own, other)
    words = [random.integers(0, 2, 64) for _ in codes]
    coefficients = [symmetric(word, each.biases) for word, each in zip(words, codes, strict=True)]
    wrong = 0
    trials = 2_000
    drawn = [
        np.packbits(random.random((trials * 4, 64)) < each.biases.probabilities(), axis=1) for each in codes
    ]
    totals = [sums(rows, c).reshape(trials, 4) for rows, c in zip(drawn, coefficients, strict=True)]
    certificates = [
        smallest_threshold(side, recipients=4, level=Fraction(1, 10) * tail_share(tail, "certified"))
        for c in coefficients
        for side, tail in ((c, "positive"), (c.negated(), "negative"))
    ]
    for trial in range(trials):
        hit = False
        for c, total, (up, down) in zip(
            coefficients, totals, zip(certificates[::2], certificates[1::2], strict=True), strict=True
        ):
            scores = [c.score(int(each)) for each in total[trial]]
            hit |= max(scores) > up.threshold or -min(scores) > down.threshold
        wrong += hit
    assert wrong <= stats.binom.ppf(0.999, trials, 0.2)
    assert wrong > 0.3 * 0.2 * trials  # and the level is really used
    made = [
        CarrierScores(carrier=str(i), coefficients=c, sums=total[0], share=Fraction(1, 2))
        for i, (c, total) in enumerate(zip(coefficients, totals, strict=True))
    ]
    thresholds = [each.threshold for each in adjudicate(made, level=Fraction(1, 5)).certificates]
    assert thresholds == [each.threshold for each in certificates]


# --- the simulated linear channel --------------------------------------------------------------------


def trial(random: np.random.Generator, size: int) -> tuple[Code, set[int], NDArray[np.float64]]:
    own = Code(key=CodeKey.generate(entropy=random.bytes), label="weight", length=512, colluders=2)
    coalition = set(random.choice(N, size, replace=False).tolist())
    values = linear_channel(unpack(own.rows(sorted(coalition)), 512), 0.3, random)
    return own, coalition, values


def traced(own: Code, values: NDArray[np.float64]) -> Staged:
    rows = own.rows(range(N))

    def score(coefficients: Coefficients) -> NDArray[np.int64]:
        return sums(rows, coefficients)

    evidence = Source(
        carrier="weight", values=values, biases=own.biases, sums=score, rows=lambda named: rows[list(named)]
    )
    return investigate([evidence], level=1e-3)


@pytest.mark.parametrize(
    ("size", "some", "everybody"),
    [(5, 0.99, 0.95), pytest.param(8, 0.99, 0.0, marks=pytest.mark.slow)],
)
def test_soft_certified_tracing_of_averaged_copies(size: int, some: float, everybody: float) -> None:
    """n = 512, c = 2, N = 10, eps = 10^-3, noise 0.3 of the margin, 200 coalitions a size."""
    random = np.random.default_rng(size)
    named_some = named_all = 0
    for _ in range(200):
        own, coalition, values = trial(random, size)
        investigation = traced(own, values)
        assert all(each.certificate is not None for each in investigation.named)
        named = {each.recipient for each in investigation.named}
        assert named <= coalition
        assert investigation.spent < Fraction(1, 1000)
        named_some += bool(named)
        named_all += named == coalition
    assert named_some >= some * 200
    assert named_all >= everybody * 200


def test_the_papers_hard_rule_on_the_same_channel_for_comparison() -> None:
    random = np.random.default_rng(8)
    named = 0
    for _ in range(200):
        own, _, values = trial(random, 8)
        decision = adjudicate([reading(own, (values > 0).astype(np.int64))], level=1e-3, rule="paper")
        named += decision.verdict == Verdict.ATTRIBUTE
    assert named <= 0.12 * 200


def test_stages_name_more_than_one_stage_and_keep_to_the_level() -> None:
    random = np.random.default_rng(12)
    more = 0
    for _ in range(30):
        own, coalition, values = trial(random, 8)
        investigation = traced(own, values)
        levels = [stage.level for stage in investigation.stages]
        shares = [Fraction(3, 4), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32), Fraction(1, 64)]
        assert levels == [each / 1000 for each in shares[: len(levels)]]
        first = {each.recipient for each in investigation.stages[0].named}
        named = {each.recipient for each in investigation.named}
        assert first <= named <= coalition
        more += len(named) > len(first)
    assert more >= 5


def test_whoever_is_named_is_named_by_the_row_itself() -> None:
    """A damaged cache gives recipient 7 the row of recipient 3; the rows from the key tell."""
    own = code(14)
    rows = own.rows(range(N))
    damaged = rows.copy()
    damaged[7] = damaged[3]
    evidence = Source(
        carrier="weight",
        values=2.0 * row(own, 3) - 1,
        biases=own.biases,
        sums=lambda coefficients: sums(damaged, coefficients),
        rows=lambda named: rows[list(named)],
    )
    with pytest.raises(InputError, match="not that of its row"):
        investigate([evidence], level=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((2, 2), dtype=np.int64), np.zeros(3), np.full(3, 2**62), [True, False], np.array(["a"])],
    ids=["matrix", "float", "huge", "bool", "text"],
)
def test_sums_that_no_row_can_have_are_errors(wrong: object) -> None:
    own = code(15)
    coefficients = symmetric(row(own, 0), own.biases)
    with pytest.raises(InputError):
        CarrierScores(carrier="weight", coefficients=coefficients, sums=wrong)  # type: ignore[arg-type]


def test_unsigned_sums_mean_what_signed_ones_mean() -> None:
    own = code(16)
    coefficients = symmetric(np.ones(512, dtype=int), own.biases)
    totals = sums(own.rows(range(N)), coefficients)
    for dtype in (np.int64, np.uint32, np.uint64):
        made = CarrierScores(carrier="weight", coefficients=coefficients, sums=totals.astype(dtype))
        assert adjudicate([made], level=1e-3).verdict == Verdict.NOTHING


def test_the_certificates_of_every_stage_can_be_checked_again() -> None:
    random = np.random.default_rng(17)
    own, _, values = trial(random, 5)
    investigation = traced(own, values)
    made = soft(values, own.biases)
    certificates = investigation.stages[0].certificates
    for certificate, side in zip(certificates, (made, made.negated()), strict=True):
        check(certificate, side)


def test_a_word_that_the_linear_score_cannot_follow_is_traced_by_the_estimated_channel() -> None:
    """Minority of four: soft names nobody at the first stage, map somebody, and soft is asked again."""
    random = np.random.default_rng(19)
    own = Code(key=CodeKey.generate(entropy=random.bytes), label="weight", length=512, colluders=2)
    values = 2.0 * minority(unpack(own.rows(range(5)), 512), random) - 1
    found = traced(own, values)
    assert found.verdict == Verdict.ATTRIBUTE
    assert {each.recipient for each in found.named} == set(range(5))
    assert {each.by for each in found.stages[0].named} == {"map"}
    assert [each.by for each in found.first] == ["soft", "map"]
    assert len(found.stages[0].certificates) == 4
    made = (soft(values, own.biases), blind(values, own.biases))
    sides = [side for each in made for side in (each, each.negated())]
    for certificate, side in zip(found.stages[0].certificates, sides, strict=True):
        check(certificate, side)


def test_decisions_about_two_scores_are_joined_by_precedence() -> None:
    own = code(1)
    owner, opposite = (
        adjudicate([reading(own, word)], level=1e-3) for word in (row(own, 3), 1 - row(own, 5))
    )
    nothing = adjudicate([reading(own, np.arange(512) % 2)], level=1e-3)
    for pair in ((owner, opposite), (opposite, owner), (owner, nothing)):
        both = joined(*pair)
        assert both.verdict == Verdict.ATTRIBUTE
        assert [each.recipient for each in both.named] == [3]
        assert both.certificates == (*pair[0].certificates, *pair[1].certificates)
    assert joined(nothing, opposite).verdict == Verdict.TAMPER
    assert joined(nothing, nothing).verdict == Verdict.NOTHING


def test_zero_coefficients_have_a_threshold_nobody_passes() -> None:
    own = code(13)
    coefficients = quantise(np.zeros(512), own.biases)
    made = CarrierScores(
        carrier="weight", coefficients=coefficients, sums=sums(own.rows(range(N)), coefficients)
    )
    assert adjudicate([made], level=1e-3).verdict == Verdict.NOTHING


def test_shares_are_no_more_than_the_whole() -> None:
    own = code(18)
    two = [reading(own, row(own, 3), carrier=each, share=Fraction(2, 3)) for each in ("weight", "feature")]
    with pytest.raises(InputError, match="more than the whole level"):
        adjudicate(two, level=1e-3)
    with pytest.raises(InputError, match="two readings of one carrier by one score"):
        adjudicate([two[0], two[0]], level=1e-3)
    for share in (Fraction(0), Fraction(3, 2)):
        with pytest.raises(InputError, match="a share of"):
            reading(own, row(own, 3), share=share)


def test_a_tail_that_is_not_looked_at_names_nobody() -> None:
    own = code(1)
    negated = reading(own, 1 - row(own, 3))
    assert adjudicate([negated], level=1e-3).verdict == Verdict.TAMPER
    alone = adjudicate([negated], level=1e-3, tails=("positive",))
    assert (alone.verdict, len(alone.certificates)) == (Verdict.NOTHING, 1)
