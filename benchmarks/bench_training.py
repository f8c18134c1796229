"""How fast does ResNet-18 train at 4x32x32: with the shortcut for tiny maps, and with plain layers?

One process, `ZKTRACE_BENCH_THREADS` torch threads (1), one 5-way 5-shot 15-query episode (100 images) a step:
forward, backward, update. The variants take turns, so that a busy machine slows all of them alike. Beside the
whole step: single convolutions, forward and backward, and the aggregation of ten states.
"""

import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from timing import Row, at_least, report
from zktrace.learning.aggregation import fedavg, median
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.episodes import episode_outcome
from zktrace.learning.resnet import make_plain, resnet18
from zktrace.learning.states import state_of
from zktrace.learning.tiny_maps import conv3x3_tiny

THREADS = int(os.environ.get("ZKTRACE_BENCH_THREADS", "1"))
REPEAT = int(os.environ.get("ZKTRACE_BENCH_REPEAT", "9"))
SHAPE = EpisodeShape()


def in_turn(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each call, after one call of each to warm up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(REPEAT + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def step(*, shortcut: bool, layout: torch.memory_format) -> Callable[[], object]:
    """A training step on one episode."""
    model = resnet18(channels=4, rng=np.random.default_rng(0))
    if not shortcut:
        make_plain(model)
    model.layout = layout
    model.train()
    images = torch.randn(SHAPE.images, 4, 32, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4, fused=True)

    def run() -> None:
        optimizer.zero_grad()
        episode_outcome(model(images), SHAPE).loss.backward()
        optimizer.step()

    return run


def embedding(*, plain: bool) -> Callable[[], object]:
    """Features of as many images, without gradient."""
    model = resnet18(channels=4, rng=np.random.default_rng(0)).eval()
    if plain:
        make_plain(model)
    images = torch.randn(SHAPE.images, 4, 32, 32)
    return torch.inference_mode()(lambda: model(images))


def steps() -> list[Row]:
    """Images a second."""
    nchw, nhwc = torch.contiguous_format, torch.channels_last
    took = in_turn(
        {
            "plain layers": step(shortcut=False, layout=nchw),
            "plain layers, channels last": step(shortcut=False, layout=nhwc),
            "shortcut": step(shortcut=True, layout=nchw),
            "shortcut, channels last (the model)": step(shortcut=True, layout=nhwc),
            "embedding, plain layers": embedding(plain=True),
            "embedding, the model": embedding(plain=False),
        }
    )
    rates = {name: SHAPE.images / seconds for name, seconds in took.items()}
    chosen = "shortcut, channels last (the model)"
    rows = [Row(name=name, value=rate, unit="images/s") for name, rate in rates.items() if name != chosen]
    rows.insert(3, at_least(chosen, rates[chosen], "images/s", 220))
    rows.append(at_least("ratio of training steps", rates[chosen] / rates["plain layers"], "x", 1.7))
    return rows


def convolution(ins: int, outs: int, size: int, stride: int) -> list[Row]:
    """One layer, forward and backward."""
    images = torch.randn(SHAPE.images, ins, size, size).requires_grad_()
    weight = torch.randn(outs, ins, 3, 3).requires_grad_()

    def both(call: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], object]:
        gradient = torch.ones_like(call(images, weight))
        return lambda: torch.autograd.grad(call(images, weight), (images, weight), gradient)

    took = in_turn(
        {
            "plain": both(lambda x, w: functional.conv2d(x, w, stride=stride, padding=1)),
            "shortcut": both(lambda x, w: conv3x3_tiny(x, w, stride)),
        }
    )
    place = f"3x3, {ins}->{outs}, map {size}x{size}, stride {stride}"
    return [Row(name=f"{place}, {name}", value=1e3 * each, unit="ms") for name, each in took.items()]


def aggregations() -> list[Row]:
    """Ten ResNet-18 states."""
    states = [state_of(resnet18(channels=4, rng=np.random.default_rng(seed))) for seed in range(10)]
    took = in_turn({"FedAvg": lambda: fedavg(states, range(1, 11)), "median": lambda: median(states)})
    return [Row(name=f"{name} of 10 states", value=each, unit="s") for name, each in took.items()]


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    layers = convolution(512, 512, 1, 1) + convolution(256, 512, 2, 2) + convolution(256, 256, 2, 1)
    report(f"training, {THREADS} torch thread{'s' * (THREADS > 1)}", steps() + layers + aggregations())
