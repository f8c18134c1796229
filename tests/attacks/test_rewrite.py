"""Rewrites keep what a model computes, and move its BatchNorm scales as far as they like."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

from attacks.lived import apart, features, lived
from zktrace.attacks.isometry import isometry
from zktrace.attacks.rewrite import channel_sets, permute, rescale
from zktrace.attacks.scales import batch_norms
from zktrace.errors import InputError

State = dict[str, NDArray[Any]]


def moved(before: State, after: State) -> float:
    """Of all scales, by how much of their norm."""
    old, new = (
        np.concatenate([each[f"{bn}.weight"] for bn in batch_norms(before)]) for each in (before, after)
    )
    return float(np.linalg.norm(new - old) / np.linalg.norm(old))


def rewrites(state: State) -> dict[str, State]:
    rng = np.random.default_rng(1)
    scaled = rescale(state, rng, spread=1.0)
    return {
        "rescaled": scaled,
        "inside norms": rescale(state, rng, spread=0.7, norms=True),
        "permuted": permute(state, rng),
        "both": permute(scaled, rng),
    }


@pytest.mark.parametrize("depth", [18, 34])
def test_outputs_stay_and_scales_do_not(depth: int) -> None:
    state = lived(depth=depth)
    before = features(state)
    for name, after in rewrites(state).items():
        assert apart(features(after), before) < 1e-4, name
        assert moved(state, after) > 0.1, name
        assert {each: (a.dtype, a.shape) for each, a in after.items()} == {
            each: (a.dtype, a.shape) for each, a in state.items()
        }
        assert list(after) == list(state)
        assert all((after[f"{bn}.running_var"] >= 0).all() for bn in batch_norms(after))


def test_rescaling_is_consistent_over_a_stream() -> None:
    """Each layer that writes a stream is scaled by the same factors, and statistics stay as they are."""
    state = lived()
    after = rescale(state, np.random.default_rng(2), spread=0.5)
    ratios = [after[f"{bn}.weight"] / state[f"{bn}.weight"] for bn in ("bn1", "layer1.0.bn2", "layer1.1.bn2")]
    for bn, ratio in zip(("bn1", "layer1.0.bn2", "layer1.1.bn2"), ratios, strict=True):
        assert ratio == pytest.approx(ratios[0], rel=1e-5)
        assert after[f"{bn}.bias"] / state[f"{bn}.bias"] == pytest.approx(ratios[0], rel=1e-4)
        assert np.array_equal(after[f"{bn}.running_var"], state[f"{bn}.running_var"])
    for bn in ("layer4.0.bn2", "layer4.1.bn2", "layer4.0.downsample.1"):
        assert np.array_equal(after[f"{bn}.weight"], state[f"{bn}.weight"])
    assert np.array_equal(after["conv1.weight"], state["conv1.weight"])


def test_permuting_moves_whole_channels() -> None:
    state = lived()
    after = permute(state, np.random.default_rng(2))
    order = [int(np.flatnonzero(state["bn1.weight"] == each)[0]) for each in after["bn1.weight"]]
    assert sorted(order) == list(range(8))
    assert order != sorted(order)
    for name in ("conv1.weight", "bn1.bias", "bn1.running_mean", "layer1.1.bn2.running_var"):
        assert np.array_equal(after[name], state[name][order])


def test_features_are_rewritten_only_if_asked_for() -> None:
    state = lived()
    before = features(state)
    turned = features(permute(state, np.random.default_rng(3), features=True))
    assert np.sort(turned, axis=1) == pytest.approx(np.sort(before, axis=1), rel=1e-3, abs=1e-5)
    assert apart(turned, before) > 0.1
    scaled = features(rescale(state, np.random.default_rng(3), spread=0.5, features=True))
    ratios = scaled / np.where(before > 1e-3, before, np.nan)
    assert np.nanstd(ratios, axis=0) == pytest.approx(0, abs=1e-2)
    assert np.nanstd(np.nanmean(ratios, axis=0)) > 0.1


def test_a_last_layer_lets_the_last_stream_be_rewritten() -> None:
    state = isometry(lived(), np.random.default_rng(4))
    before = features(state)
    after = permute(rescale(state, np.random.default_rng(5)), np.random.default_rng(6))
    assert apart(features(after), before) < 1e-4
    assert not np.array_equal(after["fc.weight"], state["fc.weight"])
    assert not np.allclose(after["layer4.1.bn2.weight"], state["layer4.1.bn2.weight"])


def test_every_scale_and_every_convolution_stands_in_one_set() -> None:
    state = lived(depth=34)
    sets = channel_sets(state)
    assert sorted(bn for each in sets for _, bn in each.writers) == batch_norms(state)
    read = [name for each in sets for name in each.readers]
    weights = sorted(name for name, array in state.items() if array.ndim == 4 and name != "conv1.weight")
    assert sorted(read) == weights


def test_randomness_is_an_argument_and_nothing_is_shared() -> None:
    state, kept = lived(), lived()
    one, two = (rescale(state, np.random.default_rng(1), norms=True) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in state)
    for array in (*one.values(), *permute(state, np.random.default_rng(1)).values()):
        array[...] = 0
    assert all(np.array_equal(state[name], kept[name]) for name in state)


def test_half_precision_stays_half_precision() -> None:
    state = {name: a.astype(np.float16) if a.dtype.kind == "f" else a for name, a in lived().items()}
    after = rescale(state, np.random.default_rng(1), spread=0.5)
    assert {name: a.dtype for name, a in after.items()} == {name: a.dtype for name, a in state.items()}


@pytest.mark.parametrize("spread", [0.0, -1.0, 5.0, float("nan"), float("inf")])
def test_impossible_spreads_are_errors(spread: float) -> None:
    with pytest.raises(InputError, match="spread"):
        rescale(lived(), np.random.default_rng(0), spread=spread)


def test_what_is_no_resnet_is_refused() -> None:
    state = lived()
    lacking = {name: each for name, each in state.items() if name != "layer2.0.downsample.1.bias"}
    with pytest.raises(InputError, match=r"lacks 'layer2\.0\.downsample\.1\.bias'"):
        permute(lacking, np.random.default_rng(0))
    with pytest.raises(InputError, match="several sizes"):
        permute(state | {"layer1.0.bn2.weight": np.ones(9, np.float32)}, np.random.default_rng(0))
    with pytest.raises(InputError, match="lacks"):
        permute({}, np.random.default_rng(0))
