"""A leaker's own head answers well, and nothing of the copy changes."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from learning.synthetic import task, taught
from zktrace.attacks.service import answers_of, with_head
from zktrace.errors import InputError


def test_a_head_answers_with_classes_and_the_copy_stays() -> None:
    copy, (images, labels) = taught(width=8), task(480, seed=3)
    made = with_head(copy, images, labels)
    assert {name for name in made if name not in copy} == {"fc.weight", "fc.bias"}
    assert all(np.array_equal(made[name], copy[name]) for name in copy)
    others, truth = task(60, seed=4)
    found = answers_of(made, others)
    assert found.dtype == np.int64
    assert (found == truth - 10).mean() > 0.6
    with pytest.raises(InputError, match="two classes"):
        with_head(copy, images, np.zeros(480, np.int64))
    with pytest.raises(InputError, match="labelled"):
        with_head(copy, images, labels[:5])
