"""The spread writer: exact in closed form, in every element type, and nothing else is touched."""

from functools import cache

import numpy as np
import pytest

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.marking.settings import CopySettings
from zktrace.marking.spread import rounded
from zktrace.marking.writer import Job, copy_of, writers_of
from zktrace.models import ModelState, Tensor, model_digest
from zktrace.readouts.reader import Terms, survey_of

LENGTH = 256
SEED = b"d" * 32


def shared_arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "one.weight": (0.05 * rng.standard_normal((96, 16, 3, 3))).astype(np.float32),
        "one.bias": rng.standard_normal(96).astype(np.float32),
        "two.weight": (0.2 * rng.standard_normal((300, 150))).astype(np.float32),
        "bn.weight": np.ones(20_000, dtype=np.float32),
        "bn.running_var": np.ones(20_000, dtype=np.float32),
        "count": np.array(7),
        "table": np.arange(20_000).reshape(100, 200),
        "tiny.weight": rng.standard_normal((4, 4)).astype(np.float32),
    }


def bfloat16(name: str, array: np.ndarray) -> Tensor:
    bits = (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return Tensor(name=name, dtype="bfloat16", shape=array.shape, data=bits.data)


@cache
def shared_state(dtype: str = "float32") -> ModelState:
    def tensor(name: str, array: np.ndarray) -> Tensor:
        if array.dtype != np.float32:
            return Tensor.from_array(name, array)
        return bfloat16(name, array) if dtype == "bfloat16" else Tensor.from_array(name, array.astype(dtype))

    return ModelState(tensor(name, array) for name, array in shared_arrays().items())


@cache
def job(dtype: str = "float32", strength: float = 0.01) -> Job:
    shared = shared_state(dtype)
    survey = survey_of("spread", shared, length=LENGTH, pool=None, draws=Stream("probes", SEED))
    terms = Terms(
        carrier="spread",
        seed=SEED,
        length=LENGTH,
        profile="informed",
        dimension=survey.dimension,
        layers=survey.layers,
        deviations=survey.deviations,
        shared=shared,
    )
    return Job(
        shared=shared,
        model=model_digest(shared),
        profile="informed",
        terms={"spread": terms},
        references={"spread": None},
        pool=None,
        settings=CopySettings(strength=strength),
    )


@cache
def word(row: int = 3) -> np.ndarray:
    return np.random.default_rng(row).integers(0, 2, LENGTH).astype(np.uint8)


@cache
def marked(dtype: str = "float32", strength: float = 0.01, row: int = 3) -> ModelState:
    made = job(dtype, strength)
    return copy_of(made, writers_of(made), {"spread": word(row)}, row=row, step=lambda _share: None)


DTYPES = ("float64", "float32", "float16", "bfloat16")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_copy_keeps_names_shapes_types_and_whatever_does_not_carry(dtype: str) -> None:
    before, after = shared_state(dtype), marked(dtype)
    assert list(before) == list(after)
    for old, new in zip(before.tensors(), after.tensors(), strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        moved = bytes(old.data) != bytes(new.data)
        assert moved == (old.name in ("one.weight", "two.weight"))
    end = before["two.weight"].size // LENGTH * LENGTH  # a partial block carries nothing
    assert (before["two.weight"].reshape(-1)[end:] == after["two.weight"].reshape(-1)[end:]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["one.weight", "two.weight"])
def test_weights_move_by_the_strength_in_deviations_of_their_tensor(dtype: str, name: str) -> None:
    before, after = (state[name].astype(np.float64) for state in (shared_state(dtype), marked(dtype)))
    coarse = 1.3 if dtype == "bfloat16" else 1.05  # dithering adds noise
    assert 0.95 < (after - before).std() / before.std() / 0.01 < coarse


def test_a_repeated_copy_is_the_same_and_rows_and_strengths_make_others() -> None:
    first = model_digest(marked())
    again = copy_of(job(), writers_of(job()), {"spread": word()}, row=3, step=lambda _share: None)
    assert model_digest(again) == first
    assert len({first, model_digest(marked(row=4)), model_digest(marked(strength=0.02))}) == 3


def test_a_copy_is_made_again_for_each_use_and_is_the_same_every_time() -> None:
    tensor = next(each for each in marked("float16").tensors() if each.name == "one.weight")
    assert (tensor.array() == tensor.array()).all()


def test_the_dither_of_a_row_is_its_own() -> None:
    made = job("bfloat16")
    one, two = (
        copy_of(made, writers_of(made), {"spread": word()}, row=row, step=lambda _share: None)
        for row in (3, 4)
    )
    assert 0.001 < (one["two.weight"] != two["two.weight"]).mean() < 0.9


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 10), ("bfloat16", 7)])
@pytest.mark.parametrize("value", [0.7, -0.7, 1e-3, 3.1e-5, -1.7e-7, 0.0, 1.0, 60000.3])
def test_a_dithered_number_is_a_neighbour_on_the_grid_and_right_on_average(
    dtype: str, bits: int, value: float
) -> None:
    count = 40_000
    given = np.full(count, value, dtype=np.float32)
    found = rounded(given, dtype, Stream("test", b"x" * 32))
    numbers = (found.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else found
    numbers = numbers.astype(np.float64)
    least = 2.0**-24 if dtype == "float16" else 0.0
    step = max(2.0 ** (np.frexp(value)[1] - 1 - bits), least) if value else least
    assert np.abs(numbers - float(given[0])).max() < step or value == 0.0
    assert len(np.unique(numbers)) <= 2
    if value and value < 60000:
        assert numbers.mean() == pytest.approx(float(given[0]), abs=4 * step / np.sqrt(count))
    if value in (0.0, 1.0):
        assert (numbers == value).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_largest_numbers_stay_finite(dtype: str) -> None:
    most = 65504.0 if dtype == "float16" else 3.38e38
    found = rounded(np.full(5000, most, dtype=np.float32), dtype, Stream("test", b"x" * 32))
    numbers = (found.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else found
    assert np.isfinite(numbers).all()


def test_wide_types_are_not_dithered() -> None:
    values = np.array([0.1, 0.2], dtype=np.float32)
    assert rounded(values, "float32", Stream("test", b"x" * 32)) is values


@pytest.mark.parametrize("wrong", [np.zeros(LENGTH - 1, np.uint8), np.full(LENGTH, 2, np.uint8)])
def test_words_of_another_kind_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InputError, match="bits are written"):
        copy_of(job(), writers_of(job()), {"spread": wrong}, row=0, step=lambda _share: None)


@pytest.mark.parametrize("strength", [0.0, -0.1, 1.5, float("nan")])
def test_a_strength_lies_between_nothing_and_one_deviation(strength: float) -> None:
    with pytest.raises(InputError, match="a strength of"):
        CopySettings(strength=strength)
