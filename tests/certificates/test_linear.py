"""The plan for averaging colluders against simulation with rows, soft scores, stages and certificates."""

from fractions import Fraction

import numpy as np
import pytest

from support import seeded
from zktrace.certificates.linear import linear_stages
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import Code, CodeKey, sums, unpack
from zktrace.codes.strategies import linear_channel
from zktrace.errors import InputError

RECIPIENTS = 100


def simulated(length: int, colluders: int, noise: float, trials: int) -> list[tuple[float, int]]:
    """Of each trial the share of colluders named in the end, and innocents named."""
    rng = np.random.default_rng(length + colluders)
    found = []
    for trial in range(trials):
        key = CodeKey.generate(entropy=seeded(f"linear {trial}"))
        code = Code(key=key, label="linear", length=length, colluders=2, law="fair")
        rows = code.rows(range(RECIPIENTS))
        source = Source(
            carrier="weight",
            values=linear_channel(unpack(rows[:colluders], length), noise, rng),
            biases=code.biases,
            sums=lambda coefficients, rows=rows: sums(rows, coefficients),  # type: ignore[misc]
            rows=code.rows,
        )
        named = {each.recipient for each in investigate([source], level=Fraction(1, 1000)).named}
        found.append(
            (
                len([i for i in named if i < colluders]) / colluders,
                len(named) - len([i for i in named if i < colluders]),
            )
        )
    return found


@pytest.mark.parametrize(
    ("length", "colluders", "noise"), [(512, 16, 0.1), (512, 20, 0.05), (1024, 8, 0.8), (512, 4, 1.6)]
)
def test_the_named_share_is_that_of_simulation(length: int, colluders: int, noise: float) -> None:
    plan = linear_stages(
        length=length, colluders=colluders, recipients=RECIPIENTS, noise=noise, level=Fraction(1, 1000)
    )
    found = simulated(length, colluders, noise, 6)
    assert sum(innocents for _, innocents in found) == 0
    share = float(np.mean([share for share, _ in found]))
    assert plan[-1].named == pytest.approx(share, abs=0.2)


def test_the_first_stage_is_the_formula() -> None:
    (first, *_) = linear_stages(length=2048, colluders=32, recipients=1000, noise=0.1, level=1e-3)
    assert first.deviations == pytest.approx(2048**0.5 / 32 / (1 / 32 + 0.01) ** 0.5, abs=0.05)
    assert first.threshold == pytest.approx(4.81, abs=0.02)  # normal: 4.82 at 0.75 * 0.9 / 10^6


def test_more_positions_name_more_and_more_noise_fewer() -> None:
    shares = [
        linear_stages(length=n, colluders=24, recipients=1000, noise=noise, level=1e-3)[-1].named
        for n, noise in ((512, 0.3), (1024, 0.3), (2048, 0.3), (2048, 1.0))
    ]
    assert shares[0] < shares[1] < shares[2]
    assert shares[3] < shares[2]


@pytest.mark.parametrize(
    "wrong", [{"length": 8}, {"colluders": 0}, {"recipients": 3}, {"noise": float("nan")}, {"level": 2}]
)
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    fine = {"length": 512, "colluders": 4, "recipients": 10, "noise": 0.1, "level": 1e-3}
    with pytest.raises(InputError):
        linear_stages(**{**fine, **wrong})  # type: ignore[arg-type]
