"""How long does a suspect take on all three carriers, and one that was only asked?

A ResNet-18 of full width, codes of their usual lengths, ten stations. The suspect is the shared model with
noise on its scales: nobody is certified, so every alignment is tried, which is the longest way.
"""

import tempfile
import time
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np

from timing import Row, at_most, report
from zktrace.credentials import SecretKey, by_name
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.models import ModelState, model_digest, save_model
from zktrace.readouts.readout import Reading
from zktrace.readouts.samples import Pool
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, make_release
from zktrace.tracing import trace

CARRIERS = ("weight", "feature", "output")
STATIONS, IMAGES, CLASSES = 10, 6_000, 10


def operator(folder: Path, shared: ModelState) -> Home:
    """Ten stations and a release with all carriers."""
    place = Home.create(folder / "op", title="benchmark", budget=Fraction(1, 10), carriers=CARRIERS)
    for number in range(STATIONS):
        request = Request.make(SecretKey.generate(by_name("test-128-64-16")), place.offer)
        place.enrol(f"s{number}", request, allow_weak_params=True)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, IMAGES)
    images = rng.standard_normal((IMAGES, 3, 32, 32), dtype=np.float32) + labels[:, None, None, None] / 10
    pool = Pool(
        images=images.astype(np.float32), labels=labels, episodes=asdict(EpisodicConfig()), note="noise"
    )
    save_model(folder / "model.safetensors", shared)
    make_release(place, folder / "model.safetensors", carriers=CARRIERS, name="r1", pool=pool)
    return place


def investigate(place: Home, reading: Reading, suspect: bytes) -> int:
    """The looks that took place."""
    case = trace(
        place.registry,
        place.custody,
        suspect=suspect,
        release="r1",
        readouts=reading.readouts,
        further=reading.further,
        budget=Fraction(1, 1000),
        requests=place.request_of,
    )
    return len(case.evidence.findings.looks)


def disturbed(shared: ModelState, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The shared model with noise on its BatchNorm scales."""
    return {
        name: (array + 0.01 * rng.standard_normal(array.shape)).astype(array.dtype)
        if name.endswith(".weight") and array.ndim == 1
        else array
        for name, array in shared.items()
    }


def measured() -> list[Row]:
    """A model at hand, and a table of scores."""
    rng = np.random.default_rng(0)
    shared = ModelState.from_arrays(state_of(resnet18(channels=3, rng=rng)))
    suspect = ModelState.from_arrays(disturbed(shared, rng))
    with tempfile.TemporaryDirectory() as folder:
        place = operator(Path(folder), shared)
        start = time.perf_counter()
        looks = investigate(place, OpenRelease.of(place, "r1").read(suspect, CARRIERS), model_digest(suspect))
        everything = time.perf_counter() - start
        scores = OpenRelease.of(place, "r1").reader("output").project(suspect).reshape(-1, CLASSES)
        start = time.perf_counter()
        investigate(place, OpenRelease.of(place, "r1").read_answers(scores), bytes(32))
        asked = time.perf_counter() - start
    return [
        Row(name="looks at the suspect", value=looks, unit=""),
        at_most("three carriers and all alignments", everything, "s", 20),
        at_most("from scores alone", asked, "s", 1),
    ]


if __name__ == "__main__":
    report("tracing", measured())
