"""Disguises of the zoo's networks that keep what they compute: channels in another order and size.

A set of channels is written by some tensors (along their first axis) and read by others (along their second).
ReLU passes positive factors on, GELU and LayerNorm do not. A GroupNorm layer keeps a group together.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.attacks.rewrite import permute, rescale
from zktrace.attacks.transformers import LANGUAGE, VISION, Graph, permute_heads, rescale_heads, rotate_stream
from zktrace.learning.arrays import Arrays, State

Floats = NDArray[np.float64]
Order = NDArray[np.int64]
Rewrite = Callable[[Arrays, np.random.Generator], State]
SPREAD: Final = 0.5  # of the logarithms of factors
_GROUPS: Final = 8


class _Rewritten:
    """A model in double precision while it is rewritten."""

    def __init__(self, model: Arrays, rng: np.random.Generator) -> None:
        self._shapes = {name: each.shape for name, each in model.items()}
        self.arrays: dict[str, Floats] = {name: np.asarray(each, np.float64) for name, each in model.items()}
        self.rng = rng

    def order(self, size: int, groups: int = 1) -> Order:
        """Groups in another order, and what is in each in another order."""
        inside = size // groups
        starts = inside * self.rng.permutation(groups)
        return np.concatenate([start + self.rng.permutation(inside) for start in starts])

    def factors(self, size: int) -> Floats:
        return np.exp(SPREAD * self.rng.standard_normal(size))

    def reorder(self, order: Order, *, written: Sequence[str], read: Sequence[str]) -> None:
        """Channel i becomes what channel order[i] was."""
        for name in written:
            self.arrays[name] = self.arrays[name][order]
        for name in read:
            self.arrays[name] = self._by_channel(name, len(order))[:, order].reshape(self._shapes[name])

    def scale(self, factors: Floats, *, written: Sequence[str], read: Sequence[str]) -> None:
        """Times the factors where written, divided by them where read."""
        for name in written:
            self.arrays[name] = _along(self.arrays[name], factors, 0)
        for name in read:
            found = _along(self._by_channel(name, len(factors)), 1 / factors, 1)
            self.arrays[name] = found.reshape(self._shapes[name])

    def _by_channel(self, name: str, channels: int) -> Floats:
        """With a second axis of channels; a layer behind pooling may have several columns for each."""
        found = self.arrays[name]
        return found.reshape(len(found), channels, -1) if found.shape[1] != channels else found

    def state(self) -> State:
        return {name: np.ascontiguousarray(each, np.float32) for name, each in self.arrays.items()}


def plain_net(model: Arrays, rng: np.random.Generator) -> State:
    """Every set of channels, from the first convolution to the hidden layer."""
    found = _Rewritten(model, rng)
    layers = ["convs.0", "convs.1", "convs.2", "convs.3", "hidden", "head"]
    for before, after in pairwise(layers):
        written, read = (f"{before}.weight", f"{before}.bias"), (f"{after}.weight",)
        size = len(found.arrays[f"{before}.bias"])
        found.reorder(found.order(size), written=written, read=read)
        found.scale(found.factors(size), written=written, read=read)
    return found.state()


def group_norm_resnet(model: Arrays, rng: np.random.Generator) -> State:
    """The stream of every stage, and the channels inside of every block."""
    found = _Rewritten(model, rng)
    first, second, third = (f"blocks.{block}" for block in range(3))
    sets = [  # convolutions before a norm, norms, others that write; who reads
        (
            ("stem", f"{first}.conv2"),
            ("norm", f"{first}.norm2"),
            (),
            (f"{first}.conv1", f"{second}.conv1", f"{second}.down"),
        ),
        (
            (f"{second}.conv2",),
            (f"{second}.norm2",),
            (f"{second}.down",),
            (f"{third}.conv1", f"{third}.down"),
        ),
        ((f"{third}.conv2",), (f"{third}.norm2",), (f"{third}.down",), ("head",)),
        *(
            ((f"{each}.conv1",), (f"{each}.norm1",), (), (f"{each}.conv2",))
            for each in (first, second, third)
        ),
    ]
    for convs, norms, direct, readers in sets:
        read = [f"{name}.weight" for name in readers]
        scaled = [f"{name}.{part}" for name in norms for part in ("weight", "bias")]
        scaled += [f"{name}.weight" for name in direct]
        size = len(found.arrays[scaled[0]])
        order = found.order(size, _GROUPS)
        found.reorder(order, written=[*(f"{name}.weight" for name in convs), *scaled], read=read)
        found.scale(found.factors(size), written=scaled, read=read)
    return found.state()


def batch_norm_resnet(model: Arrays, rng: np.random.Generator) -> State:
    """Every set of channels but the features, and what a BatchNorm layer leaves open by itself."""
    return permute(rescale(model, rng, spread=SPREAD, norms=True), rng)


def next_net(model: Arrays, rng: np.random.Generator) -> State:
    """Both streams and all hidden units reordered; what the blocks' own scales leave open rescaled."""
    found = _Rewritten(model, rng)
    stages = {
        "stage1": (("stem.weight", "stem.bias", "norm.weight", "norm.bias"), ("step.weight",)),
        "stage2": (("step.weight", "step.bias", "last.weight", "last.bias"), ("head.weight",)),
    }
    for stage, (written, read) in stages.items():
        blocks = sorted(
            {name.rsplit(".", 2)[0] for name in model if name.startswith(f"{stage}.") and "up.weight" in name}
        )
        for block in blocks:
            up, down = (
                (f"{block}.up.weight", f"{block}.up.bias"),
                (f"{block}.down.weight", f"{block}.down.bias"),
            )
            found.reorder(found.order(len(found.arrays[up[1]])), written=up, read=down[:1])
            factors = found.factors(len(found.arrays[f"{block}.scale"]))
            found.scale(factors, written=down, read=())
            found.arrays[f"{block}.scale"] /= factors
            norm = (f"{block}.norm.weight", f"{block}.norm.bias")
            found.scale(found.factors(len(factors)), written=norm, read=up[:1])
        own = (
            "depthwise.weight",
            "depthwise.bias",
            "norm.weight",
            "norm.bias",
            "down.weight",
            "down.bias",
            "scale",
        )
        found.reorder(
            found.order(len(found.arrays[written[0]])),
            written=[*written, *(f"{block}.{part}" for block in blocks for part in own)],
            read=[*read, *(f"{block}.up.weight" for block in blocks)],
        )
    return found.state()


def perceptron(model: Arrays, rng: np.random.Generator) -> State:
    """Hidden units; scikit-learn's matrices map from rows to columns."""
    turned = {name: each.T for name, each in model.items()}
    found = _Rewritten(turned, rng)
    for layer in range(sum(name.startswith("coefs_.") for name in model) - 1):
        written, read = (f"coefs_.{layer}", f"intercepts_.{layer}"), (f"coefs_.{layer + 1}",)
        size = len(found.arrays[written[1]])
        found.reorder(found.order(size), written=written, read=read)
        found.scale(found.factors(size), written=written, read=read)
    return {name: np.ascontiguousarray(each.T) for name, each in found.state().items()}


def _along(weights: Floats, factors: Floats, axis: int) -> Floats:
    return np.asarray(weights * factors.reshape([-1 if each == axis else 1 for each in range(weights.ndim)]))


def transformer(graph: Graph, *, rotated: bool = False) -> Rewrite:
    """Heads, numbers inside heads and hidden units; if it is asked for the stream as well."""

    def rewrite(model: Arrays, rng: np.random.Generator) -> State:
        made = rescale_heads(permute_heads(model, graph, rng), graph, rng, spread=SPREAD)
        return rotate_stream(made, graph, rng) if rotated else made

    return rewrite


CHANNELS: Final = "channels permuted and rescaled"
_ROTATED: Final = "stream rotated too"
REWRITES: Final[Mapping[str, Mapping[str, Rewrite]]] = {  # by network
    "cnn": {CHANNELS: plain_net},
    "groupnorm": {CHANNELS: group_norm_resnet},
    "convnext": {CHANNELS: next_net},
    "mlp": {CHANNELS: perceptron},
    "vit": {CHANNELS: transformer(VISION), _ROTATED: transformer(VISION, rotated=True)},
    "language": {CHANNELS: transformer(LANGUAGE), _ROTATED: transformer(LANGUAGE, rotated=True)},
    "resnet": {CHANNELS: batch_norm_resnet},
}
