"""Features are brought into the reference's coordinates by what anchors say."""

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.readouts.linear_maps import METHODS, Map, align_features

RNG = np.random.default_rng(0)
MIXING = RNG.standard_normal((24, 24)) * np.logspace(0, -2, 24)  # unequal variances, as features have


def drawn(count: int, seed: int = 1) -> np.ndarray:
    return np.abs(np.random.default_rng(seed).standard_normal((count, 24)) @ MIXING) + 0.5


def rotation(size: int = 24) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(5).standard_normal((size, size)))[0]


def test_a_rotation_is_recovered() -> None:
    anchors, turn = drawn(200), rotation()
    fitted = align_features(anchors @ turn, anchors, "procrustes")
    assert fitted.matrix == pytest.approx(turn.T, abs=1e-9)
    assert fitted.apply(drawn(50, 2) @ turn) == pytest.approx(drawn(50, 2), abs=1e-9)


def test_a_rotation_of_slightly_other_features_is_recovered_nearly() -> None:
    """A copy's features differ from the reference's; the fit keeps that difference."""
    anchors, fresh, turn = drawn(400), drawn(50, 2), rotation()
    change = 0.02 * np.random.default_rng(3).standard_normal((24, 24))
    copy = lambda x: x + x @ change  # noqa: E731
    fitted = align_features(copy(anchors) @ turn, anchors, "procrustes")
    left = fitted.apply(copy(fresh) @ turn) - copy(fresh)
    assert np.linalg.norm(left) < 1.2 * np.linalg.norm(copy(fresh) - fresh)
    assert fitted.matrix @ fitted.matrix.T == pytest.approx(np.eye(24), abs=1e-9)


@pytest.mark.parametrize("anchors", [drawn(200), drawn(10), drawn(200) * (np.arange(24) < 20)])
def test_an_identical_model_gets_the_identity(anchors: np.ndarray) -> None:
    """Few anchors or dead features leave directions open: those stay where they are."""
    fitted = align_features(anchors, anchors, "procrustes")
    assert fitted.matrix == pytest.approx(np.eye(24), abs=1e-6)
    assert fitted.apply(anchors) == pytest.approx(anchors, abs=1e-9)


def test_float32_features_are_taken_and_shifts_are_undone() -> None:
    anchors, turn = drawn(200), rotation()
    fitted = align_features((anchors @ turn + 3).astype(np.float32), anchors.astype(np.float32), "procrustes")
    assert fitted.apply(drawn(9, 2) @ turn + 3) == pytest.approx(drawn(9, 2), abs=1e-3)


@pytest.mark.parametrize("width", [12, 24, 60])
def test_ridge_maps_any_width(width: int) -> None:
    low = np.random.default_rng(7).standard_normal((12, width))
    seen = lambda x: x[:, :12] @ low  # noqa: E731
    wanted = lambda x: np.tanh(x[:, :12]) + 0.3 * x[:, :12]  # noqa: E731
    fitted = align_features(seen(drawn(500)), wanted(drawn(500)), "ridge")
    assert fitted.matrix.shape == (width, 12)
    left = fitted.apply(seen(drawn(100, 2))) - wanted(drawn(100, 2))
    assert (
        np.square(left).sum()
        < 0.2 * np.square(wanted(drawn(100, 2)) - wanted(drawn(100, 2)).mean(axis=0)).sum()
    )


def test_ridge_is_least_squares_where_anchors_are_many() -> None:
    x, y = drawn(500), drawn(500) @ rotation()[:, :7] + 1
    fitted = align_features(x, y, "ridge", ridge=1e-12)
    assert fitted.apply(drawn(20, 2)) == pytest.approx(drawn(20, 2) @ rotation()[:, :7] + 1, abs=1e-5)
    shrunk = align_features(x, y, "ridge", ridge=10.0)
    assert np.linalg.norm(shrunk.matrix) < np.linalg.norm(fitted.matrix)


@pytest.mark.parametrize(
    ("suspect", "reference", "method", "words"),
    [
        (np.ones((5, 3)), np.ones((4, 3)), "ridge", "anchors"),
        (np.ones((1, 3)), np.ones((1, 3)), "ridge", "anchors"),
        (drawn(9)[:, :5], drawn(9), "procrustes", "equal widths"),
        (drawn(9), drawn(9), "affine", "not known"),
        (np.full((9, 24), np.nan), drawn(9), "ridge", "not finite"),
        (np.ones((9, 24), int), drawn(9), "ridge", "type"),
        (np.ones(9), drawn(9), "ridge", "shape"),
        (drawn(9) * 1e300, drawn(9) * 1e300, "procrustes", "too large"),
        (drawn(9) * 1e300, drawn(9), "ridge", "too large"),
    ],
)
def test_impossible_alignments_are_errors(
    suspect: np.ndarray, reference: np.ndarray, method: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        align_features(suspect, reference, method)  # type: ignore[arg-type]


def test_constant_features_say_nothing() -> None:
    for method in METHODS:
        fitted = align_features(np.ones((9, 24)), drawn(9), method)
        assert fitted.apply(np.ones((2, 24))) == pytest.approx(np.tile(drawn(9).mean(axis=0), (2, 1)))


def test_a_map_takes_its_own_width_only() -> None:
    made = Map(matrix=np.eye(3), origin=np.zeros(3), target=np.zeros(3))
    with pytest.raises(InputError, match="map from 3"):
        made.apply(np.ones((2, 4)))
