"""Convolutions on maps of at most 2x2 as one matrix product, equal to the plain layer up to rounding.

A 3x3 kernel with padding 1 on such a map meets mostly padding, and a library that lays out patches multiplies
it all the same. Written out, the layer is linear from (inputs x channels) to (outputs x channels): output
position p sees *every* input position q, through tap q - stride*p + 1. So

    1x1           the centre tap alone                       1 product of channels instead of 9
    2x2, stride 2 the lower right four taps                  4 instead of 9
    2x2, stride 1 four shifted windows of 2x2 taps           16 instead of 36

and one dense product does it. Names, shapes, outputs and gradients (of any order) of the layer are unchanged.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LARGEST = 2  # rows and columns of a map that counts as tiny


def _windows(height: int, width: int, stride: int) -> Iterator[tuple[int, slice, slice]]:
    """For each output position: its number, and the rows and columns of taps that meet the map."""
    columns = range(0, width, stride)
    for i, y in enumerate(range(0, height, stride)):
        for j, x in enumerate(columns):
            yield i * len(columns) + j, slice(1 - y, 1 - y + height), slice(1 - x, 1 - x + width)


class _Spread(torch.autograd.Function):
    """Weights by tap (3, 3, out, in) -> the dense matrix (positions, out, height, width, in). Linear."""

    @staticmethod
    def forward(ctx: Any, taps: Tensor, height: int, width: int, stride: int) -> Tensor:  # noqa: ANN401
        ctx.place = height, width, stride
        windows = list(_windows(height, width, stride))
        _, _, outs, ins = taps.shape
        dense = taps.new_empty(len(windows), outs, height, width, ins)
        for at, rows, columns in windows:
            dense[at] = taps[rows, columns].permute(2, 0, 1, 3)
        return dense

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        return _collect(gradients[0], *ctx.place), None, None, None


class _Collect(torch.autograd.Function):
    """The adjoint of `_Spread`: what belongs to one tap is added up."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, height: int, width: int, stride: int) -> Tensor:  # noqa: ANN401
        ctx.place = height, width, stride
        taps = dense.new_zeros(3, 3, dense.shape[1], dense.shape[-1])
        for at, rows, columns in _windows(height, width, stride):
            taps[rows, columns] += dense[at].permute(1, 2, 0, 3)
        return taps

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        return _spread(gradients[0], *ctx.place), None, None, None


def _spread(taps: Tensor, height: int, width: int, stride: int) -> Tensor:
    dense: Tensor = _Spread.apply(taps, height, width, stride)  # type: ignore[no-untyped-call]
    return dense


def _collect(dense: Tensor, height: int, width: int, stride: int) -> Tensor:
    taps: Tensor = _Collect.apply(dense, height, width, stride)  # type: ignore[no-untyped-call]
    return taps


def conv3x3_tiny(x: Tensor, weight: Tensor, stride: int = 1) -> Tensor:
    """`conv2d(x, weight, stride=stride, padding=1)` of a 3x3 kernel on a map of at most 2x2."""
    samples, ins, height, width = x.shape
    outs = weight.shape[0]
    if (height, width) == (1, 1):
        return functional.linear(x.flatten(1), weight[:, :, 1, 1])[:, :, None, None]
    dense = _spread(weight.permute(2, 3, 0, 1).contiguous(), height, width, stride)
    flat = x.permute(0, 2, 3, 1).reshape(samples, height * width * ins)
    y = functional.linear(flat, dense.reshape(-1, height * width * ins))
    return y.reshape(samples, -(-height // stride), -(-width // stride), outs).permute(0, 3, 1, 2)


def conv1x1(x: Tensor, weight: Tensor, stride: int = 1) -> Tensor:
    """`conv2d(x, weight, stride=stride)` of a 1x1 kernel on any map: a product at each kept position.

    Not for speed. In the weight gradient of a strided 1x1 convolution of a channels-last map with few input
    channels (below 8 with AVX2, 16 with AVX-512), oneDNN 3.12 writes past its workspace (its issue 6035) and
    the process dies later, somewhere else. A narrow network has such layers.
    """
    kept = x[:, :, ::stride, ::stride].permute(0, 2, 3, 1)
    return functional.linear(kept, weight[:, :, 0, 0]).permute(0, 3, 1, 2)


class Conv2d(nn.Conv2d):
    """A bias-free convolution of odd size and "same" padding that takes the shortcut where there is one.

    `shortcut = False` makes it the plain layer; the tests and the benchmark compare the two.
    """

    def __init__(self, ins: int, outs: int, size: int, *, stride: int = 1) -> None:
        super().__init__(ins, outs, size, stride=stride, padding=size // 2, bias=False)
        self.shortcut = True

    def reset_parameters(self) -> None:
        """Zeros: whoever builds the network draws its values, and never from the global generator."""
        nn.init.zeros_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of a batch (samples, channels, height, width)."""
        stride = self.stride[0]
        if self.shortcut and self.kernel_size == (1, 1):
            return conv1x1(input, self.weight, stride)
        if self.shortcut and self.kernel_size == (3, 3) and max(input.shape[2:]) <= LARGEST:
            return conv3x3_tiny(input, self.weight, stride)
        return super().forward(input)
