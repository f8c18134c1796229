"""Aggregation: exactly the weighted mean or the median, counters apart, and no silent average of nonsense."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from learning.synthetic import narrow
from zktrace.errors import InputError
from zktrace.learning.aggregation import aggregate, check_update, fedavg, median
from zktrace.learning.states import load_state, state_of

State = dict[str, NDArray[np.generic]]


def states(count: int, dtype: str = "f4") -> list[State]:
    rng = np.random.default_rng(count)
    return [
        {
            "conv.weight": rng.standard_normal((3, 2)).astype(dtype),
            "bn.running_var": rng.random(4).astype(dtype),
            "bn.num_batches_tracked": np.array(100 * k, dtype=np.int64),
        }
        for k in range(count)
    ]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.lists(st.integers(-(2**40), 2**40), min_size=5, max_size=5)),
        min_size=1,
        max_size=8,
    )
)
def test_fedavg_is_the_weighted_mean_exactly(clients: list[tuple[int, list[int]]]) -> None:
    """In rational arithmetic, rounded once: sums of these numbers are exact in float64."""
    weights = [weight for weight, _ in clients]
    found = fedavg([{"x": np.array(values, dtype=np.float64)} for _, values in clients], weights)["x"]
    for at in range(5):
        exact = sum(Fraction(weight * values[at]) for weight, values in clients) / sum(weights)
        assert found[at] == float(exact)


@pytest.mark.parametrize("count", [1, 2, 10])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_buffers_are_averaged_too_and_types_kept(count: int, dtype: str) -> None:
    given_states, weights = states(count, dtype), list(range(7, 7 + count))
    found = fedavg(given_states, weights)
    assert list(found) == list(given_states[0])
    for name in ("conv.weight", "bn.running_var"):
        stack = np.stack([each[name] for each in given_states]).astype(np.float64)
        wanted = np.average(stack, axis=0, weights=weights).astype(dtype)
        assert found[name].dtype == np.dtype(dtype)
        np.testing.assert_allclose(found[name], wanted, rtol=2 * float(np.finfo(dtype).eps), atol=0)


@pytest.mark.parametrize("count", [*range(1, 14), 33])
def test_the_median_is_numpys(count: int) -> None:
    rng = np.random.default_rng(count)
    arrays = [rng.integers(-3, 3, (7, 3000)).astype(np.float32) / 7 for _ in range(count)]
    found = median([{"x": each} for each in arrays])["x"]
    assert found.dtype == np.float32
    assert (found == np.median(np.stack(arrays).astype(np.float64), axis=0).astype(np.float32)).all()


@pytest.mark.parametrize("rule", ["fedavg", "median"])
def test_counters_are_one_of_the_stations_and_stay_integers(rule: str) -> None:
    for count, wanted in ((1, 0), (2, 0), (3, 100), (10, 400)):
        found = aggregate(rule, states(count), [1] * count)["bn.num_batches_tracked"]
        assert found.dtype == np.int64
        assert found.shape == ()
        assert found == wanted


def test_one_huge_counter_moves_nothing() -> None:
    given_states = states(5)
    given_states[2]["bn.num_batches_tracked"] = np.array(2**63 - 1)
    assert fedavg(given_states, [1] * 5)["bn.num_batches_tracked"] <= 400


def test_a_models_state_goes_through_unchanged() -> None:
    model = narrow()
    state = state_of(model)
    load_state(model, fedavg([state, state, state], [3, 5, 8]))
    found = state_of(model)
    assert all((found[name] == state[name]).all() for name in state)


@pytest.mark.parametrize("rule", ["fedavg", "median"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused(rule: str, value: float) -> None:
    given_states = states(3)
    given_states[1]["bn.running_var"] = np.array([1, value, 1, value], dtype="f4")
    with pytest.raises(
        InputError, match=r"station 1: 'bn\.running_var' has 2 values that are NaN or infinite"
    ):
        aggregate(rule, given_states, [1, 1, 1])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda state: state.pop("conv.weight"), r"station 2: 'conv\.weight' is missing"),
        (lambda state: state.update(fc=np.zeros(2)), "station 2: 'fc' does not belong"),
        (
            lambda state: state.update({"conv.weight": np.zeros((2, 3), "f4")}),
            r"station 2: .* float32 \(2, 3\), not",
        ),
        (lambda state: state.update({"conv.weight": np.zeros((3, 2), "f8")}), "station 2: .* float64"),
    ],
)
def test_another_architecture_is_refused(change, reason: str) -> None:  # noqa: ANN001
    given_states = states(3)
    change(given_states[2])
    with pytest.raises(InputError, match=reason):
        fedavg(given_states, [1, 1, 1])


def test_the_reference_decides_who_is_wrong() -> None:
    """Without it, the first station would make all the others look strange."""
    given_states = states(3)
    del given_states[0]["conv.weight"]
    with pytest.raises(InputError, match="station 0"):
        fedavg(given_states, [1, 1, 1], like=states(1)[0])
    with pytest.raises(InputError, match="station berlin"):
        check_update(given_states[0], states(1)[0], station="berlin")


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_a_weight_must_be_positive(weight: float) -> None:
    for rule in ("fedavg", "median"):
        with pytest.raises(InputError, match="station 1: weight"):
            aggregate(rule, states(3), [1, weight, 1])


def test_what_else_cannot_be_aggregated() -> None:
    with pytest.raises(InputError, match="no station sent a state"):
        fedavg([], [])
    with pytest.raises(InputError, match="no station sent a state"):
        median([])
    with pytest.raises(InputError, match="3 states and 2 weights"):
        fedavg(states(3), [1, 1])
    with pytest.raises(InputError, match="'krum' is not known"):
        aggregate("krum", states(3), [1, 1, 1])
    with pytest.raises(InputError, match="'x' is of type"):
        fedavg([{"x": np.array([1j])}], [1])


def test_neither_aggregation_nor_presets_need_torch() -> None:
    code = "import sys, zktrace.learning.aggregation, zktrace.learning.presets; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"False\n"
