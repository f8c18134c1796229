"""Small transformers with RMSNorm and without biases, written out in torch, and random states for them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

State = dict[str, NDArray[Any]]


def language(
    *, width: int = 32, depth: int = 2, symbols: int = 40, gated: bool = False, seed: int = 0
) -> State:
    rng = np.random.default_rng(seed)
    found = {"embed.weight": rng.standard_normal((symbols, width))}
    found |= {"head.weight": rng.standard_normal((symbols, width)) / width**0.5}
    return _blocks(found, rng, width=width, depth=depth, gated=gated)


def vision(*, width: int = 32, depth: int = 2, classes: int = 10, seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    found = {
        "patch.weight": rng.standard_normal((width, 3, 4, 4)) / 7,
        "cls": rng.standard_normal((1, 1, width)),
    }
    found |= {"pos": rng.standard_normal((1, 17, width)) / 2}
    found |= {"head.weight": rng.standard_normal((classes, width)) / width**0.5}
    return _blocks(found, rng, width=width, depth=depth, gated=False)


def _blocks(found: State, rng: np.random.Generator, *, width: int, depth: int, gated: bool) -> State:
    def norm() -> NDArray[Any]:
        return np.asarray(1 + 0.3 * rng.standard_normal(width))

    for block in range(depth):
        for name in "qkvo":
            found[f"blocks.{block}.attn.{name}.weight"] = rng.standard_normal((width, width)) / width**0.5
        for name in ("up", "gate")[: 1 + gated]:
            found[f"blocks.{block}.mlp.{name}.weight"] = rng.standard_normal((4 * width, width)) / width**0.5
        found[f"blocks.{block}.mlp.down.weight"] = rng.standard_normal((width, 4 * width)) / width**0.5
        found |= {f"blocks.{block}.norm1.weight": norm(), f"blocks.{block}.norm2.weight": norm()}
    found["norm.weight"] = norm()
    return {name: array.astype(np.float32) for name, array in found.items()}


def outputs(state: State, *, heads: int = 4) -> NDArray[np.float32]:
    """Of eight drawn inputs what a language model says of every place, a vision model of every image."""
    rng = np.random.default_rng(5)
    found = {name: torch.from_numpy(array) for name, array in state.items()}
    if "embed.weight" in found:
        stream = found["embed.weight"][torch.from_numpy(rng.integers(0, len(found["embed.weight"]), (8, 12)))]
    else:
        drawn = torch.from_numpy(rng.standard_normal((8, 3, 16, 16)).astype(np.float32))
        patches = functional.conv2d(drawn, found["patch.weight"], stride=4).flatten(2).transpose(1, 2)
        stream = torch.cat([found["cls"].expand(8, -1, -1), patches], 1) + found["pos"]

    def norm(name: str) -> torch.Tensor:
        return stream / torch.sqrt((stream**2).mean(-1, keepdim=True) + 1e-6) * found[name]

    for block in range(sum(name.endswith("attn.q.weight") for name in state)):
        at, here = f"blocks.{block}.", norm(f"blocks.{block}.norm1.weight")
        q, k, v = (
            (here @ found[f"{at}attn.{each}.weight"].T).unflatten(-1, (heads, -1)).transpose(1, 2)
            for each in "qkv"
        )
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        stream = stream + mixed @ found[f"{at}attn.o.weight"].T
        here = norm(f"{at}norm2.weight")
        inside = here @ found[f"{at}mlp.up.weight"].T
        gate = found.get(f"{at}mlp.gate.weight")
        inside = torch.relu(inside) if gate is None else inside * functional.silu(here @ gate.T)
        stream = stream + inside @ found[f"{at}mlp.down.weight"].T
    made: NDArray[np.float32] = (norm("norm.weight") @ found["head.weight"].T).numpy()
    return made
