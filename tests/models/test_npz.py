"""npz files: a stored zip of arrays whose headers are read by a grammar."""

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.forge import EXAMPLE, npy, npy_header, npz, scarce_memory, stored_zip
from zktrace.errors import Error, LimitExceeded, MalformedModel
from zktrace.models import Limits, ModelState, open_model
from zktrace.models.npz_file import read_npz
from zktrace.models.zip_members import read_directory

LIMITS = Limits()


def read(data: bytes, limits: Limits = LIMITS) -> ModelState:
    view = memoryview(data)
    return read_npz(view, read_directory(view, limits), limits)


def refusal(data: bytes, kind: type[Error] = MalformedModel, limits: Limits = LIMITS) -> str:
    with pytest.raises(kind) as caught, scarce_memory():
        read(data, limits)
    assert type(caught.value) is kind
    return str(caught.value)


def one(array: bytes, name: str = "w.npy") -> bytes:
    return stored_zip({name: array})


def test_what_numpy_saves_is_read_as_views(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(npz(EXAMPLE))
    assert open_model(tmp_path / "m") == ModelState.from_arrays(EXAMPLE)
    data = bytearray(npz({"w": np.zeros(4)}))
    state = read(bytes(data))
    assert np.shares_memory(state["w"], np.frombuffer(state.tensors()[0].data, np.uint8))


def test_names_may_have_folders_and_letters_of_any_script() -> None:
    arrays = {"layer/weight": np.zeros(1), "größe": np.zeros(2), "a.b.c": np.zeros(3)}
    assert read(npz(arrays)) == ModelState.from_arrays(arrays)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_every_order_of_bytes_and_elements_is_normalised(dtype: str, order: Any, endian: str) -> None:
    array = (np.arange(12) % 2 if dtype == "?" else np.arange(12)).reshape(2, 3, 2)
    odd = {"w": np.array(array, dtype=endian + dtype, order=order), "s": np.array(1, dtype=endian + dtype)}
    state = read(npz(odd))
    assert state == ModelState.from_arrays({"w": array.astype(dtype), "s": np.array(1, dtype=dtype)})


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_three_versions_of_the_array_header_are_read(version: int) -> None:
    assert read(one(npy(npy_header("'<u2'", "(2,)"), b"\x01\x00\x02\x00", version=version)))[
        "w"
    ].tolist() == [1, 2]


def test_compressed_arrays_are_refused_with_the_remedy() -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, w=np.zeros(10))
    assert "re-save with numpy.savez" in refusal(buffer.getvalue())


def test_a_bomb_is_not_inflated() -> None:
    bomb = stored_zip({"w.npy": bytes(320 << 20)}, method=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 20
    assert "compressed" in refusal(bomb)


@pytest.mark.parametrize(
    "name",
    ["../w.npy", "/w.npy", "a/../w.npy", "a//w.npy", "./w.npy", "..\\w.npy", ".npy", "a/.npy", "w.txt"],
)
def test_names_that_are_paths_are_refused(name: str) -> None:
    refusal(one(npy(npy_header("'|u1'", "(1,)"), b"x"), name))


@pytest.mark.parametrize("names", [("a.npy", "a.npy.npy"), ("a.npy.npy", "a.npy"), ("a.npy.npy",)])
def test_names_that_numpy_reads_in_two_ways_are_refused(names: tuple[str, ...]) -> None:
    array = npy(npy_header("'|u1'", "(1,)"), b"x")
    assert "numpy reads such a name in two ways" in refusal(stored_zip(dict.fromkeys(names, array)))


def test_two_arrays_of_the_same_name_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("w.npy", npy(npy_header("'|u1'", "(1,)"), b"x"))
        archive.writestr("w.npy", npy(npy_header("'|u1'", "(1,)"), b"y"))
    assert "same name" in refusal(buffer.getvalue())


@pytest.mark.parametrize(
    "descr", ["'|O'", "'<c8'", "'<U3'", "'|S1'", "'<V2'", "'<f16'", "'<M8[s]'", "[('a', '<f4')]"]
)
def test_other_element_types_are_refused_by_name(descr: str) -> None:
    reason = refusal(one(npy(npy_header(descr, "(1,)"), bytes(16)), "layer.w.npy"))
    assert "'layer.w'" in reason
    assert descr.strip("'")[:4] in reason


@pytest.mark.parametrize("descr", ["'|f4'", "'=f4'", "'f4'", "'<f04'", "'<f0'", "'<f'", "''", "'<f4\\n'"])
def test_element_types_that_numpy_does_not_write_are_refused(descr: str) -> None:
    refusal(one(npy(npy_header(descr, "(1,)"), bytes(4))))


@pytest.mark.parametrize(
    "shape", ["(1)", "1", "(-1,)", "(1.0,)", "(01,)", "(1,,)", "(,)", "(1 1,)", "[1]", "(1L,)", ""]
)
def test_shapes_that_are_not_tuples_of_integers_are_refused(shape: str) -> None:
    refusal(one(npy(npy_header("'|u1'", shape), b"x")))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'fortran_order': False, 'descr': '|u1', 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': __import__('os').getpid()}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}\n\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}\x00",
    ],
)
def test_headers_that_numpy_does_not_write_are_refused(header: str) -> None:
    assert "header" in refusal(one(npy(header, b"x")))


@pytest.mark.parametrize("shape", [f"({1 << 60},)", f"(0, {1 << 60})", "(99999999999999999999, 2)"])
def test_a_header_that_claims_too_much_is_refused(shape: str) -> None:
    assert "'w'" in refusal(one(npy(npy_header("'|u1'", shape), b"x")), LimitExceeded)


@pytest.mark.parametrize("size", [0, 3, 5, 8])
def test_the_elements_must_fill_the_member_exactly(size: int) -> None:
    assert "4 bytes" in refusal(one(npy(npy_header("'<f4'", "(1,)"), bytes(size))))


@pytest.mark.parametrize(
    "array",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x01", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x01\x00\x05", b"NOTNUMPY" * 9],
)
def test_members_that_are_not_arrays_are_refused(array: bytes) -> None:
    refusal(one(array))


def test_the_length_of_the_array_header_is_bounded() -> None:
    assert "ends inside" in refusal(one(npy(npy_header("'|u1'", "(1,)"), b"x", size=4000)))
    refusal(one(npy(npy_header("'|u1'", "(1,)"), b"x", version=2, size=(1 << 32) - 1)), LimitExceeded)
    assert "version 4" in refusal(one(npy(npy_header("'|u1'", "(1,)"), b"x", version=4)))


@pytest.mark.parametrize(
    ("limits", "arrays"),
    [
        (Limits(max_tensors=1), {"a": np.zeros(1), "b": np.zeros(1)}),
        (Limits(max_members=1), {"a": np.zeros(1), "b": np.zeros(1)}),
        (Limits(max_total_bytes=15), {"a": np.zeros(1), "b": np.zeros(1)}),
        (Limits(max_dims=1), {"a": np.zeros((1, 1))}),
        (Limits(max_name_bytes=3), {"abcd": np.zeros(1)}),
        (Limits(max_header_bytes=50), {"a": np.zeros(1)}),
        (Limits(max_array_header_bytes=50), {"a": np.zeros(1)}),
    ],
    ids=["tensors", "members", "bytes", "dims", "name", "directory", "header"],
)
def test_limits_are_kept(limits: Limits, arrays: dict) -> None:
    refusal(npz(arrays), LimitExceeded, limits)
