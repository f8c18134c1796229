"""CIFAR-10 in its binary layout: files of records, one label byte and 3072 bytes of colour planes each."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import MalformedFile, Refused
from zktrace.learning.data.dataset import Dataset, Normalisation
from zktrace.learning.data.splits import Split
from zktrace.primitives.files import read_bounded

RECORD: Final = 3073
CLASSES: Final = 10
TRAIN_FILES: Final = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE: Final = "test_batch.bin"
NAMES_FILE: Final = "batches.meta.txt"
CLASS_NAMES: Final = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
NORMALISATION: Final = Normalisation(mean=(0.4914, 0.4822, 0.4465), deviation=(0.2470, 0.2435, 0.2616))
_FILE_LIMIT: Final = 100_000 * RECORD
_WANTED: Final = "the binary version (cifar-10-batches-bin: data_batch_1.bin ... test_batch.bin) is needed"


def load_cifar10(folder: Path) -> Dataset:
    """All batches that are in the folder, training batches first; its split is theirs, without validation."""
    found = [name for name in (*TRAIN_FILES, TEST_FILE) if (folder / name).exists()]
    if not found:
        raise Refused(f"{folder}: {_why_nothing(folder)}")
    batches = [_read_batch(folder / name) for name in found]
    labels = np.concatenate([batch[:, 0] for batch in batches]).astype(np.int64)
    images = np.concatenate([batch[:, 1:] for batch in batches]).reshape(-1, 3, 32, 32)
    tests = len(batches[-1]) if found[-1] == TEST_FILE else 0
    everything = np.arange(len(labels), dtype=np.int64)
    cut = len(labels) - tests
    return Dataset(
        name="cifar10",
        images=images,
        labels=labels,
        class_names=_class_names(folder / NAMES_FILE),
        note="CIFAR-10 (" + ", ".join(name.removesuffix(".bin") for name in found) + ")",
        normalise=NORMALISATION,
        split=Split(train=everything[:cut], validation=everything[:0], test=everything[cut:]),
    )


def _why_nothing(folder: Path) -> str:
    if not folder.is_dir():
        return "is a file, not a folder" if folder.exists() else "no such folder"
    if (folder / "cifar-10-batches-bin").is_dir():
        return "the batches are one level deeper, in cifar-10-batches-bin"
    if any((folder / name.removesuffix(".bin")).exists() for name in (*TRAIN_FILES, TEST_FILE)):
        return f"holds the Python (pickle) version, which is never opened; {_WANTED}"
    if (folder / "train.bin").exists():
        return f"looks like CIFAR-100; {_WANTED}"
    return f"holds no CIFAR-10 batch; {_WANTED}"


def _read_batch(path: Path) -> NDArray[np.uint8]:
    data = read_bounded(path, limit=_FILE_LIMIT)
    if not data or len(data) % RECORD:
        raise MalformedFile(
            f"{path}: {len(data)} bytes, no whole number of {RECORD}-byte records (truncated?)"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    wrong = np.flatnonzero(records[:, 0] >= CLASSES)
    if len(wrong):
        raise MalformedFile(f"{path}: record {wrong[0]} has label {records[wrong[0], 0]} of {CLASSES}")
    return records


def _class_names(path: Path) -> tuple[str, ...]:
    if not path.exists():
        return CLASS_NAMES
    lines = read_bounded(path, limit=4096).decode("ascii", "replace").split()
    if len(lines) != CLASSES or len(set(lines)) != CLASSES or not all(line.isprintable() for line in lines):
        raise MalformedFile(f"{path}: must name {CLASSES} different classes, one a line")
    return tuple(lines)
