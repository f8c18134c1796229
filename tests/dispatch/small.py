"""The smallest operator: a narrow network, short codes, stations with credentials of the test set."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from support import seeded
from zktrace.codes import Code, CodeKey
from zktrace.credentials import SecretKey, by_name
from zktrace.models import save_model
from zktrace.registry.custody import CodeShape
from zktrace.registry.records import ReleaseRecord
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, make_release

SHAPES = (
    CodeShape(carrier="weight", colluders=2),
    CodeShape(carrier="feature", colluders=2),
    CodeShape(carrier="output", colluders=2),
)
LENGTHS = {"weight": 96, "feature": 64, "output": 128}


@cache
def secret_key(label: str) -> SecretKey:
    return SecretKey.generate(by_name("test-128-64-16"), entropy=seeded(label))


@cache
def request(label: str, offer: bytes) -> Request:
    return Request.make(secret_key(label), offer, nonce=seeded(f"nonce {label}")(32))


def operator(
    root: Path,
    *stations: str,
    shapes: tuple[CodeShape, ...] = SHAPES[:2],
    budget: Fraction = Fraction(1, 100),
) -> Home:
    """A workspace with enrolled stations and the same code key every time."""
    with patch.object(CodeKey, "generate", lambda: CodeKey(secret=bytes(range(32)))):
        made = Home.create(root, title="a federation", budget=budget, carriers=shapes, places=16)
    for name in stations:
        made.enrol(name, request(name, made.offer), allow_weak_params=True)
    return made


def short_release(
    home: Home,
    model: Path,
    *,
    carriers: tuple[str, ...] = ("weight",),
    lengths: Mapping[str, int] = LENGTHS,
    **options: Any,
) -> ReleaseRecord:
    """A release with short codes."""
    chosen = {each: lengths[each] for each in carriers}
    return make_release(home, model, carriers=carriers, lengths=chosen, **options)


def code_of(home: Home, carrier: str, release: str = "r1") -> Code:
    """The code of a release's carrier, with the rows of everybody who is enrolled."""
    return OpenRelease.of(home, release).code(carrier)


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
