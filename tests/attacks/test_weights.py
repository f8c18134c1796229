"""Pruning and noise of all matrices, against loops over their numbers."""

import numpy as np
import pytest

from zktrace.attacks.weights import noise_matrices, prune_matrices
from zktrace.errors import InputError


def model() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "a.weight": rng.normal(size=(8, 25)).astype(np.float32),
        "b.weight": (5 + rng.normal(size=(4, 2, 3, 3))).astype(np.float16),
        "a.bias": rng.normal(size=8).astype(np.float32),
        "ids": np.arange(6).reshape(2, 3),
    }


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_the_smallest_of_each_matrix_go(share: float) -> None:
    before, after = model(), prune_matrices(model(), share=share)
    for name in ("a.weight", "b.weight"):
        flat = sorted(before[name].reshape(-1).tolist(), key=abs)
        gone = sum(each == 0 for each in after[name].reshape(-1))
        assert gone == pytest.approx(share * len(flat), abs=1.5)
        kept = [x for x, y in zip(before[name].reshape(-1), after[name].reshape(-1), strict=True) if y != 0]
        assert sorted(map(float, kept), key=abs) == flat[gone:]
        assert after[name].dtype == before[name].dtype
    assert np.array_equal(after["a.bias"], before["a.bias"])
    assert np.array_equal(after["ids"], before["ids"])


def test_noise_is_as_large_as_a_part_of_each_matrix_own_deviation() -> None:
    before, after = model(), noise_matrices(model(), sigma=0.5, rng=np.random.default_rng(1))
    for name in ("a.weight", "b.weight"):
        change = (after[name] - before[name]).astype(np.float64)
        assert change.std() == pytest.approx(0.5 * before[name].astype(np.float64).std(), rel=0.2)
        assert after[name].dtype == before[name].dtype
    assert np.array_equal(after["a.bias"], before["a.bias"])
    assert np.array_equal(after["ids"], before["ids"])


def test_impossible_attacks_are_errors() -> None:
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError):
            prune_matrices(model(), share=share)
    for sigma in (-1.0, float("inf")):
        with pytest.raises(InputError):
            noise_matrices(model(), sigma=sigma, rng=np.random.default_rng(0))
