"""The smallest operator: a narrow network, short codes, stations with credentials of the test set."""

from fractions import Fraction
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from support import seeded
from zktrace.codes import CodeKey
from zktrace.credentials import SecretKey, by_name
from zktrace.models import save_model
from zktrace.registry.custody import CodeShape
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home

SHAPES = (
    CodeShape(carrier="weight", length=96, colluders=2),
    CodeShape(carrier="feature", length=64, colluders=2),
)


@cache
def secret_key(label: str) -> SecretKey:
    return SecretKey.generate(by_name("test-128-64-16"), entropy=seeded(label))


@cache
def request(label: str, offer: bytes) -> Request:
    return Request.make(secret_key(label), offer, nonce=seeded(f"nonce {label}")(32))


def operator(
    root: Path,
    *stations: str,
    shapes: tuple[CodeShape, ...] = SHAPES,
    budget: Fraction = Fraction(1, 100),
) -> Home:
    """A workspace with enrolled stations and the same code key every time."""
    with patch.object(CodeKey, "generate", lambda: CodeKey(secret=bytes(range(32)))):
        made = Home.create(root, title="a federation", budget=budget, carriers=shapes, places=16)
    for name in stations:
        made.enrol(name, request(name, made.offer), allow_weak_params=True)
    return made


def arrays(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Scales of a network of 300, without torch."""
    rng = np.random.default_rng(seed)
    state = {"conv1.weight": rng.normal(size=(4, 3, 7, 7)).astype(np.float32)}
    for number in range(5):
        state[f"layer{number}.bn1.weight"] = (1 + 0.05 * rng.normal(size=60)).astype(np.float32)
        state[f"layer{number}.bn1.running_var"] = np.ones(60, np.float32)
    return state


def model_file(path: Path, seed: int = 0) -> Path:
    save_model(path, arrays(seed))
    return path
