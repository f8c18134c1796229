"""Scores are read as the formula says, whatever their scale and offsets; hostile ones are refused."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from readouts.making import output_reader
from zktrace.errors import InputError, LimitExceeded, MalformedModel
from zktrace.models import save_model
from zktrace.readouts.outputs import OutputReader
from zktrace.readouts.scores import (
    PARTS,
    check_scores,
    differences,
    gathered,
    headed,
    output_frames,
    read_matrix,
    scattered,
    scores_digest,
    spared,
)

LENGTH, CLASSES = 40, 5
SEED = b"o" * 32
Floats = NDArray[np.float64]


def matrix(seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((LENGTH, CLASSES))


def reader(reference: Floats | None = None) -> OutputReader:
    given = matrix(0) if reference is None else reference
    return output_reader(seed=SEED, length=LENGTH, classes=CLASSES, reference=given.reshape(-1))


@pytest.mark.parametrize(("classes", "left_alone"), [(2, 0), (3, 1), (5, 1), (6, 2), (10, 3), (40, 3)])
def test_directions_are_orthonormal_add_up_to_zero_and_spare_the_highest_classes(
    classes: int, left_alone: int
) -> None:
    reference = np.random.default_rng(classes).standard_normal((300, classes))
    found = output_frames(SEED, reference)
    many = min(6, classes - left_alone - 1)
    assert found.shape == (300, many, classes)
    products = np.einsum("jik,jhk->jih", found, found)
    assert products == pytest.approx(np.broadcast_to(np.eye(many), products.shape), abs=1e-12)
    assert np.abs(found.sum(axis=2)).max() < 1e-12
    assert spared(classes) == left_alone
    for scores, frame in zip(reference, found, strict=True):
        highest = sorted(range(classes), key=lambda k: -scores[k])[:left_alone]
        assert [k for k in range(classes) if not frame[:, k].any()] == sorted(highest)
    assert np.abs(found.mean(axis=0)).max() < 0.15  # no class is preferred


@pytest.mark.parametrize(("length", "many"), [(40, 3), (41, 6), (6, 6), (3, 6), (5, 1)])
def test_every_bit_stands_at_as_many_probes_and_is_gathered_from_them(length: int, many: int) -> None:
    rng = np.random.default_rng(length)
    values, word = rng.standard_normal((length, many)), rng.integers(0, 2, length)
    step, slow = length // many, np.zeros(length)
    bits = scattered(word, many)
    for j in range(length):
        for i in range(many):
            b = (j + i * step) % length
            slow[b] += values[j, i] / np.sqrt(many)
            assert bits[j, i] == word[b]
    assert gathered(values) == pytest.approx(slow)
    assert gathered(bits.astype(float)) == pytest.approx(np.sqrt(many) * word)


def test_scores_of_one_class_carry_nothing() -> None:
    with pytest.raises(InputError, match="at least 2"):
        output_frames(SEED, np.zeros((3, 1)))


def standard(scores: Floats) -> tuple[Floats, float]:
    found = np.array([[x - row.mean() for x in row] for row in scores])
    found -= np.array([column.mean() for column in found.T])
    size = (sum(x * x for x in found.ravel()) / found.size) ** 0.5
    return found / size, size


def slow_differences(scores: Floats, reference: Floats, *, full: bool = True) -> Floats:
    """The same by other ways: the ridge by more equations, the covariance's root by singular values."""
    (own, _), (wanted, spread) = standard(scores), standard(reference)
    length, classes = wanted.shape
    slope = sum(x * y for x, y in zip(own.ravel(), wanted.ravel(), strict=True)) / own.size
    left = own - slope * wanted
    if full:
        pull = (0.1 * (wanted**2).sum() / classes) ** 0.5
        more = np.vstack([wanted, pull * np.eye(classes)])
        left = left - wanted @ np.linalg.lstsq(more, np.vstack([left, 0 * more[:classes]]), rcond=None)[0]
        floor = 0.3 * (left**2).sum() / length / classes + 0.01**2
        u, sizes, v = np.linalg.svd(left, full_matrices=False)
        left = u @ np.diag(sizes / np.sqrt(sizes**2 / length + floor)) @ v
    lengths = [float(np.sqrt((row**2).sum())) for row in left]
    typical = max(float(np.median(lengths)), 0.01)
    rows = [row / (size**2 + typical**2) ** 0.5 for row, size in zip(left, lengths, strict=True)]
    return np.sign(slope) * spread * np.array(rows)


def slow(scores: Floats, reference: Floats) -> list[float]:
    """Each value as a sum over the directions of its bit."""
    difference, frames = slow_differences(scores, reference), output_frames(SEED, reference)
    many = frames.shape[1]
    values = []
    for b in range(LENGTH):
        total = 0.0
        for i in range(many):
            j = (b - i * (LENGTH // many)) % LENGTH
            total += sum(frames[j, i, k] * difference[j, k] for k in range(CLASSES)) / many**0.5
        values.append(total)
    return values


@pytest.mark.parametrize("seed", range(3))
def test_the_reading_is_the_formula(seed: int) -> None:
    scores = matrix(0) + 0.3 * matrix(seed + 1)
    assert reader().read_answers(scores) == pytest.approx(slow(scores, matrix(0)), abs=1e-10)


def test_with_very_many_classes_one_slope_is_fitted() -> None:
    rng = np.random.default_rng(7)
    reference = rng.standard_normal((30, 300))
    scores = 3 * reference + rng.standard_normal((30, 300))
    expected = slow_differences(scores, reference, full=False)
    assert differences(scores, reference) == pytest.approx(expected, abs=1e-10)


def test_errors_that_classes_share_and_probes_that_are_off_do_not_hide_a_word() -> None:
    """A third of the probes is way off, two classes stand for one another: the word is read better."""
    rng = np.random.default_rng(11)
    length, classes = 600, 10
    reference = 5 * rng.standard_normal((length, classes))
    word = rng.integers(0, 2, length) * 2.0 - 1.0
    frames = output_frames(SEED, reference)
    marked = np.einsum("ji,jik->jk", scattered(word, frames.shape[1]), frames)
    mixing = np.eye(classes)
    mixing[:2, :2] = [[0.6, 0.4], [0.4, 0.6]]
    off = np.where(np.arange(length) % 3 == 0, 4.0, 1.0)[:, None]
    scores = reference @ mixing + 0.3 * marked + off * rng.standard_normal((length, classes))
    read = output_reader(seed=SEED, length=length, classes=classes, reference=reference.reshape(-1))
    plain = gathered(np.einsum("jik,jk->ji", frames, scores - reference))
    agreement, before = (float(np.corrcoef(each, word)[0, 1]) for each in (read.read_answers(scores), plain))
    assert agreement > 1.3 * before > 0


def test_the_reference_reads_nothing() -> None:
    assert np.abs(reader().read_answers(matrix(0))).max() < 1e-12


def test_scale_offsets_and_constants_a_probe_do_not_matter() -> None:
    """Temperature, class bias, softmax: none of them is seen; a constant is invisible to a softmax."""
    scores = matrix(0) + 0.3 * matrix(1)
    plain = reader().read_answers(scores)
    other = -7.5 * scores + np.arange(CLASSES) + 100 * np.random.default_rng(3).standard_normal((LENGTH, 1))
    assert reader().read_answers(other) == pytest.approx(plain, abs=1e-9)
    logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert reader().read_answers(logarithms) == pytest.approx(plain, abs=1e-10)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1.7e308])
def test_huge_and_tiny_scores_are_read(scale: float) -> None:
    scores = matrix(0) + 0.3 * matrix(1)
    scores /= np.abs(scores).max()
    assert reader().read_answers(scale * scores) == pytest.approx(reader().read_answers(scores), abs=1e-9)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((LENGTH, CLASSES)),
        np.ones((LENGTH, CLASSES)),
        np.tile(np.arange(float(CLASSES)), (LENGTH, 1)),
        matrix(1)[:-1],
        matrix(1)[:, :-1],
        matrix(1).reshape(-1),
        np.where(matrix(1) > 2, np.nan, matrix(1)),
        np.full((LENGTH, CLASSES), np.inf),
        np.arange(LENGTH * CLASSES).reshape(LENGTH, CLASSES),
        matrix(1).astype(complex),
    ],
)
def test_what_is_no_matrix_of_scores_is_refused(bad: NDArray[np.generic]) -> None:
    with pytest.raises(InputError):
        reader().read_answers(bad)


@pytest.mark.filterwarnings("error")
def test_numbers_of_any_size_are_read_or_refused() -> None:
    rng = np.random.default_rng(5)
    read = 0
    for _ in range(400):
        shape = int(rng.integers(1, 30)), int(rng.integers(2, 9))
        reference, scores = wild(rng, shape), wild(rng, shape)
        given = output_reader(seed=SEED, length=shape[0], classes=shape[1], reference=reference.reshape(-1))
        try:
            values = given.read_answers(scores)
        except InputError:
            continue
        assert np.isfinite(values).all()
        read += 1
    assert read > 50


def wild(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    found: Floats = rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, (1, 1))
    for place in (rng.integers(shape[0]), (slice(None), rng.integers(shape[1])), 0):
        if rng.random() < 0.2:
            found[place] = rng.choice([-1.7e308, 1e-308, 0.0, 1.0])
    return found


@pytest.mark.parametrize("reference", [np.ones((LENGTH, CLASSES)), np.tile(np.arange(5.0), (LENGTH, 1))])
def test_a_reference_that_says_nothing_is_refused(reference: Floats) -> None:
    with pytest.raises(InputError, match="all probes the same"):
        reader(reference).read_answers(matrix(1))


def test_a_reference_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="200 finite numbers"):
        output_reader(seed=SEED, length=LENGTH, classes=CLASSES, reference=np.zeros(LENGTH))


def test_the_digest_is_of_the_numbers_and_their_shape() -> None:
    scores = matrix(1)
    assert scores_digest(scores) == scores_digest(np.asfortranarray(scores))
    assert scores_digest(scores.astype(np.float32)) != scores_digest(scores)
    assert scores_digest(scores.reshape(CLASSES, LENGTH)) != scores_digest(scores)
    half = scores.astype(np.float16)
    assert scores_digest(half) == scores_digest(half.astype(np.float64))
    assert check_scores(half).dtype == np.float64


def test_a_head_is_found_that_the_suspect_does_not_have() -> None:
    """Features that any linear map made of scores with a word in them tell the word as the scores do."""
    rng = np.random.default_rng(9)
    length, classes = 512, 8
    reference = rng.standard_normal((length, classes)) @ rng.standard_normal((classes, classes))
    frames = output_frames(SEED, reference)
    word = rng.choice([-1.0, 1.0], length)
    bits = scattered(word, frames.shape[1])
    scores = reference + 0.3 * np.einsum("ji,jik->jk", bits, frames)
    scores += 0.3 * rng.standard_normal(scores.shape)
    features = np.tanh(0.1 * scores @ rng.standard_normal((classes, 24)))
    own = output_reader(seed=SEED, length=length, classes=classes, reference=reference.reshape(-1))

    def deviations(given: Floats) -> float:
        found = own.readout(given.reshape(-1), own.reference)
        return float(word @ found / np.linalg.norm(found))

    whole, found = deviations(scores), deviations(headed(features, reference))
    assert whole > 10
    assert found > 0.6 * whole
    assert (
        abs(deviations(headed(np.tanh(0.1 * reference @ rng.standard_normal((classes, 24))), reference))) < 4
    )


def test_no_probe_of_a_part_enters_its_own_fit() -> None:
    """Whatever stands at the probes of one part, the map that gives them scores is the same."""
    rng = np.random.default_rng(3)
    features, reference = rng.standard_normal((64, 6)), rng.standard_normal((64, 4))
    plain = headed(features, reference)
    for each in range(PARTS):
        here = np.arange(64) % PARTS == each
        other = np.where(here[:, None], reference + rng.standard_normal(4), reference)
        np.testing.assert_allclose(headed(features, other)[here], plain[here], rtol=1e-12)


def test_features_that_overflow_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="too large to be given a head"):
        headed(1e200 * rng.standard_normal((64, 3)), rng.standard_normal((64, 4)))


def test_files_of_scores(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", scores=matrix(1))
    save_model(tmp_path / "a.safetensors", {"anything": matrix(1).astype(np.float32)})
    assert np.array_equal(read_matrix(tmp_path / "a.npz"), matrix(1))
    assert read_matrix(tmp_path / "a.safetensors").dtype == np.float32
    np.savez(tmp_path / "two.npz", a=matrix(1), b=matrix(2))
    np.savez(tmp_path / "cube.npz", a=np.zeros((3, 3, 3)))
    np.savez(tmp_path / "whole.npz", a=np.zeros((3, 3), dtype=np.int64))
    np.savez(tmp_path / "nan.npz", a=np.full((3, 3), np.nan))
    (tmp_path / "text.npz").write_bytes(b"PK\x03\x04 scores")
    for name in ("two", "cube"):
        with pytest.raises(LimitExceeded):
            read_matrix(tmp_path / f"{name}.npz")
    for name in ("whole", "nan", "text"):
        with pytest.raises(MalformedModel, match=name):
            read_matrix(tmp_path / f"{name}.npz")
