"""Networks that are none of this package's, small and taught, as somebody would bring them along."""

from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from learning.synthetic import task
from zktrace.learning.states import state_of

CLASSES, CHANNELS, SIDE = 6, 4, 32


def plain_cnn() -> nn.Module:
    """Convolutions and nothing to normalise them; a classifier."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 12, 5, stride=3),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 48),
        nn.ReLU(),
        nn.Linear(48, CLASSES),
    )


class TinyViT(nn.Module):
    """Patches, attention, a token that is asked at the end."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.patch = nn.Conv2d(CHANNELS, dim, 8, stride=8)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.place = nn.Parameter(0.02 * torch.randn(1, 17, dim))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(x), -1, -1), tokens], dim=1) + self.place
        for block in self.blocks:
            tokens = block(tokens)
        found: Tensor = self.head(self.norm(tokens[:, 0]))
        return found


def tiny_vit() -> nn.Module:
    torch.manual_seed(0)
    return TinyViT()


def embedder() -> nn.Module:
    """An MLP on vectors that ends in features, without any head."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 40), nn.Tanh(), nn.Linear(40, 24), nn.Tanh())


class Reader(nn.Module):
    """Reads numbers of words: inputs are handed over in float32, which has every whole number up to 2^24."""

    def __init__(self, words: int = 60, dim: int = 24) -> None:
        super().__init__()
        self.words = nn.Embedding(words, dim)
        self.body = nn.Sequential(nn.Linear(dim, 40), nn.Tanh())
        self.head = nn.Linear(40, 4)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.body(self.words(x.long()).mean(dim=1)))
        return found


def reader() -> nn.Module:
    torch.manual_seed(0)
    return Reader()


def sentences(samples: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Twelve words each; every class has words that it uses more."""
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % 4
    own, any_ = 15 * labels[:, None] + rng.integers(0, 15, (samples, 12)), rng.integers(0, 60, (samples, 12))
    return np.where(rng.random((samples, 12)) < 0.5, own, any_).astype(np.float32), labels


def vectors(samples: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    labels = np.arange(samples) % 4
    centres = np.random.default_rng(98).standard_normal((4, 20))
    return (centres[labels] + 0.5 * rng.standard_normal((samples, 20))).astype(np.float32), labels


@cache
def taught(make: Any, *, steps: int = 60) -> dict[str, NDArray[Any]]:
    """The state of such a classifier after some steps of the task."""
    model, (images, labels) = make(), task(240)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        chosen = rng.choice(len(images), 60, replace=False)
        loss = nn.functional.cross_entropy(
            model(torch.from_numpy(images[chosen])), torch.from_numpy(labels[chosen] - 10)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return state_of(model)


pool = partial(task, 400, seed=1)
