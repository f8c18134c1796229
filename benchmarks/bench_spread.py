"""How fast is a word written into all weights of a model, and read, beside plain numpy and a plain copy?

- A ResNet-18 of full width: a copy made in memory, a suspect read, a case judged with suspect and shared
  model.
- A model of one gigabyte (`ZKTRACE_BENCH_GIGABYTES` sets how many): dispatch of one copy, read back, on
  record, beside `shutil.copyfile` and fsync of the same file, in turns, and all of them stay on the disk;
  memory beyond the mapped files.

The plain way of reading is the textbook butterfly in numpy, over signs that are drawn beforehand.
"""

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

import zktrace
from timing import Row, at_least, at_most, least_ms, report, walls_ms
from zktrace.derivation.streams import Stream
from zktrace.learning.resnet import resnet18
from zktrace.learning.states import state_of
from zktrace.marking.settings import CopySettings
from zktrace.marking.writer import Job, copy_of, writers_of
from zktrace.models import LazyTensor, ModelState, Tensor, model_digest, save_model
from zktrace.readouts.reader import Terms, reader_of, survey_of

GIGABYTES = float(os.environ.get("ZKTRACE_BENCH_GIGABYTES", "1"))
NAMES = ("alpha", "bravo", "charlie")
SEED = bytes(32)


def job_of(shared: ModelState) -> Job:
    """A release in memory."""
    survey = survey_of("spread", shared, length=None, pool=None, draws=Stream("probes", SEED))
    terms = Terms(
        carrier="spread",
        seed=SEED,
        length=survey.length,
        profile="informed",
        dimension=survey.dimension,
        layers=survey.layers,
        deviations=survey.deviations,
        shared=shared,
    )
    return Job(
        shared=shared,
        model=model_digest(shared),
        profile="informed",
        terms={"spread": terms},
        references={"spread": None},
        pool=None,
        settings=CopySettings(),
    )


def held(state: ModelState) -> ModelState:
    """A state whose tensors are all in memory."""
    return ModelState(
        Tensor(name=each.name, dtype=each.dtype, shape=each.shape, data=each.data) for each in state.tensors()
    )


def butterfly(rows: np.ndarray) -> np.ndarray:
    """The Walsh-Hadamard transform of every row, as a textbook has it."""
    size, half = rows.shape[1], 1
    found = rows.copy()
    while half < size:
        pairs = found.reshape(len(rows), -1, 2, half)
        up, down = pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]
        found = np.stack([up, down], axis=2).reshape(rows.shape)
        half *= 2
    return found


def network() -> list[Row]:
    """A ResNet-18 of full width in memory."""
    shared = ModelState.from_arrays(state_of(resnet18(channels=3, rng=np.random.default_rng(0))))
    job = job_of(shared)
    length, weights = job.terms["spread"].length, job.terms["spread"].dimension
    word = np.random.default_rng(1).integers(0, 2, length).astype(np.uint8)
    writers = writers_of(job)

    def make() -> ModelState:
        return held(copy_of(job, writers, {"spread": word}, row=0, step=lambda _share: None))

    copy = make()
    reader = reader_of(job.terms["spread"])
    reader.read(copy)
    reading = least_ms(lambda: reader.read(copy), repeat=7)
    block = np.random.default_rng(2).standard_normal((512, length)).astype(np.float32)
    signs = np.where(np.random.default_rng(3).random((2, *block.shape)) < 0.5, -1, 1).astype(np.float32)
    plain = least_ms(lambda: (signs[1] * butterfly(signs[0] * (block - block / 2))).sum(0), repeat=5)
    rate, slow = weights / reading / 1e3, block.size / plain / 1e3
    walls = walls_ms(make, repeat=7)
    return [
        at_most("ResNet-18, make a copy", statistics.median(walls), "ms", 100),
        Row(name="ResNet-18, make a copy: least", value=walls[0], unit="ms"),
        at_least("read", rate, "million weights/s and core", 50),
        Row(name="read by a plain butterfly", value=slow, unit="million weights/s and core"),
        Row(name="ratio", value=rate / slow, unit="x"),
    ]


def life(
    folder: Path, shared: Path | dict[str, np.ndarray], before: Callable[[str], object] = str
) -> dict[str, float]:
    """Seconds of release, dispatch, trace and judge; `before` is called before each of three copies."""
    home = zktrace.Workspace.create(folder / "operator", title="a benchmark", budget="1/10")
    for name in NAMES:
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    times: dict[str, float] = {}
    spent: list[float] = []

    def timed(what: str, start: float) -> None:
        times[what] = time.perf_counter() - start

    start = time.perf_counter()
    release = home.release(shared)
    timed("release", start)
    for name in NAMES:
        before(name)
        start = time.perf_counter()
        copy = home.dispatch(name, release)
        spent.append(time.perf_counter() - start)
    times["dispatch"] = statistics.median(spent)
    start = time.perf_counter()
    case = home.trace(copy.path, budget=Fraction(1, 1000))
    timed("trace", start)
    assert case.named == NAMES[-1:]
    start = time.perf_counter()
    judged = zktrace.judge(
        case.evidence, head=home.head, suspect=copy.path, shared=release.folder.shared_path
    )
    timed("judge", start)
    assert judged.named == NAMES[-1:]
    return times


def judged() -> list[Row]:
    """The cases of a ResNet-18."""
    with tempfile.TemporaryDirectory() as folder:
        times = life(Path(folder), state_of(resnet18(channels=3, rng=np.random.default_rng(0))))
    return [
        Row(name=f"ResNet-18, {what}", value=seconds, unit="s")
        if what != "judge"
        else at_most("ResNet-18, judge with suspect and shared model", seconds, "s", 3)
        for what, seconds in times.items()
    ]


class Memory:
    """The most memory of this process that no file backs, watched while a block runs."""

    def __enter__(self) -> "Memory":
        self.most, self._stop = 0, threading.Event()
        self._start = self._now()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @staticmethod
    def _now() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(each for each in lines if each.startswith("RssAnon")).split()[1])

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            self.most = max(self.most, self._now() - self._start)


def copied(source: Path, target: Path) -> float:
    """Seconds of a plain copy that is on the disk when it is done, as a copy of a station is."""
    start = time.perf_counter()
    shutil.copyfile(source, target)
    with target.open("rb") as handle:
        os.fsync(handle.fileno())
    return time.perf_counter() - start


def large() -> list[Row]:
    """A model of gigabytes on the disk."""
    count = max(int(GIGABYTES * (1 << 30) / (4 << 22)), 1)

    def tensor(at: int) -> Tensor:
        def make() -> list[np.ndarray]:
            return [0.02 * np.random.default_rng(at).standard_normal((2048, 2048), dtype=np.float32)]

        return LazyTensor(name=f"layers.{at:03}.weight", dtype="float32", shape=(2048, 2048), make=make)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.safetensors"
        save_model(path, ModelState(tensor(at) for at in range(count)))
        taken: list[float] = []
        with Memory() as memory:
            times = life(
                Path(folder), path, lambda name: taken.append(copied(path, Path(folder) / f"copy-{name}"))
            )
        plain = statistics.median(taken)
        size = path.stat().st_size / (1 << 30)
    return [
        Row(name="large model", value=size, unit="GiB"),
        Row(name="plain copy of the file", value=plain, unit="s"),
        *(Row(name=f"large model, {what}", value=seconds, unit="s") for what, seconds in times.items()),
        at_most("dispatch, in plain copies", times["dispatch"] / plain, "x", 3),
        at_most("memory beyond mapped files", memory.most / (1 << 20), "MiB", 600),
    ]


if __name__ == "__main__":
    report("spread carrier", [*network(), *judged(), *large()])
