"""CIFAR-10 folders: the real thing where it is, and every way to be something else."""

import os
from pathlib import Path

import numpy as np
import pytest

from zktrace.errors import Error, InputError, LimitExceeded, MalformedFile, Refused
from zktrace.learning.data import Dataset, load_cifar10
from zktrace.learning.data import cifar10 as module
from zktrace.learning.data.cifar10 import NORMALISATION, RECORD

ROOT = Path(__file__).parents[3]
REAL = Path(os.environ.get("ZKTRACE_CIFAR10", ROOT.parent / "shared" / "data" / "cifar-10-batches-bin"))


def batch(count: int, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    records = rng.integers(0, 256, (count, RECORD), dtype=np.uint8)
    records[:, 0] = np.arange(count) % 10
    return records.tobytes()


def test_any_subset_of_the_batches(tmp_path: Path) -> None:
    for number, count in ((2, 30), (4, 20)):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(batch(count, number))
    (tmp_path / "test_batch.bin").write_bytes(batch(10))
    dataset = load_cifar10(tmp_path)
    assert dataset.split is not None
    assert [len(part) for part in dataset.split.parts().values()] == [50, 0, 10]
    assert dataset.note == "CIFAR-10 (data_batch_2, data_batch_4, test_batch)"
    first = np.frombuffer(batch(30, 2), np.uint8)[1:RECORD].reshape(3, 32, 32)
    np.testing.assert_array_equal(dataset.images[0], first)
    images, labels = dataset.take([0, 31])
    assert images.dtype == np.float32
    assert labels.tolist() == [0, 1]
    for channel in range(3):
        plain = (first[channel] / 255 - NORMALISATION.mean[channel]) / NORMALISATION.deviation[channel]
        np.testing.assert_allclose(images[0, channel], plain, atol=1e-5)


def test_only_test_images_or_only_training_images(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(batch(10))
    split = load_cifar10(tmp_path).split
    assert split is not None
    assert (len(split.train), len(split.test)) == (0, 10)
    os.rename(tmp_path / "test_batch.bin", tmp_path / "data_batch_5.bin")
    split = load_cifar10(tmp_path).split
    assert split is not None
    assert (len(split.train), len(split.test)) == (10, 0)


def test_names_come_from_the_folder_if_they_are_there(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(batch(10))
    assert load_cifar10(tmp_path).class_names[3] == "cat"
    names = [f"kind{number}" for number in range(10)]
    (tmp_path / "batches.meta.txt").write_text("\n".join(names) + "\n\n")
    assert load_cifar10(tmp_path).class_names == tuple(names)
    (tmp_path / "batches.meta.txt").write_text("one\ntwo\n")
    with pytest.raises(MalformedFile, match="must name 10 different classes"):
        load_cifar10(tmp_path)


@pytest.mark.parametrize(
    ("files", "error", "reason"),
    [
        ({}, Refused, "holds no CIFAR-10 batch; the binary version"),
        ({"data_batch_1": b"\x80\x02"}, Refused, r"Python \(pickle\) version, which is never opened"),
        ({"train.bin": b""}, Refused, "CIFAR-100"),
        ({"cifar-10-batches-bin/test_batch.bin": b""}, Refused, "one level deeper"),
        ({"data_batch_1.bin": batch(3)[:-1]}, MalformedFile, "9218 bytes, no whole number of 3073-byte"),
        ({"data_batch_1.bin": b""}, MalformedFile, "0 bytes"),
        ({"data_batch_1.bin": b"\x0a" + batch(1)[1:]}, MalformedFile, "record 0 has label 10 of 10"),
        ({"test_batch.bin": batch(2) + b"\xff" + batch(1)[1:]}, MalformedFile, "record 2 has label 255"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said_in_a_line(
    tmp_path: Path, files: dict[str, bytes], error: type[Error], reason: str
) -> None:
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    with pytest.raises(error, match=reason) as caught:
        load_cifar10(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no such folder"):
        load_cifar10(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="is a file, not a folder"):
        load_cifar10(tmp_path / "file")


def test_an_immense_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILE_LIMIT", 5 * RECORD)
    (tmp_path / "test_batch.bin").write_bytes(batch(6))
    with pytest.raises(LimitExceeded):
        load_cifar10(tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="no CIFAR-10 here: ZKTRACE_CIFAR10 says where it is")
def test_the_real_images() -> None:
    dataset = load_cifar10(REAL)
    assert dataset.class_names == module.CLASS_NAMES
    assert len(dataset) % 10_000 == 0
    images, _ = dataset.take(np.arange(0, len(dataset), 10))
    np.testing.assert_allclose(images.mean(axis=(0, 2, 3)), 0, atol=0.05)
    np.testing.assert_allclose(images.std(axis=(0, 2, 3)), 1, atol=0.05)


def test_a_data_set_cannot_be_wrong() -> None:
    images, labels = np.zeros((3, 4, 2, 2), np.float32), np.array([0, 1, 1])
    good = {"name": "x", "images": images, "labels": labels, "class_names": ("a", "b"), "note": ""}
    Dataset(**good)  # type: ignore[arg-type]
    for wrong in (
        {"images": images[0]},
        {"images": images[:0], "labels": labels[:0]},
        {"labels": labels[:2]},
        {"labels": labels.astype(np.int32)},
        {"labels": labels + 1},
        {"images": images.astype(np.uint8)},
        {"normalise": NORMALISATION},
        {"stations": labels[:1]},
    ):
        with pytest.raises(InputError):
            Dataset(**(good | wrong))  # type: ignore[arg-type]
