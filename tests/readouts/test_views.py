"""Views are shifts and mirror images, and their scores are averaged."""

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.readouts.views import VIEWS, in_views, mean_view


def test_views_are_the_images_mirrored_and_moved() -> None:
    images = np.random.default_rng(0).standard_normal((5, 3, 6, 7)).astype(np.float32)
    found = in_views(images).reshape(len(VIEWS), 5, 3, 6, 7)
    assert found.dtype == np.float32
    assert np.array_equal(found[0], images)
    assert np.array_equal(found[1], images[..., ::-1])
    for seen, view in zip(found, VIEWS, strict=True):
        turned = images[..., ::-1] if view.mirrored else images
        for y in range(6):
            for x in range(7):
                row, column = y - view.down, x - view.right
                row = -row if row < 0 else 2 * 5 - row if row > 5 else row  # reflected at the border
                column = -column if column < 0 else 2 * 6 - column if column > 6 else column
                assert np.array_equal(seen[:, :, y, x], turned[:, :, row, column])


def test_no_two_views_are_alike_and_the_first_is_plain() -> None:
    assert len(set(VIEWS)) == len(VIEWS)
    assert VIEWS[0] == (False, 0, 0)


def test_scores_of_a_probe_are_the_mean_over_its_views() -> None:
    scores = np.random.default_rng(1).standard_normal((len(VIEWS), 5, 4))
    assert mean_view(scores.reshape(-1, 4)) == pytest.approx(scores.mean(axis=0))
    assert np.isfinite(mean_view(np.full((len(VIEWS), 2), 1.7e308))).all()


def test_what_is_no_image_is_the_same_in_all_views() -> None:
    inputs = np.random.default_rng(2).standard_normal((5, 7))
    assert np.array_equal(in_views(inputs).reshape(len(VIEWS), 5, 7), np.stack([inputs] * len(VIEWS)))


def test_what_has_no_views_is_refused() -> None:
    for bad in (np.zeros((2, 3, 2, 8)), np.zeros((2, 3, 8, 2))):
        with pytest.raises(InputError, match="shifted"):
            in_views(bad)
    with pytest.raises(InputError, match="views"):
        mean_view(np.zeros((len(VIEWS) + 1, 2)))
