"""PGD against bits: stays in its ball, flips what can be flipped, and knows only what it is told."""

import numpy as np
import pytest

from zktrace.attacks.flips import NORMS, KnownBits, flip_bits, guessed_bits
from zktrace.attacks.flips import _clamped as clamped
from zktrace.attacks.flips import _rescaled as rescaled
from zktrace.errors import InputError

SCALES = ("bn1.weight", "layer1.0.bn1.weight")
RADII = (0.05, 0.1, 0.2)


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {"conv1.weight": rng.normal(size=(6, 3, 3, 3)).astype(np.float32)}
    for name in SCALES:
        layer = name.removesuffix(".weight")
        state[name] = (1 + 0.1 * rng.normal(size=200)).astype(np.float32)
        state[f"{layer}.running_var"] = np.ones(200, np.float32)
    return state


def gamma(state: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([state[name].astype(np.float64) for name in SCALES])


def marked(count: int = 60, seed: int = 1) -> tuple[dict[str, np.ndarray], KnownBits]:
    """A model whose bits are those of the word, all with the same small margin."""
    state, rng = model(), np.random.default_rng(seed)
    directions = rng.normal(size=(count, 400))
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    word = rng.integers(2, size=count).astype(np.uint8)
    wanted = 0.1 * (2.0 * word - 1.0)
    start = gamma(state)
    moved = start + np.linalg.pinv(directions) @ (wanted - directions @ start)
    for at, name in enumerate(SCALES):
        state[name] = moved[200 * at : 200 * (at + 1)].astype(np.float32)
    return state, KnownBits(scales=SCALES, directions=directions, word=word)


def slowly(state: dict[str, np.ndarray], bits: KnownBits) -> int:
    """Lost bits, counted one by one as they are read."""
    lost, values = 0, gamma(state)
    for direction, bit in zip(bits.directions, bits.word, strict=True):
        read = sum(float(x) * float(y) for x, y in zip(direction, values, strict=True)) > 0
        lost += read != bool(bit)
    return lost


def length(norm: str, change: np.ndarray) -> float:
    return float(np.abs(change).max()) if norm == "linf" else float(np.sqrt((change**2).sum()))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", RADII)
def test_scales_stay_in_the_ball_and_nothing_else_moves(norm: str, radius: float) -> None:
    before, bits = marked()
    after = flip_bits(before, bits, norm=norm, radius=radius)
    assert length(norm, gamma(after) - gamma(before)) <= radius + 1e-6  # float32
    for name, array in before.items():
        assert (array.dtype, array.shape) == (after[name].dtype, after[name].shape)
        assert name in SCALES or np.array_equal(array, after[name])


@pytest.mark.parametrize("norm", NORMS)
def test_more_bits_are_lost_in_a_larger_ball_and_more_than_by_noise_of_the_same_length(norm: str) -> None:
    before, bits = marked()
    assert slowly(before, bits) == bits.flipped(before) == 0
    rng, lost = np.random.default_rng(2), [0]
    for radius in RADII:
        after = flip_bits(before, bits, norm=norm, radius=radius)
        assert slowly(after, bits) == bits.flipped(after) >= lost[-1]
        lost.append(bits.flipped(after))
        change = gamma(after) - gamma(before)
        noise = rng.standard_normal((50, len(change)))
        noise *= np.linalg.norm(change) / np.linalg.norm(noise, axis=1, keepdims=True)
        by_noise = [(bits.signed(gamma(before) + each) < 0).sum() for each in noise]
        assert bits.flipped(after) > max(by_noise) or (norm, radius <= 0.1) == ("l2", True)
    assert lost[-1] > 1
    assert lost[-1] == len(bits.word) or norm == "l2"


def test_a_ball_that_holds_one_flip_is_used() -> None:
    before, bits = marked(count=8)
    at = 0.1 * 1.02  # beyond the margin of one bit, along its own direction
    assert bits.flipped(flip_bits(before, bits, norm="l2", radius=at)) >= 1
    assert bits.flipped(flip_bits(before, bits, norm="l2", radius=0.1 * 0.98)) == 0  # `lem:flip`


def test_what_was_lost_before_counts_and_the_objective_never_falls() -> None:
    before, bits = marked()
    wrong = KnownBits(
        scales=SCALES,
        directions=bits.directions,
        word=np.where(np.arange(60) < 20, 1 - bits.word, bits.word).astype(np.uint8),
    )
    for norm in NORMS:
        for radius in (0.0, *RADII):
            assert wrong.flipped(flip_bits(before, wrong, norm=norm, radius=radius)) >= 20
    whole = KnownBits(scales=SCALES, directions=bits.directions, word=(1 - bits.word).astype(np.uint8))
    assert not np.any(gamma(flip_bits(before, whole, norm="linf", radius=0.2)) - gamma(before))


def test_projections_are_the_nearest_points_of_a_ball() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        change = rng.normal(size=5)
        for norm, project in (("linf", clamped), ("l2", rescaled)):
            found = project(change, 0.7)
            assert length(norm, found) <= 0.7 * (1 + 1e-12)
            others = rng.uniform(-0.7, 0.7, size=(2000, 5))
            inside = others[[length(norm, each) <= 0.7 for each in others]]
            assert np.linalg.norm(found - change) <= np.linalg.norm(inside - change, axis=1).min() + 1e-12
            assert np.array_equal(project(found, 0.7 * (1 + 1e-9)), found)
    assert rescaled(np.array([3.0, 4.0]), 1.0) == pytest.approx([0.6, 0.8], abs=1e-15)


def test_whoever_guesses_flips_its_guesses_and_few_of_the_others() -> None:
    before, bits = marked()
    guess = guessed_bits(before, 40, np.random.default_rng(4))
    assert guess.flipped(before) == 0
    after = flip_bits(before, guess, norm="l2", radius=0.2)
    known = flip_bits(before, bits, norm="l2", radius=0.2)
    assert guess.flipped(after) > 0
    assert bits.flipped(after) < bits.flipped(known)
    again = guessed_bits(before, 40, np.random.default_rng(4))
    assert np.array_equal(again.directions, guess.directions)


def test_what_does_not_fit_is_refused() -> None:
    before, bits = marked()
    with pytest.raises(InputError, match="norm 'l1'"):
        flip_bits(before, bits, norm="l1", radius=0.1)
    for radius in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="a radius of"):
            flip_bits(before, bits, norm="l2", radius=radius)
    with pytest.raises(InputError, match=r"no 'bn1\.weight'"):
        flip_bits({}, bits, norm="l2", radius=0.1)
    with pytest.raises(InputError, match="scales for directions"):
        flip_bits({**before, "bn1.weight": np.ones(3)}, bits, norm="l2", radius=0.1)
    with pytest.raises(InputError, match="not finite"):
        flip_bits({**before, "bn1.weight": np.full(200, np.nan)}, bits, norm="l2", radius=0.1)
    with pytest.raises(InputError, match="a word of shape"):
        KnownBits(scales=SCALES, directions=bits.directions, word=bits.word[:3])
    with pytest.raises(InputError, match="guesses"):
        guessed_bits(before, 1 << 30, np.random.default_rng(0))
