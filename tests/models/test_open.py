"""A path of any kind: recognised by content, or refused with what it seems to be."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models.forge import EXAMPLE, npz, simple_checkpoint, stored_zip
from zktrace.errors import Error, MalformedModel, Refused
from zktrace.models import ModelState, open_model, save_model


def refusal(path: Path | str, kind: type[Error] = MalformedModel) -> str:
    with pytest.raises(kind) as caught:
        open_model(path)
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_the_suffix_does_not_matter(tmp_path: Path) -> None:
    save_model(tmp_path / "a.pt", EXAMPLE)
    (tmp_path / "b.safetensors").write_bytes(npz(EXAMPLE))
    (tmp_path / "c.npz").write_bytes(simple_checkpoint())
    assert open_model(tmp_path / "a.pt") == open_model(str(tmp_path / "b.safetensors"))
    assert list(open_model(tmp_path / "c.npz")) == ["w"]


def test_a_link_to_a_model_is_followed(tmp_path: Path) -> None:
    save_model(tmp_path / "a", EXAMPLE)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert open_model(tmp_path / "b") == ModelState.from_arrays(EXAMPLE)


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("w"))
    return buffer.getvalue()


def single_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: b"", "is empty"),
        (lambda: b"\x00", "not a model file"),
        (lambda: b"hello, this is some text", "not a model file"),
        (lambda: os.urandom(8) + b"\x00" * 100, ""),
        (lambda: pickle.dumps({}, 2), "pickle"),
        (lambda: pickle.dumps({}, 4), "pickle"),
        (lambda: pickle.dumps({}, 5), "pickle"),
        (lambda: b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "old format"),
        (lambda: b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
        (lambda: gzip.compress(b"model"), "gzip"),
        (lambda: bz2.compress(b"model"), "bzip2"),
        (lambda: lzma.compress(b"model"), "xz"),
        (lambda: b"GGUF\x01\x00\x00\x00" + bytes(100), "GGUF of version 0x1"),
        (lambda: b"\x1c\x00\x00\x00TFL3" + bytes(100), "TensorFlow Lite"),
        (tar, "tar"),
        (single_array, "npy"),
        (lambda: b"\x08\x08\x12\x07pytorch\x1a\x052.1.0" + bytes(100), "ONNX"),
        (lambda: stored_zip({}), "empty zip"),
        (lambda: stored_zip({"readme": b"hello"}), "neither npz nor"),
        (lambda: stored_zip({"config.json": b"{}", "model.weights.h5": b""}), "Keras"),
        (lambda: stored_zip({"a.npy": b"", "b": b""}), "not only arrays"),
        (lambda: stored_zip({"m/data.pkl": b"", "m/constants.pkl": b""}), "TorchScript"),
        (lambda: stored_zip({"m/data.pkl": b"", "m/code/__torch__.py": b""}), "TorchScript"),
    ],
)
def test_other_files_are_refused_with_what_they_seem_to_be(
    tmp_path: Path, make: Callable[[], bytes], reason: str
) -> None:
    (tmp_path / "m").write_bytes(make())
    assert reason in refusal(tmp_path / "m")
    assert str(tmp_path / "m") in refusal(tmp_path / "m")


def test_a_script_that_torch_wrote_is_recognised(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "m")
    assert "TorchScript" in refusal(tmp_path / "m")


def test_paths_that_are_not_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "is a directory" in refusal(tmp_path, Refused)
    assert "not a regular file" in refusal(tmp_path / "fifo", Refused)
    assert "not a regular file" in refusal("/dev/null", Refused)
    assert "no such file" in refusal(tmp_path / "nothing", Refused)
    assert "no such file" in refusal(tmp_path / "dangling", Refused)
    refusal(tmp_path / "loop", Refused)
    refusal(tmp_path / ("x" * 1000), Refused)
    refusal("a\0b", Refused)
    refusal("a\ud800b", Refused)


def test_a_hostile_path_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb\udc80"
    assert "a\\x1b[31m\\nb\\udc80: cannot be read" in refusal(path, Refused)
    path.write_bytes(b"x")
    assert "a\\x1b[31m\\nb\\udc80: not a model file" in refusal(path)
