"""The model: torchvision's names and shapes, the paper's counts, and states that go in and out."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from learning.synthetic import narrow, same
from zktrace.errors import InputError
from zktrace.learning.backbone import backbone_of
from zktrace.learning.resnet import ResNet, resnet18, resnet34
from zktrace.learning.states import load_state, state_of
from zktrace.models import open_model, save_model


def layout(blocks: tuple[int, ...], width: int = 64, channels: int = 3) -> dict[str, tuple[int, ...]]:
    """Names and shapes of torchvision's ResNet of basic blocks, in its order, without `fc`."""
    found: dict[str, tuple[int, ...]] = {}

    def bn(name: str, size: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            found[f"{name}.{part}"] = (size,)
        found[f"{name}.num_batches_tracked"] = ()

    found["conv1.weight"] = (width, channels, 7, 7)
    bn("bn1", width)
    before = width
    for stage, count in enumerate(blocks):
        size = width * 2**stage
        for block in range(count):
            place = f"layer{stage + 1}.{block}"
            found[f"{place}.conv1.weight"] = (size, before, 3, 3)
            bn(f"{place}.bn1", size)
            found[f"{place}.conv2.weight"] = (size, size, 3, 3)
            bn(f"{place}.bn2", size)
            if before != size:
                found[f"{place}.downsample.0.weight"] = (size, before, 1, 1)
                bn(f"{place}.downsample.1", size)
            before = size
    return found


def shapes(model: ResNet) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


def scales(model: ResNet) -> list[int]:
    return [each.num_features for each in model.modules() if isinstance(each, nn.BatchNorm2d)]


def test_resnet18_is_torchvisions_without_its_last_layer() -> None:
    model = resnet18(channels=3, rng=np.random.default_rng(0))
    assert list(shapes(model).items()) == list(layout((2, 2, 2, 2)).items())
    assert sum(each.numel() for each in model.parameters()) == 11_176_512  # 11,689,512 less fc's 513,000
    assert model.state_dict()["layer2.0.downsample.1.num_batches_tracked"].dtype == torch.int64


def test_the_papers_carrier_and_features() -> None:
    model = resnet18(channels=4, rng=np.random.default_rng(0))
    assert len(scales(model)) == 20
    assert sum(scales(model)) == 4800
    assert model.features == 512
    assert model.eval()(torch.zeros(2, 4, 32, 32)).shape == (2, 512)


def test_resnet34_comes_from_the_same_code() -> None:
    model = resnet34(channels=3, rng=np.random.default_rng(0))
    assert list(shapes(model).items()) == list(layout((3, 4, 6, 3)).items())
    assert sum(each.numel() for each in model.parameters()) == 21_284_672  # 21,797,672 less fc's 513,000
    assert (len(scales(model)), sum(scales(model)), model.features) == (36, 8512, 512)


@pytest.mark.parametrize(("width", "channels"), [(8, 1), (16, 5)])
def test_width_and_channels_are_parameters(width: int, channels: int) -> None:
    model = narrow(width=width, channels=channels)
    assert shapes(model) == layout((2, 2, 2, 2), width, channels)
    assert model.eval()(torch.zeros(1, channels, 48, 40)).shape == (1, 8 * width)


def test_initial_values_follow_torchvision() -> None:
    model = resnet18(channels=3, rng=np.random.default_rng(1))
    weight = model.layer3[1].conv1.weight
    assert weight.std().item() == pytest.approx((2 / (256 * 9)) ** 0.5, rel=0.01)  # kaiming, fan out
    assert abs(weight.mean().item()) < 1e-3
    for each in model.modules():
        if isinstance(each, nn.BatchNorm2d):
            assert (each.weight == 1).all()
            assert (each.bias == 0).all()


def test_randomness_is_an_argument() -> None:
    before = torch.get_rng_state()
    assert same(state_of(narrow(5)), state_of(narrow(5)))
    assert not same(state_of(narrow(5)), state_of(narrow(6)))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_checkpoint_with_a_head_fits(tmp_path: Path) -> None:
    """A file as others write it: safetensors, float32, with fc."""
    source, target = narrow(1), narrow(2)
    path = tmp_path / "model.safetensors"
    extra = {"fc.weight": np.zeros((10, 32), np.float32), "fc.bias": np.zeros(10, np.float32)}
    save_model(path, state_of(source) | extra)
    load_state(target, open_model(path))
    assert same(state_of(source), state_of(target))


@pytest.mark.parametrize("bias", [False, True])
def test_a_last_layer_is_part_of_a_suspect(bias: bool) -> None:
    """Its outputs are then the features; without it, or passed over, they are what is pooled."""
    rng = np.random.default_rng(3)
    state, images = state_of(narrow(1)), torch.from_numpy(rng.standard_normal((3, 4, 32, 32))).float()
    head = {"fc.weight": rng.standard_normal((10, 32)).astype(np.float32)}
    head |= {"fc.bias": rng.standard_normal(10).astype(np.float32)} if bias else {}
    model, plain = backbone_of(state | head), backbone_of(state)
    assert (model.features, plain.features) == (10, 32)
    expected = plain(images).detach().numpy() @ head["fc.weight"].T + head.get("fc.bias", 0)
    assert model(images).detach().numpy() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert same(state_of(model), state | head)
    assert same(state_of(backbone_of(state | head, head=False)), state)


@pytest.mark.parametrize("shape", [(10, 31), (0, 32), (32,), (2, 32, 1)])
def test_a_last_layer_that_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"'fc\.weight' has shape"):
        backbone_of(state_of(narrow()) | {"fc.weight": np.zeros(shape, np.float32)})
    with pytest.raises(InputError, match=r"'fc\.weight' has numbers that are not finite"):
        backbone_of(state_of(narrow()) | {"fc.weight": np.full((3, 32), np.inf, np.float32)})
    bad = {"fc.weight": np.zeros((3, 32), np.float32), "fc.bias": np.zeros(4, np.float32)}
    with pytest.raises(InputError, match=r"'fc\.bias' has shape"):
        backbone_of(state_of(narrow()) | bad)


def test_a_state_is_a_copy() -> None:
    model = narrow()
    state = state_of(model)
    state["bn1.weight"][:] = 7
    assert (state_of(model)["bn1.weight"] == 1).all()
    load_state(model, state)
    state["bn1.weight"][:] = 8
    assert (state_of(model)["bn1.weight"] == 7).all()


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    model = narrow()
    before = state_of(model)
    lacking = {name: each for name, each in before.items() if name != "bn1.bias"}
    with pytest.raises(InputError, match=r"lacks 'bn1\.bias': another architecture"):
        load_state(model, lacking)
    with pytest.raises(InputError, match="'head' and 1 more, the model has not"):
        load_state(model, before | {"head": np.zeros(1), "tail": np.zeros(1)})
    with pytest.raises(InputError, match=r"'conv1\.weight' has shape \(8, 4, 7, 7\)"):
        load_state(model, state_of(narrow(width=8)))
    assert same(state_of(model), before)


def test_what_cannot_be_a_model_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="ResNet-50 is not known here; depth is one of"):
        ResNet(depth=50, channels=3, width=64, rng=rng)
    with pytest.raises(InputError, match="width 0"):
        resnet18(channels=3, width=0, rng=rng)
    with pytest.raises(InputError, match=r"the model takes \(n, 4, h, w\)"):
        narrow()(torch.zeros(1, 3, 32, 32))
