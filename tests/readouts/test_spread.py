"""The spread reader: what differences are worth, and what is left of a mark after a tensor was disguised."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marking.test_spread import LENGTH, job, marked, word
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.readouts import spread
from zktrace.readouts.reader import Reader, Terms, reader_of
from zktrace.readouts.spread import BEYOND, FLOOR, PAYS, Worth, recorded, worth


def reader(made: Any = None) -> Reader:
    return reader_of((made or job()).terms["spread"])


def agreement(arrays: Any, made: Any = None) -> float:
    """The cosine between a readout and the word that was written."""
    values, signs = reader(made).read(arrays), 2.0 * word() - 1.0
    return float(values @ signs / (np.linalg.norm(values) * np.linalg.norm(signs)))


def changed(change: Any) -> dict[str, np.ndarray]:
    return {name: change(name, np.array(array)) for name, array in marked().items()}


def test_the_shared_model_says_nothing() -> None:
    assert not reader().read(job().shared).any()


def test_a_copy_says_its_word_at_the_strength_it_was_written_with() -> None:
    values = reader().read(marked())
    assert np.abs(values / 0.01 - (2.0 * word() - 1.0)).max() < 0.05  # a weight in fifty was not moved at all


def rounded(array: np.ndarray, bits: int) -> np.ndarray:
    low, high = array.min(), array.max()
    step = (high - low) / (2**bits - 1)
    return (np.round((array - low) / step) * step + low).astype(array.dtype) if step else array


def pruned(array: np.ndarray, share: float) -> np.ndarray:
    return np.where(np.abs(array) < np.quantile(np.abs(array), share), 0, array).astype(array.dtype)


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda _name, array: array.astype(np.float16), 0.999),
        (lambda _name, array: array.astype(np.float64), 0.999),
        (lambda _name, array: rounded(array, 8), 0.99),
        (lambda _name, array: rounded(array, 4), 0.5),
        (lambda _name, array: pruned(array, 0.5), 0.99),
        (lambda _name, array: pruned(array, 0.9), 0.9),
        (lambda name, array: array * 0 + 1 if name == "one.weight" else array, 0.999),
        (lambda name, array: np.where(np.arange(array.size).reshape(array.shape) == 7, np.nan, array), 0.999),
        (lambda name, array: np.where(np.arange(array.size).reshape(array.shape) < 9, 3e38, array), 0.999),
    ],
)
def test_a_mark_is_read_through(change: Any, least: float) -> None:
    assert agreement(changed(change)) > least


def test_a_tensor_that_was_trained_anew_costs_no_more_than_its_share() -> None:
    rng = np.random.default_rng(5)
    fresh = changed(
        lambda name, array: rng.normal(size=array.shape).astype(np.float32) if name == "one.weight" else array
    )
    without = {name: array for name, array in marked().items() if name != "one.weight"}
    assert np.abs(reader().read(fresh) - reader().read(without)).max() < 0.002


def test_names_and_shapes_that_are_not_there_are_left_out() -> None:
    some = {"two.weight": np.array(marked()["two.weight"]), "other": np.zeros((3, 3), np.float32)}
    assert agreement(some) > 0.999
    for wrong in (
        {"other": np.zeros((300, 300), np.float32)},
        {"one.weight": np.zeros((3, 3), np.float32)},
        {"one.weight": np.zeros(marked()["one.weight"].shape, np.int8)},
        {},
    ):
        with pytest.raises(InputError, match="none of the shared model's matrices"):
            reader().read(wrong)


def test_other_names_prefixes_and_transposed_storage_are_found() -> None:
    for rename in (
        lambda name: f"module.{name}",
        lambda name: name.replace("one", "three").replace("two", "four"),
    ):
        assert agreement({rename(name): array for name, array in marked().items()}) > 0.999
    turned = {name: array.T if name == "two.weight" else array for name, array in marked().items()}
    assert agreement(turned) > 0.999


def test_what_is_not_finite_everywhere_says_nothing() -> None:
    assert not reader().read(changed(lambda _name, array: array + np.inf)).any()


def test_a_reader_needs_the_shared_model_and_one_that_is_on_record() -> None:
    terms = job().terms["spread"]
    bare = Terms(carrier="spread", seed=terms.seed, length=LENGTH, profile="informed", dimension=1)
    with pytest.raises(InputError, match="read beside the shared model"):
        reader_of(bare).read(marked())
    for layers, deviations in (
        (terms.layers[:1], terms.deviations[:1]),
        (terms.layers, terms.deviations[:1]),
        (tuple(each + 1 for each in terms.layers), terms.deviations),
    ):
        with pytest.raises(InputError, match="not those on record"):
            recorded(job().shared, LENGTH, layers, deviations)


def test_the_reading_does_not_depend_on_how_a_state_comes() -> None:
    state = ModelState.from_arrays({name: np.array(array) for name, array in marked().items()})
    assert (reader().read(state) == reader().read(marked())).all()
    assert (reader().read(dict(state)) == reader().read(marked())).all()


def test_a_glimpse_is_the_readout_of_the_largest_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (reader().glimpse(marked()) == reader().read(marked())).all()
    monkeypatch.setattr(spread, "GLIMPSE", 1)
    assert (reader().glimpse(marked()) == reader().read({"two.weight": marked()["two.weight"]})).all()


def value(found: Worth) -> float:
    return found.kept**2 / (found.noise + FLOOR * FLOOR)


def test_normal_differences_are_all_kept() -> None:
    sample = 0.3 * np.random.default_rng(0).standard_normal(40_000).astype(np.float32)
    found = worth(sample)
    assert found.limit == BEYOND
    assert found.kept == 1.0
    assert found.noise == pytest.approx(float((sample**2).mean()), rel=1e-5)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_far_moves_of_some_weights_are_dropped(share: float) -> None:
    rng = np.random.default_rng(1)
    sample = 0.01 * rng.standard_normal(60_000)
    far = rng.random(len(sample)) < share
    sample[far] += rng.choice((-1.0, 1.0), far.sum()) * (0.3 + rng.random(far.sum()))
    found = worth(sample.astype(np.float32))
    assert 0.02 < found.limit < 0.32
    assert found.kept == pytest.approx(1 - share, rel=0.1)
    assert value(found) > PAYS / (sample**2).mean()


def test_the_gain_is_what_a_shift_of_the_kept_differences_gives() -> None:
    """g is the slope of E[d; |d| <= L] in a shift of all d: by finite differences of a large sample."""
    rng = np.random.default_rng(2)
    sample = np.where(rng.random(400_000) < 0.5, 0.02, 0.6) * rng.standard_normal(400_000)
    found = worth(sample.astype(np.float32))
    step = 0.1 * found.limit
    slopes = [
        np.where(np.abs(sample + shift) <= found.limit, sample + shift, 0.0).mean() / step
        for shift in (step, -step)
    ]
    assert found.limit < BEYOND
    assert found.kept == pytest.approx((slopes[0] - slopes[1]) / 2, abs=0.03)


@given(st.lists(st.floats(width=32), min_size=1, max_size=200))
@settings(max_examples=200, deadline=None)
def test_whatever_the_differences_are_there_is_a_worth(sample: list[float]) -> None:
    found = worth(np.array(sample, dtype=np.float32))
    assert 0.0 <= found.kept <= 1.0
    assert 0.0 <= found.noise <= BEYOND**2
    assert 0.0 < found.limit <= BEYOND
    assert np.isfinite(found.weight(16))
