"""Attacks change what they say and nothing else."""

import numpy as np
import pytest

from zktrace.attacks.scales import (
    batch_norms,
    noise_scales,
    prune_scales,
    quantise_all,
    quantise_scales,
    reset_scales,
    stage_of,
)
from zktrace.errors import InputError

LAYERS = ("bn1", "layer1.0.bn1", "layer4.1.bn2", "layer2.0.downsample.1")
SCALES = {f"{layer}.weight" for layer in LAYERS}


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {"conv1.weight": rng.normal(size=(6, 3, 3, 3)).astype(np.float32)}
    for layer in LAYERS:
        state[f"{layer}.weight"] = (1 + 0.1 * rng.normal(size=50)).astype(np.float32)
        state[f"{layer}.bias"] = rng.normal(size=50).astype(np.float32)
        state[f"{layer}.running_mean"] = rng.normal(size=50).astype(np.float32)
        state[f"{layer}.running_var"] = rng.uniform(1, 2, size=50).astype(np.float32)
        state[f"{layer}.num_batches_tracked"] = np.array(seed + 5)
    return state


def changed(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> set[str]:
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert (array.dtype, array.shape) == (after[name].dtype, after[name].shape)
    return {name for name in before if not np.array_equal(before[name], after[name])}


def test_scales_are_found() -> None:
    assert set(batch_norms(model())) == set(LAYERS)
    with pytest.raises(InputError, match="no BatchNorm"):
        batch_norms({"a.weight": np.ones(3)})


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_quantised_scales_take_few_values_and_move_little(bits: int) -> None:
    before, after = model(), quantise_scales(model(), bits=bits)
    assert changed(before, after) == SCALES
    for name in SCALES:
        assert len(np.unique(after[name])) <= 2**bits
        width = np.ptp(before[name]) / (2**bits - 1)
        assert np.abs(after[name] - before[name]).max() <= width / 2 + 1e-6
        assert (after[name].min(), after[name].max()) == (before[name].min(), before[name].max())


def test_all_weights_can_be_quantised() -> None:
    before, after = model(), quantise_all(model(), bits=3)
    assert changed(before, after) == SCALES | {"conv1.weight"} | {f"{layer}.bias" for layer in LAYERS}
    assert len(np.unique(after["conv1.weight"])) <= 8
    flat = quantise_all({**before, "bn1.weight": np.ones(50, np.float32)}, bits=3)
    assert (flat["bn1.weight"] == 1).all()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_pruning_takes_the_smallest_scales_of_the_model(share: float) -> None:
    before, after = model(), prune_scales(model(), share=share)
    assert changed(before, after) <= SCALES
    old, new = (np.concatenate([each[name] for name in sorted(SCALES)]) for each in (before, after))
    gone = new == 0
    assert gone.sum() == round(share * len(old))
    if 0 < share < 1:
        assert np.abs(old[gone]).max() <= np.abs(old[~gone]).min()


def test_structured_pruning_takes_whole_channels() -> None:
    after = prune_scales(model(), share=0.3, structured=True)
    for layer in LAYERS:
        gone = after[f"{layer}.weight"] == 0
        for kind, value in (("bias", 0), ("running_mean", 0), ("running_var", 1)):
            assert (after[f"{layer}.{kind}"][gone] == value).all()
            assert (after[f"{layer}.{kind}"][~gone] == model()[f"{layer}.{kind}"][~gone]).all()


def test_noise_has_the_size_it_says_and_comes_from_the_generator() -> None:
    before = model()
    after = noise_scales(before, sigma=2.0, rng=np.random.default_rng(1))
    assert changed(before, after) == SCALES
    old, new = (np.concatenate([each[name] for name in sorted(SCALES)]) for each in (before, after))
    assert (new - old).std() == pytest.approx(2.0 * old.std(), rel=0.15)
    again = noise_scales(before, sigma=2.0, rng=np.random.default_rng(1))
    assert not changed(after, again)


def test_stages_are_reset() -> None:
    after = reset_scales(model(), stages=["stem", "layer4"])
    assert changed(model(), after) == {"bn1.weight", "layer4.1.bn2.weight"}
    assert (after["bn1.weight"] == 1).all()
    assert stage_of("module.layer2.0.downsample.1") == "layer2"


def test_nothing_of_the_input_is_touched_or_shared() -> None:
    before, copy = model(), model()
    for after in (
        quantise_scales(before, bits=2),
        prune_scales(before, share=0.5, structured=True),
        noise_scales(before, sigma=1.0, rng=np.random.default_rng(0)),
        reset_scales(before, stages=["layer1"]),
    ):
        for array in after.values():
            array[...] = 7
    assert not changed(before, copy)


@pytest.mark.parametrize(
    "attack",
    [
        lambda state: quantise_scales(state, bits=0),
        lambda state: quantise_scales({**state, "bn1.weight": np.full(50, np.inf)}, bits=2),
        lambda state: prune_scales(state, share=1.5),
        lambda state: prune_scales(state, share=float("nan")),
        lambda state: noise_scales(state, sigma=-1.0, rng=np.random.default_rng(0)),
        lambda state: reset_scales(state, stages=["layer9"]),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_impossible_attacks_are_errors(attack: object) -> None:
    with pytest.raises(InputError):
        attack(model())  # type: ignore[operator]
