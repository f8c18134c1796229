"""Folders of recordings, made here in the form of the release, and folders that mean harm."""

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zktrace.errors import Error, InputError, LimitExceeded, MalformedFile, Refused
from zktrace.learning.data import load_recordings
from zktrace.learning.data import recordings as module
from zktrace.learning.data.gnss import Simulator
from zktrace.learning.data.recordings import read_recording

SIMULATOR = Simulator(seed=4)
BLOCK = SIMULATOR.recordings(np.arange(6), np.arange(6), 1)
NAMES = ("Chirp", "CW", "Prn")


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "iq").mkdir()
    for number in range(6):
        (tmp_path / "iq" / f"{number}.npy").write_bytes(npy(BLOCK.recordings[number]))
    lines = [f"iq/{number}.npy,{NAMES[number % 3]},{number * 10}" for number in range(6)]
    for name, part in (("train", lines[:3]), ("val", lines[3:4]), ("test", lines[4:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["file,label,power", *part]) + "\n")
    return tmp_path


def test_recordings_take_the_way_of_simulated_ones(folder: Path) -> None:
    dataset = load_recordings(folder)
    made = SIMULATOR.samples(np.arange(6), np.arange(6), 1)
    np.testing.assert_array_equal(dataset.images, made.images)
    assert dataset.class_names == ("CW", "Chirp", "Prn")
    assert dataset.labels.tolist() == [1, 0, 2, 1, 0, 2]
    assert dataset.split is not None
    assert [part.tolist() for part in dataset.split.parts().values()] == [[0, 1, 2], [3], [4, 5]]
    assert "simulated" not in dataset.note


def test_classes_can_be_given(folder: Path) -> None:
    assert load_recordings(folder, class_names=NAMES).labels.tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(MalformedFile, match="label 'Prn' is none of Chirp, CW"):
        load_recordings(folder, class_names=NAMES[:2])


def test_one_split_file_is_enough(folder: Path) -> None:
    (folder / "val.csv").unlink()
    (folder / "test.csv").unlink()
    split = load_recordings(folder).split
    assert split is not None
    assert (len(split.train), len(split.validation), len(split.test)) == (3, 0, 0)


def test_another_full_scale(folder: Path) -> None:
    (folder / "iq" / "0.npy").write_bytes(npy(BLOCK.recordings[0] * np.float32(32768)))
    with pytest.raises(MalformedFile, match="beyond full scale 1"):
        load_recordings(folder)
    raw = read_recording(folder / "iq" / "0.npy", full_scale=32768)
    np.testing.assert_array_equal(raw, BLOCK.recordings[0])
    with pytest.raises(InputError):
        load_recordings(folder, full_scale=0)


class Harm:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("harmed",)


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is no .npy array"),
        (b"\x93NUMPY", "is no .npy array"),
        (pickle.dumps(Harm()), "is no .npy array"),
        (npy(BLOCK.recordings[0])[:-8], "must be 32768"),
        (npy(BLOCK.recordings[0]) + b"\0" * 8, "must be 32768"),
        (npy(BLOCK.recordings[0][:, :512]), r"\(4, 512\), must be complex64 <c8 \(4, 1024\)"),
        (npy(BLOCK.recordings[0].real), "<f4"),
        (npy(np.full((4, 1024), np.nan, np.complex64)), "component nan"),
        (header("{'descr': '<c8', 'fortran_order': False, 'shape': (4, 10**12), }\n"), "is no .npy array"),
        (
            header("{'descr': '<c8', 'fortran_order': False, 'shape': (4, 1024000000), }\n"),
            "must be complex64",
        ),
        (
            header("{'descr': '|O', 'fortran_order': False, 'shape': (4, 1024), }\n") + pickle.dumps(Harm()),
            "must be complex64",
        ),
        (header("__import__('os').mkdir('harmed')"), "is no .npy array"),
    ],
)
def test_a_bad_array_is_one_line(
    folder: Path, data: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "iq" / "4.npy").write_bytes(data)
    with pytest.raises(MalformedFile, match=reason) as caught:
        load_recordings(folder)
    assert "\n" not in str(caught.value)
    assert not (folder / "harmed").exists()


def test_fortran_order_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.npy").write_bytes(npy(np.asfortranarray(BLOCK.recordings[0])))
    np.testing.assert_array_equal(read_recording(tmp_path / "f.npy"), BLOCK.recordings[0])


def test_an_immense_array_is_not_read(folder: Path) -> None:
    with open(folder / "iq" / "0.npy", "ab") as handle:
        handle.truncate(10**7)
    with pytest.raises(LimitExceeded):
        load_recordings(folder)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must name the columns"),
        ("name,label\niq/0.npy,CW\n", "must name the columns"),
        ("file,label\n", "list nothing"),
        ("file,label\niq/0.npy\n", "line 2 lacks"),
        ("file,label\niq/0.npy,\n", "line 2 lacks"),
        ("file,label\niq/0.npy,  \n", "no usable label"),
        ("file,label\niq/0.npy," + "x" * 65 + "\n", "no usable label"),
        ("file,label\n/etc/passwd,CW\n", "outside the folder"),
        ("file,label\n../x.npy,CW\n", "outside the folder"),
        ("file,label\niq/../../x.npy,CW\n", "outside the folder"),
        ("file,label\niq\\0.npy,CW\n", "outside the folder"),
        ("file,label\niq/0.npy,CW\niq/0.npy,Prn\n", "listed twice"),
        ("file,label\niq/0.npy,CW\n./iq/0.npy,CW\n", "listed twice"),
        ('file,label\n"iq/0.npy,CW\n', "is no CSV text"),
        ("file,label\n\xff,CW\n", "is no CSV text"),
    ],
)
def test_a_bad_split_file_is_one_line(folder: Path, text: str, reason: str) -> None:
    for name in ("val.csv", "test.csv"):
        (folder / name).unlink()
    (folder / "train.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(MalformedFile, match=reason) as caught:
        load_recordings(folder)
    assert "\n" not in str(caught.value)


def test_a_link_out_of_the_folder_is_not_followed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.npy"
    outside.write_bytes(npy(BLOCK.recordings[0]))
    (folder / "iq" / "0.npy").unlink()
    (folder / "iq" / "0.npy").symlink_to(outside)
    with pytest.raises(MalformedFile, match="leads outside"):
        load_recordings(folder)


def test_links_in_a_circle_are_one_line(folder: Path) -> None:
    (folder / "iq" / "0.npy").unlink()
    (folder / "iq" / "0.npy").symlink_to(folder / "iq" / "0.npy")
    with pytest.raises(Error, match=r"0\.npy"):
        load_recordings(folder)


def test_missing_things(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no such folder"):
        load_recordings(tmp_path / "nowhere")
    (folder / "iq" / "2.npy").unlink()
    with pytest.raises(Refused, match="no such file"):
        load_recordings(folder)
    for name in module.SPLIT_FILES:
        (folder / name).unlink()
    with pytest.raises(Refused, match=r"holds none of train\.csv, val\.csv, test\.csv"):
        load_recordings(folder)


def test_too_many_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROW_LIMIT", 2)
    with pytest.raises(LimitExceeded):
        load_recordings(folder)


@settings(max_examples=150)
@given(st.binary(max_size=200), st.integers(0, 128))
def test_no_bytes_raise_anything_but_our_errors(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, keep: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.npy"
    path.write_bytes(npy(BLOCK.recordings[0])[:keep] + noise)
    with pytest.raises(Error):
        read_recording(path)
