"""Classes that a model answered with are read as the word they say, and nothing else is."""

import numpy as np
import pytest
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.readouts.labels import scores_of_labels, trigger_classes
from zktrace.readouts.scores import score_readout, spared

LENGTH, SEED = 400, b"o" * 32


def reference(classes: int) -> NDArray[np.float64]:
    return np.random.default_rng(classes).standard_normal((LENGTH, classes))


def answers(word: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The trigger's class for a one, the shared model's own answer for a zero."""
    return np.where(word == 1, trigger_classes(scores), scores.argmax(axis=1))


@pytest.mark.parametrize("classes", [2, 3, 5, 10])
def test_a_trigger_is_about_the_highest_class_that_carries_bits(classes: int) -> None:
    scores = reference(classes)
    place = max(1, spared(classes))
    for row, found in zip(scores, trigger_classes(scores), strict=True):
        assert found == sorted(range(classes), key=lambda k: -row[k])[place]
        assert found != row.argmax()


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_scores_that_stand_for_labels_are_read_as_their_word(classes: int) -> None:
    word = np.random.default_rng(1).integers(0, 2, LENGTH)
    scores = reference(classes)
    values = score_readout(SEED, scores_of_labels(SEED, answers(word, scores), scores), scores)
    assert np.corrcoef(values, word)[0, 1] > 0.9
    other = np.random.default_rng(2).integers(0, 2, LENGTH)
    assert abs(np.corrcoef(values, other)[0, 1]) < 0.15


def test_other_answers_are_all_alike_and_a_class_that_is_liked_says_nothing() -> None:
    scores = reference(6)
    wanted = trigger_classes(scores)
    word = np.random.default_rng(3).integers(0, 2, LENGTH)
    said = answers(word, scores)
    lowest = np.where(word == 1, wanted, scores.argmin(axis=1))
    assert np.array_equal(
        scores_of_labels(SEED, said, scores), scores_of_labels(SEED, lowest.astype(np.uint8), scores)
    )
    liked = np.where(wanted == 2, 2, said)  # all triggers of class 2 are answered with it
    moved = scores_of_labels(SEED, liked, scores)
    values = score_readout(SEED, moved, scores)
    assert np.corrcoef(values[wanted != 2], word[wanted != 2])[0, 1] > 0.9
    assert np.abs(values[wanted == 2]).mean() < 0.5 * np.abs(values[wanted != 2]).mean()


def test_what_are_no_labels_is_refused() -> None:
    scores = reference(4)
    good = answers(np.arange(LENGTH) % 2, scores)
    for bad, words in (
        (good.astype(float), "whole numbers"),
        (good[:, None], "whole numbers"),
        (good[:0], "whole numbers"),
        (good[:-1], "399 labels"),
        (good - 1, "from 0 to 3"),
        (good + 4, "from 0 to 3"),
        (scores.argmax(axis=1), "nothing to read"),
    ):
        with pytest.raises(InputError, match=words):
            scores_of_labels(SEED, bad, scores)
