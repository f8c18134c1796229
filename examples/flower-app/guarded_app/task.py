"""What this federation learns: which of four patterns is in a noisy image, with a plain CNN."""

import torch
from torch import nn

SIDE, CLASSES = 12, 4


class Net(nn.Module):
    """No normalisation, no trick."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * (SIDE // 4) ** 2, 64)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        maps = nn.functional.max_pool2d(torch.relu(self.conv1(images)), 2)
        maps = nn.functional.max_pool2d(torch.relu(self.conv2(maps)), 2)
        return self.head(torch.relu(self.hidden(maps.flatten(1))))


def samples(seed: int, count: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    """Stripes along either axis, a checkerboard, or a blot, in noise."""
    draws = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=draws)
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    middle = (SIDE - 1) / 2
    patterns = torch.stack(
        [
            (rows % 2).float(),
            (columns % 2).float(),
            ((rows + columns) % 2).float(),
            ((rows - middle) ** 2 + (columns - middle) ** 2 < 9).float(),
        ]
    )
    noise = torch.randn(count, SIDE, SIDE, generator=draws)
    return (patterns[labels] + 0.5 * noise)[:, None], labels


def train(net: Net, images: torch.Tensor, labels: torch.Tensor, rate: float) -> float:
    """One epoch of gradient descent; its mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)
    losses = []
    for batch, wanted in zip(images.split(32), labels.split(32), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def accuracy(net: Net, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images that are told right."""
    return float((net(images).argmax(1) == labels).float().mean())
