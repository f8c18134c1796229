"""How much faster is a round in worker processes than the plain loop over stations?

`desk` size: full-width ResNet-18, 5-way 5-shot 15-query episodes, marks on. Both sides train the same
stations on the same samples for the same episodes. The plain loop runs in this process with a torch thread a
core, torch's default; the engine has one worker a core with one thread each. They take turns; starting the
workers is not measured, because it happens once.

A busy machine does not disturb both sides alike: threads that wait for each other lose far more than
processes that do not. The ratio is only held to its bound if the plain loop got its cores.

ZKTRACE_BENCH_STATIONS (4), ZKTRACE_BENCH_EPISODES (4), ZKTRACE_BENCH_REPEAT (2) make it longer or shorter.
"""

import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from timing import Row, at_least, report
from zktrace.federation.client import Update
from zktrace.federation.roster import experimental_roster
from zktrace.federation.spec import RunSpec, build_model
from zktrace.federation.workers import Engine, worker_engine
from zktrace.learning.arrays import State
from zktrace.learning.presets import load_preset
from zktrace.learning.states import state_of
from zktrace.primitives.processes import processors

STATIONS = int(os.environ.get("ZKTRACE_BENCH_STATIONS", "4"))
EPISODES = int(os.environ.get("ZKTRACE_BENCH_EPISODES", "4"))
REPEAT = int(os.environ.get("ZKTRACE_BENCH_REPEAT", "2"))


def federation(cache: Path) -> RunSpec:
    """The `desk` preset with few stations, few episodes and just enough simulated samples for them."""
    desk = load_preset("desk")
    chosen = replace(
        desk,
        data=replace(desk.data, samples=1500 * STATIONS, imbalance=1.0),
        episodes=replace(desk.episodes, episodes=EPISODES),
        federation=replace(desk.federation, clients=STATIONS, rounds=REPEAT + 1, alpha=100.0),
    )
    words = tuple(key.codeword(chosen.marks.bits) for key in experimental_roster(1, STATIONS))
    return RunSpec(preset=chosen, seed=1, words=words, cache=cache)


def one_round(engine: Engine, number: int, state: State) -> float:
    """Seconds of a round in which every station trains."""
    start = time.perf_counter()
    answers = list(engine.answers(number, tuple(range(STATIONS)), state))
    took = time.perf_counter() - start
    assert all(isinstance(answer, Update) for answer in answers), answers
    return took


def measure(spec: RunSpec) -> list[Row]:
    """Rounds by both sides in turn, after one of each to warm up."""
    dataset, _ = spec.source.load()
    state = state_of(build_model(spec, dataset.shape[0]))
    workers = processors()
    threads = torch.get_num_threads()
    plain: list[float] = []
    spread: list[float] = []
    got: list[float] = []  # cores that the plain loop had
    with worker_engine(spec, workers=0) as alone, worker_engine(spec, workers=workers) as engine:
        for number in range(REPEAT + 1):
            before = time.process_time()
            plain.append(one_round(alone, number, state))
            got.append((time.process_time() - before) / plain[-1])
            spread.append(one_round(engine, number, state))
    ratio = statistics.median(a / b for a, b in zip(plain[1:], spread[1:], strict=True))
    quiet = statistics.median(got[1:]) > 0.75 * threads
    images = STATIONS * EPISODES * spec.preset.episodes.shape.images
    return [
        Row(
            name=f"plain loop, {threads} torch threads",
            value=images / statistics.median(plain[1:]),
            unit="images/s",
        ),
        Row(
            name=f"{workers} workers, one thread each",
            value=images / statistics.median(spread[1:]),
            unit="images/s",
        ),
        Row(name="cores that the plain loop got", value=statistics.median(got[1:]), unit=f"of {threads}"),
        at_least("ratio", ratio, "x", 1.6)
        if quiet
        else Row(name="ratio, on a busy machine: means nothing", value=ratio, unit="x"),
    ]


if __name__ == "__main__":
    torch.set_num_threads(processors())  # torch's default where OMP_NUM_THREADS does not say otherwise
    with tempfile.TemporaryDirectory(prefix="zktrace-bench-") as folder:
        title = f"a round of {STATIONS} stations x {EPISODES} episodes, desk size"
        report(title, measure(federation(Path(folder))))
