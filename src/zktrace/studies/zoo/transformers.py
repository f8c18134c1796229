"""Transformers with RMSNorm and without biases: for images, and for text a character at a time.

embed.weight  or  patch.weight, cls, pos      what enters the residual stream
blocks.N.norm1.weight, attn.{q,k,v,o}.weight  attention, its heads one after the other in q, k, v
blocks.N.norm2.weight, mlp.{up,down}.weight   two layers with a ReLU between them
norm.weight, head.weight                      what leaves it
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

HEADS = 4


class Attention(nn.Module):
    """Of several heads. With a `slope` a place sees itself and those before it, the nearer the better."""

    def __init__(self, width: int, *, slope: float | None) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.slope = slope

    def forward(self, stream: Tensor) -> Tensor:
        """What each place takes from the others."""
        count, length, width = stream.shape

        def split(values: Tensor) -> Tensor:
            return values.view(count, length, HEADS, width // HEADS).transpose(1, 2)

        bias = None if self.slope is None else backwards(length, self.slope)
        found = functional.scaled_dot_product_attention(
            split(self.q(stream)), split(self.k(stream)), split(self.v(stream)), attn_mask=bias
        )
        out: Tensor = self.o(found.transpose(1, 2).reshape(count, length, width))
        return out


def backwards(length: int, slope: float) -> Tensor:
    """What is added to the score of place j for place i, a row: -slope (i - j), and never a later one."""
    away = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    return torch.where(away >= 0, -slope * away, float("-inf"))


class FeedForward(nn.Module):
    """Two layers for each place by itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, stream: Tensor) -> Tensor:
        """Up, ReLU, down."""
        found: Tensor = self.down(torch.relu(self.up(stream)))
        return found


class TransformerBlock(nn.Module):
    """Attention and layers, each after a norm and added to the stream."""

    def __init__(self, width: int, *, slope: float | None = None) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(width, eps=1e-6)
        self.attn = Attention(width, slope=slope)
        self.norm2 = nn.RMSNorm(width, eps=1e-6)
        self.mlp = FeedForward(width)

    def forward(self, stream: Tensor) -> Tensor:
        """The stream, with what the block adds."""
        stream = stream + self.attn(self.norm1(stream))
        added: Tensor = stream + self.mlp(self.norm2(stream))
        return added


class VisionTransformer(nn.Module):
    """Patches of an image and a class token."""

    def __init__(self, classes: int = 10, width: int = 128, depth: int = 4, patch: int = 8) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, stride=patch, bias=False)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.pos = nn.Parameter(0.02 * torch.randn(1, 1 + (32 // patch) ** 2, width))
        self.blocks = nn.ModuleList(TransformerBlock(width) for _ in range(depth))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Images to class scores."""
        patches = self.patch(images).flatten(2).transpose(1, 2)
        stream = torch.cat([self.cls.expand(len(images), -1, -1), patches], 1) + self.pos
        for block in self.blocks:
            stream = block(stream)
        found: Tensor = self.head(self.norm(stream[:, 0]))
        return found


class LanguageModel(nn.Module):
    """The next character from those before it. Every head of a block weighs distance alike (after ALiBi)."""

    def __init__(self, symbols: int = 97, width: int = 128, depth: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.blocks = nn.ModuleList(TransformerBlock(width, slope=2.0**-place) for place in range(depth))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.head = nn.Linear(width, symbols, bias=False)

    def forward(self, symbols: Tensor) -> Tensor:
        """Symbols (count, length) to scores of the symbol after each."""
        stream = self.embed(symbols)
        for block in self.blocks:
            stream = block(stream)
        found: Tensor = self.head(self.norm(stream))
        return found
