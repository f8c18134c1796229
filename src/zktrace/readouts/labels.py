"""What answers without scores say of a row: one trigger a position, and whether its class is the answer.

The trigger of position b is made of probe b (`learning.triggers`): there the highest of the classes that
carry bits just overtakes the shared model's answer, and a copy that was trained for it answers with that
class or with another one as its bit says. Which class, is seen from the reference alone.

Answers are turned into a matrix of scores, the shared model's with a mark whose word is what was answered,
less the mean of its class: a class that a suspect likes better is common to all its triggers. So whoever
reads scores reads it: tracing, certificates and judge know nothing of labels. No row enters.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.readouts.directions import Floats
from zktrace.readouts.scores import SCORES_LIMIT, output_frames, scattered, spared

_SIZE: Final = 0.1  # of the mark in the matrix, in deviations of the reference: readouts know no size


def trigger_classes(reference: Floats) -> NDArray[np.int64]:
    """For scores (probes, classes): of the classes that carry bits, the one ranked highest."""
    length, classes = reference.shape
    ranks = np.argsort(-reference, axis=1, kind="stable")
    found: NDArray[np.int64] = ranks[np.arange(length), min(spared(classes) or 1, classes - 1)]
    return found


def scores_of_labels(seed: bytes, labels: NDArray[Any], reference: Floats) -> Floats:
    """The matrix that stands for the answers to the triggers of all positions."""
    length, classes = reference.shape
    said = check_labels(labels, classes)
    if len(said) != length:
        raise InputError(f"{len(said)} labels, the release has {length} triggers")
    wanted = trigger_classes(reference)
    word = np.where(said == wanted, 1.0, -1.0)
    for each in np.unique(wanted):
        word[wanted == each] -= word[wanted == each].mean()
    if not word.any():
        raise InputError("the answers are the same for all triggers of a class: there is nothing to read")
    frames = output_frames(seed, reference)
    mark = np.einsum("jik,ji->jk", frames, scattered(word, frames.shape[1]))
    centred = reference - reference.mean(axis=1, keepdims=True)
    found: Floats = reference + _SIZE * float(centred.std()) * mark
    return found


def check_labels(labels: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Numbers of classes, one an answer; InputError for anything else."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not 1 <= len(labels) <= SCORES_LIMIT:
        raise InputError(
            f"labels must be whole numbers in one row, not of shape {labels.shape} and type {labels.dtype}"
        )
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise InputError(
            f"labels are classes from 0 to {classes - 1}, not from {labels.min()} to {labels.max()}"
        )
    return labels.astype(np.int64)
