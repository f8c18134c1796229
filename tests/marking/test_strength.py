"""How strong a mark is by default: more in a model of few weights, up to a limit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.errors import InputError
from zktrace.marking.settings import STRENGTH, CopySettings, usual_strength


@pytest.mark.parametrize(
    ("weights", "times"),
    [(11 << 20, 1.0), (1 << 20, 1.0), (1 << 18, 2.0), (1 << 16, 4.0), (6144, 4.0), (0, 4.0)],
)
def test_the_usual_strength(weights: int, times: float) -> None:
    assert usual_strength(weights) == pytest.approx(times * STRENGTH)


@given(st.integers(1 << 16, 1 << 20), st.integers(1 << 16, 1 << 20))
def test_between_its_limits_models_of_all_sizes_read_alike(one: int, two: int) -> None:
    left, right = (usual_strength(each) * math.sqrt(each) for each in (one, two))
    assert left == pytest.approx(right)


@pytest.mark.parametrize("wrong", [0.0, -0.01, 1.5, math.nan])
def test_no_strength_that_is_none(wrong: float) -> None:
    with pytest.raises(InputError, match="a strength of"):
        CopySettings(strength=wrong)
