"""Readouts of models that were marked for nobody enrolled: certified namings stay within the budget.

What is random is the code, as in the theorem: the readouts are fixed and thousands of code keys are drawn.
"""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from zktrace.certificates.adjudicate import Rule, Verdict
from zktrace.codes import Code, CodeKey, unpack
from zktrace.evidence.findings import CERTIFIED
from zktrace.tracing.readout import Readout
from zktrace.tracing.score import score

LENGTH = 48
RECIPIENTS = 5
LEVEL = Fraction(1, 5)


def code(rng: np.random.Generator) -> Code:
    return Code(key=CodeKey.generate(entropy=rng.bytes), label="weight", length=LENGTH, colluders=2)


def innocent_readouts() -> list[NDArray[np.float64]]:
    """A model nobody marked, one with an offset, one marked under another code, one of few loud positions."""
    rng = np.random.default_rng(11)
    foreign = unpack(code(rng).rows([0]), LENGTH)[0] * 2.0 - 1.0
    loud = 0.1 * rng.standard_normal(LENGTH)
    loud[:5] = 4.0
    return [
        rng.standard_normal(LENGTH),
        3.0 + rng.standard_normal(LENGTH),
        foreign + 0.2 * rng.standard_normal(LENGTH),
        loud,
    ]


def namings(rule: Rule, values: NDArray[np.float64], trials: int, seed: int) -> int:
    """How often somebody is named, over as many codes; all who are enrolled are innocent."""
    rng = np.random.default_rng(seed)
    readout = Readout(carrier="weight", values=values, reference=None)
    wrong = 0
    for _ in range(trials):
        found = score([readout], [code(rng)], recipients=RECIPIENTS, level=LEVEL, rule=rule, certify=True)
        wrong += found.verdict in CERTIFIED
        assert (found.verdict in CERTIFIED) == bool(found.looks)
    return wrong


@pytest.mark.parametrize(
    ("rule", "trials"),
    [
        ("certified", 40),
        ("paper", 30),
        pytest.param("certified", 600, marks=pytest.mark.slow),
        pytest.param("paper", 600, marks=pytest.mark.slow),
    ],
)
def test_namings_of_innocents_stay_within_the_budget(rule: Rule, trials: int) -> None:
    readouts = innocent_readouts()
    wrong = [namings(rule, values, trials, seed) for seed, values in enumerate(readouts)]
    print(f"{rule}: {wrong} of {trials} each, level {LEVEL}")
    for each in wrong:
        assert each <= int(stats.binom.ppf(1 - 1e-5, trials, float(LEVEL)))
    total = trials * len(readouts)
    assert sum(wrong) <= int(stats.binom.ppf(1 - 1e-5, total, float(LEVEL)))
    if rule == "certified":  # the bound is not idle: at this level innocents do get named now and then
        assert sum(wrong) >= int(stats.binom.ppf(1e-5, total, 0.04))


def test_without_certificates_nobody_is_ever_named() -> None:
    rng = np.random.default_rng(5)
    for values in innocent_readouts():
        readout = Readout(carrier="weight", values=values, reference=None)
        found = score(
            [readout], [code(rng)], recipients=RECIPIENTS, level=LEVEL, rule="certified", certify=False
        )
        assert found.looks == ()
        assert found.verdict in (Verdict.LEAD, Verdict.NOTHING)
