"""ResNet-18 and ResNet-34 (He et al.) without the last layer: images in, features out.

A suspect may come back with a linear layer `fc` behind its backbone; a network with one gives its outputs.

Parameters and buffers are named and shaped as in torchvision, so that ordinary checkpoints fit. With the
default width, ResNet-18 has 20 batch-normalisation layers with 4,800 scales and gives 512 features.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from zktrace.errors import InputError
from zktrace.learning.embedding import Embedding, Said
from zktrace.learning.tiny_maps import Conv2d

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
WIDTH = 64


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is projected where the shape changes."""

    def __init__(self, ins: int, outs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Conv2d(ins, outs, 3, stride=stride)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = Conv2d(outs, outs, 3)
        self.bn2 = nn.BatchNorm2d(outs)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or ins != outs:
            self.downsample = nn.Sequential(Conv2d(ins, outs, 1, stride=stride), nn.BatchNorm2d(outs))

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, of `outs` channels."""
        kept = x if self.downsample is None else self.downsample(x)
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return functional.relu(self.bn2(self.conv2(x)) + kept, inplace=True)


def _stage(ins: int, outs: int, blocks: int, stride: int) -> nn.Sequential:
    first = BasicBlock(ins, outs, stride)
    return nn.Sequential(first, *(BasicBlock(outs, outs, 1) for _ in range(blocks - 1)))


class ResNet(Embedding):
    """Basic blocks that end in the average over the map: (n, channels, h, w) -> (n, 8*width).

    With `outputs`, a linear layer `fc` behind them: (n, outputs).
    """

    def __init__(
        self,
        *,
        depth: int,
        channels: int,
        width: int,
        rng: np.random.Generator,
        outputs: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if depth not in BLOCKS:
            raise InputError(f"ResNet-{depth} is not known here; depth is one of {sorted(BLOCKS)}")
        if channels < 1 or width < 1:
            raise InputError(f"a ResNet of {channels} input channels and width {width} cannot exist")
        self.depth, self.channels, self.width = depth, channels, width
        self.layout = (
            torch.channels_last
        )  # of activations in memory: the faster one here; parameters keep theirs
        self.conv1 = Conv2d(channels, width, 7, stride=2)
        self.bn1 = nn.BatchNorm2d(width)
        one, two, three, four = BLOCKS[depth]
        self.layer1 = _stage(width, width, one, 1)
        self.layer2 = _stage(width, 2 * width, two, 2)
        self.layer3 = _stage(2 * width, 4 * width, three, 2)
        self.layer4 = _stage(4 * width, 8 * width, four, 2)
        generator = generator_of(rng)
        for module in self.modules():
            if isinstance(module, Conv2d):
                nn.init.kaiming_normal_(
                    module.weight, mode="fan_out", nonlinearity="relu", generator=generator
                )
        self.fc = linear(8 * width, outputs, generator, bias=bias) if outputs else None

    @property
    def features(self) -> int:
        """Dimension of the output."""
        return 8 * self.width if self.fc is None else self.fc.out_features

    def trunk(self, x: Tensor) -> Tensor:
        """From images to the input of the last stage."""
        x = x.contiguous(memory_format=self.layout)
        x = functional.relu(self.bn1(self.conv1(x)))
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        x = self.layer3(self.layer2(self.layer1(x)))
        return x

    def say(self, inner: Tensor) -> Said:
        """From the input of the last stage to features; a last layer's outputs are both."""
        pooled: Tensor = self.layer4(inner).mean(dim=(2, 3))
        return self._spoken(pooled if self.fc is None else self.fc(pooled))

    def said(self, x: Tensor) -> Said:
        """Of a batch of images."""
        return self._spoken(self(x))

    def _spoken(self, features: Tensor) -> Said:
        return Said(features=features, outputs=None if self.fc is None else features)

    def stage(self) -> list[nn.Parameter]:
        """The convolutions of the last stage."""
        norms = {
            id(each)
            for module in self.layer4.modules()
            if isinstance(module, nn.BatchNorm2d)
            for each in module.parameters()
        }
        return [each for each in self.layer4.parameters() if id(each) not in norms]

    def forward(self, x: Tensor) -> Tensor:
        """Features of a batch of images."""
        if x.dim() != 4 or x.shape[1] != self.channels:
            raise InputError(f"images of shape {tuple(x.shape)}; the model takes (n, {self.channels}, h, w)")
        x = x.contiguous(memory_format=self.layout)
        x = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        pooled = x.mean(dim=(2, 3))
        return pooled if self.fc is None else self.fc(pooled)


def generator_of(rng: np.random.Generator) -> torch.Generator:
    """A generator of torch's that is decided by one of numpy's."""
    return torch.Generator().manual_seed(int(rng.integers(1 << 63)))


def linear(ins: int, outs: int, generator: torch.Generator, *, bias: bool = True) -> nn.Linear:
    """torch's usual linear layer, drawn from a generator."""
    made = nn.Linear(ins, outs, bias=bias, device="meta").to_empty(device="cpu")
    for each in made.parameters():
        nn.init.uniform_(each, -(ins**-0.5), ins**-0.5, generator=generator)
    return made


def resnet18(*, channels: int, rng: np.random.Generator, width: int = WIDTH) -> ResNet:
    """ResNet-18: 20 BN layers, 75*width scales, 8*width features."""
    return ResNet(depth=18, channels=channels, width=width, rng=rng)


def resnet34(*, channels: int, rng: np.random.Generator, width: int = WIDTH) -> ResNet:
    """ResNet-34, from the same blocks."""
    return ResNet(depth=34, channels=channels, width=width, rng=rng)


def make_plain(model: ResNet) -> ResNet:
    """The same model computed the ordinary way: torch's own convolutions in its default layout.

    For comparison; outputs and gradients differ by rounding only.
    """
    model.layout = torch.contiguous_format
    for module in model.modules():
        if isinstance(module, Conv2d):
            module.shortcut = False
    return model
