"""How long does a marked copy of a ResNet-18 take, beside solving its least-norm problem anew each time?

The weight carrier's informed copies of a network of full width. The plain way is `numpy.linalg.lstsq` for
every copy. Writing a file is measured apart; the digest of a copy is computed while it is written. Copies are
removed as soon as they are on record, so that many need no disk; `ZKTRACE_BENCH_COPIES` sets their number.
"""

import os
import resource
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from readouts.making import weight_reader
from timing import Row, at_least, at_most, median_ms, report
from zktrace.codes import Code, CodeKey, unpack
from zktrace.credentials import SecretKey, by_name
from zktrace.dispatch.dispatching import dispatch
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.marking.weight import WeightWriter
from zktrace.models import ModelState, model_digest, save_model
from zktrace.readouts.scales import centred, layer_sizes
from zktrace.registry.requests import Request
from zktrace.registry.workspace import Home
from zktrace.releases import make_release

COPIES = int(os.environ.get("ZKTRACE_BENCH_COPIES", "100"))
LENGTH = 512
CODE = Code(key=CodeKey(secret=bytes(32)), label="weight", length=LENGTH, colluders=2)


def network() -> ModelState:
    """A ResNet-18 of full width with scales of a trained one's spread."""
    rng = np.random.default_rng(0)
    state = state_of(resnet18(channels=3, rng=rng))
    for name, array in state.items():
        if f"{name.removesuffix('.weight')}.running_var" in state and name.endswith(".weight"):
            state[name] = (0.9 + 0.03 * rng.standard_normal(array.shape)).astype(np.float32)
    return ModelState.from_arrays(state)


def one_copy(shared: ModelState) -> list[Row]:
    """The parts of making a copy."""
    layers = layer_sizes(shared)
    words = unpack(CODE.rows(range(64)), LENGTH)
    number = iter(range(10**6))

    def first() -> None:
        WeightWriter(seed=bytes(32), length=LENGTH, layers=layers).write(shared, words[0])

    writer = WeightWriter(seed=bytes(32), length=LENGTH, layers=layers)
    columns = centred(writer.directions.block(0, LENGTH), layers)
    reader = weight_reader(seed=bytes(32), length=LENGTH, layers=layers, profile="informed")
    factoring = median_ms(first, repeat=3, warm_up=1)
    made = median_ms(lambda: writer.write(shared, words[next(number) % 64]))
    plain = median_ms(
        lambda: np.linalg.lstsq(columns, 2.0 * words[next(number) % 64] - 1, rcond=None), repeat=3, warm_up=1
    )
    state = writer.write(shared, words[0]).state
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.safetensors"
        saving = median_ms(lambda: save_model(path, state, replace=True), repeat=5)
    return [
        Row(name="directions, factor and first copy", value=factoring, unit="ms"),
        at_most("mark a copy", made, "ms", 50),
        Row(name="least squares for a copy", value=plain, unit="ms"),
        at_least("ratio", plain / made, "x", 10),
        Row(name="digest of a copy", value=median_ms(lambda: model_digest(state), repeat=5), unit="ms"),
        Row(name="write a copy", value=saving, unit="ms"),
        Row(name="read a suspect", value=median_ms(lambda: reader.project(state), repeat=5), unit="ms"),
    ]


def many_copies(shared: ModelState) -> list[Row]:
    """Dispatch to many stations: time a copy with file and record, and the growth of memory."""
    with tempfile.TemporaryDirectory() as folder:
        place = Home.create(
            Path(folder) / "op", title="benchmark", budget=Fraction(1, 100), carriers=["weight"]
        )
        for number in range(COPIES):
            request = Request.make(SecretKey.generate(by_name("test-128-64-16")), place.offer)
            place.enrol(f"s{number}", request, allow_weak_params=True)
        path = Path(folder) / "model.safetensors"
        save_model(path, shared)
        make_release(place, path, carriers=("weight",))
        start, warm = time.perf_counter(), 0
        for number, copy in enumerate(dispatch(place)):
            copy.path.unlink()
            if number == COPIES // 10:
                warm = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        took = time.perf_counter() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - warm) / 1024
    return [
        Row(name=f"dispatch, a copy of {COPIES}", value=1e3 * took / COPIES, unit="ms"),
        at_most("growth of memory after the first tenth", grown, "MB", 50),
    ]


if __name__ == "__main__":
    net = network()
    report("dispatch", one_copy(net) + many_copies(net))
