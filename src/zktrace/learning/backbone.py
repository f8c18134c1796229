"""Which ResNet a state belongs to, from the names and shapes of its arrays."""

import re
from collections.abc import Iterator

import numpy as np

from zktrace.errors import InputError, LimitExceeded
from zktrace.learning.arrays import Arrays
from zktrace.learning.resnet import BLOCKS, ResNet
from zktrace.learning.states import load_state

MAX_OUTPUTS = 1 << 15  # of a last layer
_BLOCK = re.compile(r"layer([1-4])\.([0-9]{1,3})\.conv1\.weight")


def backbone_of(state: Arrays, *, head: bool = True) -> ResNet:
    """The ResNet of this package that the state fits, with the state in it, in evaluation mode.

    A linear layer `fc` behind the backbone is part of the network unless `head` is false: features are then
    its outputs. Arrays that the network does not have are passed over; one that it lacks, of another shape,
    or with NaN or infinity in it is an error.
    """
    model = _built(state, head=head)
    wanted = model.state_dict()
    for name, value in wanted.items():
        if name not in state:
            raise InputError(f"the state lacks {name!r}: not a whole ResNet-{model.depth}")
        if value.is_floating_point() and state[name].dtype.kind != "f":
            raise InputError(f"{name!r} is of type {state[name].dtype}; turn it back into real numbers first")
        if not np.isfinite(state[name]).all():
            raise InputError(f"{name!r} has numbers that are not finite")
    load_state(model, {name: state[name] for name in wanted})
    return model.eval()


def _built(state: Arrays, *, head: bool) -> ResNet:
    first = state.get("conv1.weight")
    if first is None or first.ndim != 4 or first.shape[2:] != (7, 7) or not first.size:
        raise InputError("not a ResNet of this package: no first convolution of size 7x7 (conv1.weight)")
    width, channels = first.shape[:2]
    found = [match.groups() for match in map(_BLOCK.fullmatch, state) if match]
    blocks = tuple(sum(stage == number for stage, _ in found) for number in "1234")
    depth = next((depth for depth, known in BLOCKS.items() if known == blocks), None)
    if depth is None:
        raise InputError(f"not a ResNet of this package: {blocks} blocks in its stages")
    for name, shape in _convolutions(BLOCKS[depth], width):
        if name not in state:
            raise InputError(f"the state lacks {name!r}: not a whole ResNet-{depth}")
        if state[name].shape != shape:
            raise InputError(f"{name!r} has shape {state[name].shape}, the model needs {shape}")
    return ResNet(
        depth=depth,
        channels=channels,
        width=width,
        rng=np.random.default_rng(0),
        outputs=_outputs(state, 8 * width) if head and "fc.weight" in state else 0,
        bias="fc.bias" in state,
    )


def _outputs(state: Arrays, features: int) -> int:
    shape = state["fc.weight"].shape
    if len(shape) != 2 or shape[1] != features or not shape[0]:
        raise InputError(f"'fc.weight' has shape {shape}, the model needs (outputs, {features})")
    if shape[0] > MAX_OUTPUTS:
        raise LimitExceeded(f"'fc.weight' has {shape[0]} outputs, at most {MAX_OUTPUTS} are used")
    return int(shape[0])


def _convolutions(blocks: tuple[int, ...], width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What a network of this width must have: it is not built before the state is found to be as large."""
    ins = width
    for stage, count in enumerate(blocks):
        outs = width << stage
        for block in range(count):
            yield f"layer{stage + 1}.{block}.conv1.weight", (outs, ins, 3, 3)
            yield f"layer{stage + 1}.{block}.conv2.weight", (outs, outs, 3, 3)
            ins = outs
