"""The shortcut is exact: outputs and gradients of every order equal the plain layer's."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from learning.synthetic import narrow
from zktrace.learning.resnet import ResNet, make_plain, resnet18, resnet34
from zktrace.learning.tiny_maps import Conv2d, conv1x1, conv3x3_tiny

PLACES = [(height, width, stride) for height, width, stride in itertools.product((1, 2), (1, 2), (1, 2))]


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).requires_grad_()


@pytest.mark.parametrize(("height", "width", "stride"), PLACES)
def test_a_tiny_convolution_equals_the_plain_one(height: int, width: int, stride: int) -> None:
    x, weight = draw(7, 5, height, width), draw(6, 5, 3, 3, seed=1)
    plain = functional.conv2d(x, weight, stride=stride, padding=1)
    quick = conv3x3_tiny(x, weight, stride)
    assert quick.shape == plain.shape
    torch.testing.assert_close(quick, plain, rtol=0, atol=1e-13)
    back = draw(*plain.shape, seed=2).detach()
    for ours, theirs in zip(
        torch.autograd.grad(quick, (x, weight), back),
        torch.autograd.grad(plain, (x, weight), back),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("height", "width", "stride"), PLACES)
def test_gradients_agree_with_finite_differences_twice(height: int, width: int, stride: int) -> None:
    x, weight = draw(2, 2, height, width), draw(3, 2, 3, 3, seed=1)
    assert torch.autograd.gradcheck(lambda x, w: conv3x3_tiny(x, w, stride), (x, weight))
    assert torch.autograd.gradgradcheck(lambda x, w: conv3x3_tiny(x, w, stride), (x, weight))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_a_projection_equals_the_plain_one(size: int, stride: int) -> None:
    x, weight = draw(4, 5, size, size), draw(6, 5, 1, 1, seed=1)
    plain = functional.conv2d(x, weight, stride=stride)
    quick = conv1x1(x, weight, stride)
    torch.testing.assert_close(quick, plain, rtol=0, atol=1e-13)
    back = draw(*plain.shape, seed=2).detach()
    for ours, theirs in zip(
        torch.autograd.grad(quick, (x, weight), back),
        torch.autograd.grad(plain, (x, weight), back),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)


def test_a_strided_projection_never_reaches_the_library() -> None:
    """oneDNN corrupts the heap there with few channels; what counts is that it is not called."""
    model = narrow(width=2)
    images = torch.zeros(4, 4, 64, 64)
    with torch.profiler.profile(record_shapes=True) as profile:
        model(images).sum().backward()
    kernels = {
        tuple(event.input_shapes[1])
        for event in profile.events()
        if event.name == "aten::convolution" and len(event.input_shapes[1]) == 4
    }
    assert kernels
    assert all(shape[2:] != (1, 1) for shape in kernels)


@pytest.mark.parametrize("kernel", [1, 3, 7])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 2), (1, 2), (3, 2), (4, 4), (8, 8)])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_layer_equals_torchs_on_every_map(kernel: int, height: int, width: int, stride: int) -> None:
    layer = Conv2d(3, 4, kernel, stride=stride).double()
    layer.weight.data.copy_(draw(*layer.weight.shape, seed=3).data)
    x = draw(5, 3, height, width)
    plain = functional.conv2d(x, layer.weight, stride=stride, padding=kernel // 2)
    torch.testing.assert_close(layer(x), plain, rtol=0, atol=1e-12)


def run(model: ResNet, images: Tensor) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Features, gradients of a scalar of them, and the buffers afterwards."""
    features = model(images)
    (features * torch.linspace(-1, 1, features.numel()).reshape(features.shape)).sum().backward()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return features.detach(), gradients, dict(model.named_buffers())


def assert_same_computation(ours: ResNet, plain: ResNet, images: Tensor, tolerance: float) -> None:
    for mine, theirs in zip(run(ours, images), run(make_plain(plain), images), strict=True):
        scale = max(each.abs().max().item() for each in theirs.values()) if isinstance(theirs, dict) else 1
        torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("size", [16, 32, 40, 64])
def test_a_whole_model_in_double_precision(training: bool, size: int) -> None:
    ours, plain = narrow(3).double().train(training), narrow(3).double().train(training)
    images = draw(6, 4, size, size).detach()
    assert_same_computation(ours, plain, images, 1e-9)


@pytest.mark.parametrize("training", [True, False])
def test_resnet34_in_double_precision(training: bool) -> None:
    ours, plain = (
        resnet34(channels=3, width=4, rng=np.random.default_rng(0)).double().train(training) for _ in range(2)
    )
    assert_same_computation(ours, plain, draw(6, 3, 32, 32).detach(), 1e-9)


def distance(first: dict[str, Tensor], second: dict[str, Tensor]) -> float:
    """Relative distance of two sets of tensors, as one long vector each."""
    apart = sum((first[name].double() - each.double()).square().sum().item() for name, each in second.items())
    return (apart / sum(each.double().square().sum().item() for each in second.values())) ** 0.5


def test_the_full_model_in_single_precision() -> None:
    """Both ways are near double precision; a ReLU that rounding opens or closes moves a gradient most."""
    images = draw(20, 4, 32, 32).detach()
    models = [resnet18(channels=4, rng=np.random.default_rng(0)).train() for _ in range(3)]
    exact, gradients, buffers = run(make_plain(models[0].double()), images)
    for model in (models[1], make_plain(models[2])):
        features = run(model, images.float())
        torch.testing.assert_close(features[0].double(), exact, rtol=1e-3, atol=1e-3)
        assert distance(features[1], gradients) < 2e-2
        assert distance(features[2], buffers) < 1e-5


def test_the_parameters_are_those_of_the_plain_layer() -> None:
    layer = Conv2d(3, 4, 3, stride=2)
    assert list(layer.state_dict()) == ["weight"]
    assert layer.weight.shape == (4, 3, 3, 3)
    assert layer.weight.is_contiguous()
