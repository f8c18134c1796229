"""Folding keeps what a ResNet computes and leaves no BatchNorm layer."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

import torch

from attacks.lived import apart, features, images, lived
from zktrace.attacks.fold import fold
from zktrace.errors import InputError

State = dict[str, NDArray[Any]]


def folded_features(state: State) -> NDArray[np.float32]:
    """What a ResNet-18 of convolutions with biases computes, written out."""

    def conv(name: str, maps: Any, stride: int) -> Any:
        weight, bias = (torch.from_numpy(state[f"{name}.{part}"]) for part in ("weight", "bias"))
        return torch.nn.functional.conv2d(maps, weight, bias, stride=stride, padding=weight.shape[-1] // 2)

    maps = torch.relu(conv("conv1", torch.from_numpy(images()), 2))
    maps = torch.nn.functional.max_pool2d(maps, 3, stride=2, padding=1)
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            inside = conv(f"{name}.conv2", torch.relu(conv(f"{name}.conv1", maps, stride)), 1)
            maps = torch.relu(inside + (conv(f"{name}.downsample.0", maps, stride) if stride > 1 else maps))
    found: NDArray[np.float32] = maps.mean((2, 3)).numpy()
    return found


def test_outputs_stay_and_scales_are_gone() -> None:
    state = lived()
    after = fold(state)
    assert apart(folded_features(after), features(state)) < 1e-4
    assert not [name for name in after if "bn" in name or "running" in name or "downsample.1" in name]
    filters = [{name for name in each if each[name].ndim == 4} for each in (state, after)]
    assert filters[0] == filters[1]
    assert all(each.dtype == np.float32 for each in after.values())


def test_nothing_is_touched_or_shared() -> None:
    state, kept = lived(), lived()
    for array in fold(state).values():
        array[...] = 0
    assert all(np.array_equal(state[name], kept[name]) for name in state)


def test_what_is_no_resnet_is_refused() -> None:
    with pytest.raises(InputError, match="lacks"):
        fold({"conv.weight": np.ones((2, 2, 1, 1), np.float32)})
