"""How much memory, beyond the mapped file, does a large model take to open, hash, make anew and save?

A safetensors file of random numbers (`ZKTRACE_BENCH_MB`, 1,000 by default) is opened and its digest
computed; a state whose every tensor is made on demand from it is written and hashed in one pass; a GGUF file
with as many elements is read; a capped child rewrites the file, as it does what is uploaded. Each runs in a
process of its own, whose anonymous memory is its heap and stacks: pages of mapped files are not in it. Times
are beside a plain copy and a plain SHA-256 of the file.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from models.gguf_forge import line
from timing import Row, at_most, report
from zktrace.models import LazyTensor, ModelState, Tensor, model_digest, open_confined, open_model, save_model

MEGABYTES = int(os.environ.get("ZKTRACE_BENCH_MB", "1000"))
TENSORS = 8
ROWS = 1024


def anonymous_mb() -> float:
    """Memory of this process that is no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("RssAnon"))
    return int(found.split()[1]) / 1024


def peak_mb(call: Callable[[], object]) -> float:
    """The most that `call` adds, looked at every few milliseconds."""
    before, most, done = anonymous_mb(), 0.0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.003):
            most = max(most, anonymous_mb() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return most


def random_tensors(megabytes: int) -> Iterator[LazyTensor]:
    """Tensors of float32 that are drawn as they are written."""
    width = megabytes * 250_000 // TENSORS // ROWS // 256 * 256

    def drawn(seed: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(seed)
        for _ in range(ROWS):
            yield rng.standard_normal(width, dtype=np.float32)

    for at in range(TENSORS):
        yield LazyTensor(
            name=f"layer{at}.weight", dtype="float32", shape=(ROWS, width), make=lambda at=at: drawn(at)
        )


def moved(tensor: Tensor) -> LazyTensor:
    """A copy of a tensor, each weight a little moved, made a piece at a time."""
    return LazyTensor(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        make=lambda: (run + np.float32(1e-3) for run in tensor.runs()),
    )


def as_gguf(path: Path, target: Path) -> None:
    """The same shapes as blocks of Q8_0 of random bytes, with scales of one."""
    state, table, at = open_model(path), b"", 0
    for tensor in state.tensors():
        table += line(tensor.name, tensor.shape, 8, at)
        at += tensor.nbytes // 4 // 32 * 34
    head = b"GGUF" + (3).to_bytes(4, "little") + len(state).to_bytes(8, "little") + bytes(8) + table
    rng = np.random.default_rng(0)
    with target.open("wb") as handle:
        handle.write(head + bytes(-len(head) % 32))
        while at:
            blocks = rng.integers(0, 256, (min(at, 34 << 18) // 34, 34), dtype=np.uint8)
            blocks[:, :2] = 0x00, 0x3C
            at -= handle.write(blocks.tobytes())


def in_a_process(task: str, path: Path) -> tuple[float, float]:
    """Seconds and megabytes of one of the tasks below."""
    command = [sys.executable, __file__, task, str(path)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, ran.stdout.split())
    return seconds, megabytes


def opened(path: Path) -> None:
    model_digest(open_model(path))


def saved(path: Path) -> None:
    state = ModelState(map(moved, open_model(path).tensors()))
    save_model(path.with_name("copy"), state, replace=True)


def copied(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    with path.with_name("copy").open("rb+") as handle:
        os.fsync(handle.fileno())


def confined(path: Path) -> None:
    open_confined(path)


def hashed(path: Path) -> None:
    with path.open("rb") as handle:
        hashlib.file_digest(handle, "sha256")


def whole(path: Path) -> None:
    """The plain way to save: every array made, then written."""
    arrays = {name: array + np.float32(1e-3) for name, array in open_model(path).items()}
    save_model(path.with_name("copy"), arrays, replace=True)


TASKS = {each.__name__: each for each in (opened, confined, saved, copied, hashed, whole)}


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save_model(path, ModelState(random_tensors(MEGABYTES)))
        as_gguf(path, Path(folder) / "gguf")
        size = path.stat().st_size / 1e6
        copy, _ = in_a_process("copied", path)
        plain, _ = in_a_process("hashed", path)
        read, read_mb = in_a_process("opened", path)
        small = Path(folder) / "small"
        save_model(small, {"w": np.ones(4, dtype=np.float32)})
        start, _ = in_a_process("confined", small)
        child, child_mb = in_a_process("confined", path)
        wrote, wrote_mb = in_a_process("saved", path)
        _, whole_mb = in_a_process("whole", path)
        made, made_mb = in_a_process("opened", Path(folder) / "gguf")
    return [
        Row(name="size of the model", value=size, unit="MB"),
        Row(name="plain copy of the file, durable", value=copy, unit="s"),
        at_most("open and digest, beside a plain SHA-256", read / plain, "x", 1.5),
        at_most("memory to open and digest", read_mb, "MB", 64),
        at_most("make, save and digest, beside a plain copy", wrote / copy, "x", 3),
        at_most("memory to make, save and digest", wrote_mb, "MB", 128),
        Row(name="a child that opens a small file", value=start, unit="s"),
        at_most("a child that opens the model, beside a plain copy", child / copy, "x", 5),
        at_most("memory here while a child opens it", child_mb, "MB", 64),
        Row(name="memory with every array made first", value=whole_mb, unit="MB"),
        Row(name="digest of a quantised GGUF file", value=size / made, unit="MB/s"),
        at_most("memory to dequantise and digest it", made_mb, "MB", 128),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        start = time.perf_counter()
        used = peak_mb(lambda: TASKS[sys.argv[1]](Path(sys.argv[2])))
        print(time.perf_counter() - start, used)
    else:
        report("files", rows())
