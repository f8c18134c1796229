"""Words are written into scales in closed form and read back."""

from fractions import Fraction

import numpy as np
import pytest

from readouts.making import weight_reader
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import Code, CodeKey, sums, unpack
from zktrace.errors import InputError
from zktrace.marking.weight import WeightWriter, with_scales
from zktrace.models import ModelState, Tensor
from zktrace.readouts.scales import centred, gather, scale_names
from zktrace.readouts.weight import WeightReader

LAYERS = (64, 64, 128, 128, 256, 256)
SEED = b"d" * 32


def shared(seed: int = 0) -> ModelState:
    rng = np.random.default_rng(seed)
    arrays = {"conv1.weight": rng.normal(size=(8, 3, 3, 3)).astype(np.float32)}
    for number, size in enumerate(LAYERS):
        arrays[f"bn{number}.weight"] = (1 + 0.05 * rng.normal(size=size)).astype(np.float32)
        arrays[f"bn{number}.running_var"] = np.ones(size, np.float32)
    return ModelState.from_arrays(arrays)


def writer(length: int = 128) -> WeightWriter:
    return WeightWriter(seed=SEED, length=length, layers=LAYERS)


def reader(model: ModelState, length: int = 128) -> WeightReader:
    blank = weight_reader(seed=SEED, length=length, layers=LAYERS, profile="informed")
    return weight_reader(
        seed=SEED, length=length, layers=LAYERS, profile="informed", reference=blank.project(model)
    )


def test_the_change_is_the_smallest_one() -> None:
    word = np.random.default_rng(1).integers(0, 2, 128).astype(np.uint8)
    delta, amplitude = writer().change(word, norm=2.0)
    columns = centred(writer().directions.block(0, 128), LAYERS)
    least = np.linalg.lstsq(columns, amplitude * (2.0 * word - 1), rcond=None)[0]
    assert delta == pytest.approx(least, abs=1e-12)
    assert np.linalg.norm(delta) == pytest.approx(2.0)
    assert centred(delta, LAYERS) == pytest.approx(delta, abs=1e-12)


def test_a_copy_reads_the_amplitude_at_every_position_and_differs_in_nothing_else() -> None:
    model = shared()
    word = np.random.default_rng(2).integers(0, 2, 128).astype(np.uint8)
    made = writer().write(model, word, share=0.05)
    assert reader(model).read(made.state) == pytest.approx(made.amplitude * (2.0 * word - 1), abs=1e-5)
    moved = gather(made.state) - gather(model)
    assert np.linalg.norm(moved) == pytest.approx(0.05 * np.linalg.norm(gather(model)), rel=1e-5)
    for before, after in zip(model.tensors(), made.state.tensors(), strict=True):
        assert (before.name, before.dtype, before.shape) == (after.name, after.dtype, after.shape)
        if before.name not in scale_names(model):
            assert after is before


def test_a_crowded_code_is_written_with_more_amplitude_than_exactness_allows() -> None:
    model, length = shared(), 800
    word = np.random.default_rng(3).integers(0, 2, length).astype(np.uint8)
    crowded = writer(length)
    assert crowded.ridge > 0 == writer(400).ridge
    made = crowded.write(model, word, share=0.05)
    signed = reader(model, length).read(made.state) * (2.0 * word - 1)
    assert signed.mean() == pytest.approx(made.amplitude, rel=1e-4)
    assert (signed > 0).mean() > 0.99
    moved = gather(made.state) - gather(model)
    assert np.linalg.norm(moved) == pytest.approx(0.05 * np.linalg.norm(gather(model)), rel=1e-5)
    columns = centred(crowded.directions.block(0, length), LAYERS)
    exact = np.linalg.lstsq(columns, 2.0 * word - 1, rcond=None)[0]
    assert made.amplitude > 1.5 * np.linalg.norm(moved) / np.linalg.norm(exact)


def test_copies_are_traced_alone_and_averaged() -> None:
    model = shared()
    code = Code(key=CodeKey(secret=b"k" * 32), label="weight", length=256, colluders=2)
    rows = code.rows(range(12))
    write = writer(256)
    copies = [write.write(model, unpack(row, 256)).state for row in rows]

    def named(*who: int) -> set[int]:
        mean = np.mean([gather(copies[i]) for i in who], axis=0)
        values = reader(model, 256).read(with_scales(model, mean))
        evidence = Source(
            carrier="weight",
            values=values,
            biases=code.biases,
            sums=lambda coefficients: sums(rows, coefficients),
            rows=code.rows,
        )
        found = investigate([evidence], level=Fraction(1, 1000))
        return {each.recipient for each in found.named}

    assert all(named(i) == {i} for i in (0, 5, 11))
    assert all(named(i, i + 1) == {i, i + 1} for i in (0, 5, 10))


def test_innocent_models_score_little() -> None:
    model = shared()
    code = Code(key=CodeKey(secret=b"k" * 32), label="weight", length=256, colluders=2)
    rows = code.rows(range(40))
    copy = writer(256).write(model, unpack(rows[0], 256)).state
    signs = np.sign(reader(model, 256).read(copy))
    p = code.biases.probabilities()
    scores = ((unpack(rows, 256) - p) / np.sqrt(p * (1 - p))) @ signs / 16
    assert scores[0] > 7
    assert abs(scores[1:]).max() < 4.5


def test_rows_of_scales_keep_their_element_type() -> None:
    model = ModelState(
        Tensor.from_array(each.name, each.array().astype(np.float16)) for each in shared().tensors()
    )
    word = np.zeros(128, np.uint8)
    made = writer().write(model, word)
    assert {each.dtype for each in made.state.tensors()} == {"float16"}
    assert reader(model).read(made.state) == pytest.approx(-made.amplitude, abs=5e-3)


@pytest.mark.parametrize(
    ("word", "share", "words"),
    [
        (np.zeros(127, np.uint8), 0.05, "128 bits"),
        (np.full(128, 2, np.uint8), 0.05, "128 bits"),
        (np.zeros(128, np.uint8), 0.0, "share"),
        (np.zeros(128, np.uint8), 1.5, "share"),
        (np.zeros(128, np.uint8), float("nan"), "share"),
    ],
)
def test_impossible_words_are_errors(word: np.ndarray, share: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        writer().write(shared(), word, share=share)


def test_a_code_longer_than_the_scales_is_refused() -> None:
    writer(sum(LAYERS) - len(LAYERS))
    for length in (sum(LAYERS) - len(LAYERS) + 1, 0):
        with pytest.raises(InputError, match="room for"):
            writer(length)
    other = ModelState.from_arrays({"bn.weight": np.ones(9), "bn.running_var": np.ones(9)})
    with pytest.raises(InputError, match="not those of the release"):
        writer().write(other, np.zeros(128, np.uint8))
