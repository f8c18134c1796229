"""A venue without a federation, and an untrained network: for what needs no training."""

from functools import cache

import numpy as np

from zktrace.baselines.protocol import Venue
from zktrace.learning.arrays import Images, Labels, State
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.readouts.scales import layer_sizes

WIDTH, STATIONS, CLASSES, SHAPE = 4, 3, 6, (2, 16, 16)


@cache
def samples() -> tuple[Images, Labels]:
    """Six classes that differ in their mean."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(CLASSES, dtype=np.int64), 12)
    tones = rng.standard_normal((CLASSES, *SHAPE))
    images = tones[labels] + 0.3 * rng.standard_normal((len(labels), *SHAPE))
    return images.astype(np.float32), labels


def shared(width: int = WIDTH) -> State:
    """A network whose scales differ, as training leaves them."""
    rng = np.random.default_rng(6)
    state = state_of(resnet18(channels=SHAPE[0], width=width, rng=rng))
    for name, array in state.items():
        if array.ndim == 1 and name.endswith("weight"):
            state[name] = (array + 0.2 * rng.standard_normal(array.shape)).astype(np.float32)
    return state


def venue(*, seed: int = 1, stations: int = STATIONS, rounds: int = 2, width: int = WIDTH) -> Venue:
    return Venue(
        stations=stations,
        rounds=rounds,
        seed=seed,
        layers=layer_sizes(shared(width)),
        features=8 * width,
        shape=SHAPE,
        classes=CLASSES,
        episodes=EpisodicConfig(way=5, shot=2, query=3, temperature=8.0, learning_rate=0.01),
        samples=samples,
        first=lambda: shared(width),
    )
