"""Convolutional networks for images of 32 x 32 pixels that have no BatchNorm layer."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class PlainNet(nn.Module):
    """Convolutions with biases and ReLU: nothing normalises."""

    def __init__(self, classes: int = 10, widths: tuple[int, int, int, int] = (48, 96, 128, 256)) -> None:
        super().__init__()
        first, second, third, last = widths
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(3, first, 3, stride=2, padding=1),
                nn.Conv2d(first, second, 3, stride=2, padding=1),
                nn.Conv2d(second, third, 3, padding=1),
                nn.Conv2d(third, last, 3, stride=2, padding=1),
            ]
        )
        self.hidden = nn.Linear(4 * last, 512)
        self.head = nn.Linear(512, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images to class scores."""
        for conv in self.convs:
            images = torch.relu(conv(images))
        pooled = functional.avg_pool2d(images, 2).flatten(1)
        found: Tensor = self.head(torch.relu(self.hidden(pooled)))
        return found


class GroupBlock(nn.Module):
    """Two convolutions beside a shortcut, each with a GroupNorm layer."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(8, after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(8, after)
        self.down = nn.Conv2d(before, after, 1, stride=stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """The shortcut and what is added to it."""
        inside = torch.relu(self.norm1(self.conv1(images)))
        return torch.relu(self.norm2(self.conv2(inside)) + self.down(images))


class GroupNormResNet(nn.Module):
    """A ResNet whose layers normalise groups of channels of one image at a time."""

    def __init__(self, classes: int = 10, widths: tuple[int, int, int] = (32, 80, 160)) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, stride=2, padding=1, bias=False)
        self.norm = nn.GroupNorm(8, widths[0])
        first, second, third = widths
        self.blocks = nn.Sequential(
            GroupBlock(first, first, 1), GroupBlock(first, second, 2), GroupBlock(second, third, 2)
        )
        self.head = nn.Linear(third, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images to class scores."""
        inside = self.blocks(torch.relu(self.norm(self.stem(images))))
        found: Tensor = self.head(inside.mean((2, 3)))
        return found


class NextBlock(nn.Module):
    """A depthwise convolution, LayerNorm, and two layers a pixel, scaled and added to what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, images: Tensor) -> Tensor:
        """Channels stand in the second axis, before and after."""
        inside = self.norm(self.depthwise(images).permute(0, 2, 3, 1))
        inside = self.scale * self.down(functional.gelu(self.up(inside)))
        found: Tensor = images + inside.permute(0, 3, 1, 2)
        return found


class NextNet(nn.Module):
    """After ConvNeXt: patches, two stages of its blocks, one step down between them."""

    def __init__(
        self, classes: int = 10, widths: tuple[int, int] = (48, 160), depths: tuple[int, int] = (1, 3)
    ) -> None:
        super().__init__()
        first, second = widths
        self.stem = nn.Conv2d(3, first, 4, stride=4)
        self.stage1 = nn.Sequential(*(NextBlock(first) for _ in range(depths[0])))
        self.norm = nn.GroupNorm(1, first)
        self.step = nn.Conv2d(first, second, 2, stride=2)
        self.stage2 = nn.Sequential(*(NextBlock(second) for _ in range(depths[1])))
        self.last = nn.LayerNorm(second)
        self.head = nn.Linear(second, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Images to class scores."""
        inside = self.step(self.norm(self.stage1(self.stem(images))))
        found: Tensor = self.head(self.last(self.stage2(inside).mean((2, 3))))
        return found
