"""A rotation keeps distances and nothing else."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from attacks.lived import apart, features, lived
from zktrace.attacks.isometry import isometry
from zktrace.attacks.rotation import orthogonal
from zktrace.errors import InputError
from zktrace.learning.backbone import backbone_of


def distances(found: np.ndarray) -> np.ndarray:
    wide = found.astype(np.float64)
    return np.linalg.norm(wide[:, None] - wide[None], axis=2)


def test_distances_stay_and_coordinates_do_not() -> None:
    state = lived()
    after = isometry(state, np.random.default_rng(1))
    assert set(after) - set(state) == {"fc.weight"}
    assert all(np.array_equal(after[name], state[name]) for name in state)
    assert distances(features(after)) == pytest.approx(distances(features(state)), rel=1e-4, abs=1e-5)
    assert apart(features(after), features(state)) > 0.1
    assert np.array_equal(
        isometry(state, np.random.default_rng(1))["fc.weight"],
        isometry(state, np.random.default_rng(1))["fc.weight"],
    )


def test_a_second_rotation_follows_the_first() -> None:
    state = lived() | {"fc.weight": np.eye(64, dtype=np.float32)[:40], "fc.bias": np.ones(40, np.float32)}
    after = isometry(state, np.random.default_rng(2))
    turn = orthogonal(40, np.random.default_rng(2))
    assert after["fc.weight"].shape == (40, 64)
    assert features(after) == pytest.approx(features(state) @ turn.T, rel=1e-3, abs=1e-4)
    assert backbone_of(after).features == 40


def test_maps_are_orthogonal() -> None:
    turn = orthogonal(30, np.random.default_rng(3))
    assert turn @ turn.T == pytest.approx(np.eye(30), abs=1e-12)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InputError, match="not a ResNet"):
        isometry({"bn1.weight": np.ones(3)}, np.random.default_rng(0))
