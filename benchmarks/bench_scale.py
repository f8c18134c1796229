"""What does a trace cost with 10 and with 10,000 enrolled stations?

`zktrace trace` in a new process, on a model with the scales of a ResNet-18: the log is read, the suspect is
read, every row is made and scored, thresholds are made, evidence is written. Stations are put on record
without proofs; their rows are as real as any.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench_registry import public_key
from timing import Row, at_most, report
from zktrace import Workspace
from zktrace.models import save_model
from zktrace.registry.enrolling import enrolment
from zktrace.registry.records import Entry
from zktrace.registry.requests import Request
from zktrace.registry.stores.sql import SqlStore

SIZES = (10, 10_000)
LAYERS = (64, *(64,) * 4, *(128,) * 5, *(256,) * 5, *(512,) * 5)  # a ResNet-18's


def model(seed: int) -> dict[str, np.ndarray]:
    """BatchNorm scales, and one tensor beside them."""
    rng = np.random.default_rng(seed)
    arrays = {"conv.weight": rng.normal(size=(64, 64, 3, 3)).astype(np.float32)}
    for at, size in enumerate(LAYERS):
        arrays[f"bn{at}.weight"] = rng.normal(1, 0.1, size).astype(np.float32)
        arrays[f"bn{at}.running_var"] = np.ones(size, np.float32)
    return arrays


def operator(folder: Path, stations: int) -> Workspace:
    """A workspace with so many stations and one release."""
    home = Workspace.create(folder, title="scale", budget="1/2", places=stations, carriers=["weight"])
    offer = home.offer
    with SqlStore.of_file(folder / "registry.db").transaction() as change:
        for row in range(stations):
            asked = Request(offer=offer, nonce=bytes(32), public_key=public_key(), proof=b"-")
            record = enrolment(f"s{row}", row, asked, bits=128)
            change.append(row + 1, Entry(at="2026-01-01T00:00:00Z", record=record).to_bytes())
    home = Workspace.open(folder)
    home.release(model(0))
    return home


def traced(home: Workspace, suspect: Path) -> float:
    """Seconds of one command; nobody is named."""
    command = [sys.executable, "-m", "zktrace", "trace", str(suspect), "--budget", "1/1000"]
    start = time.perf_counter()
    ran = subprocess.run(
        [*command, "--workspace", str(home.root)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 4, ran.stderr
    return time.perf_counter() - start


def measured() -> list[Row]:
    """Medians of three, taken in turns."""
    with tempfile.TemporaryDirectory() as folder:
        homes = {size: operator(Path(folder) / str(size), size) for size in SIZES}
        suspect = Path(folder) / "suspect.safetensors"
        save_model(suspect, model(1))
        found = {size: sorted(traced(home, suspect) for _ in range(3))[1] for size, home in homes.items()}
    few, many = (found[size] for size in SIZES)
    return [
        Row(name="10 stations", value=few, unit="s"),
        Row(name="10,000 stations", value=many, unit="s"),
        at_most("10,000 to 10 stations", many / few, "times", 10),
    ]


if __name__ == "__main__":
    report("scale", measured())
