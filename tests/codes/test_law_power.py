"""What a faint linear readout says under each law: a position is worth p (1 - p)."""

import math

import numpy as np
import pytest

from support import seeded
from zktrace.codes import Code, CodeKey, Law, soft, sums, unpack
from zktrace.codes.strategies import linear_channel

LENGTH = 2048


def mean_deviations(law: Law, colluders: int, noise: float, trials: int) -> float:
    """A colluder's score in an innocent's standard deviations, averaged over keys."""
    rng = np.random.default_rng(colluders)
    found = []
    for trial in range(trials):
        key = CodeKey.generate(entropy=seeded(f"power {trial}"))
        code = Code(key=key, label="power", length=LENGTH, colluders=3, law=law)
        rows = code.rows(range(colluders))
        coefficients = soft(linear_channel(unpack(rows, LENGTH), noise, rng), code.biases)
        deviation = math.sqrt(coefficients.variance())
        found.append(coefficients.scores_float(sums(rows, coefficients)).mean() / deviation)
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("colluders", "noise", "tardos", "fair"), [(1, 8.0, 4.17, 5.75), (2, 5.0, 3.31, 4.38)]
)
def test_a_faint_signal_reads_further_out_under_the_fair_law(
    colluders: int, noise: float, tardos: float, fair: float
) -> None:
    """One mean of 60 keys has a deviation of 0.13 (two colluders: 0.09)."""
    assert mean_deviations("tardos", colluders, noise, 60) == pytest.approx(tardos, abs=0.45)
    assert mean_deviations("fair", colluders, noise, 60) == pytest.approx(fair, abs=0.45)
    assert mean_deviations("fair", colluders, noise, 60) == pytest.approx(
        math.sqrt(LENGTH / (1 / colluders + noise**2)) / colluders, abs=0.45
    )
