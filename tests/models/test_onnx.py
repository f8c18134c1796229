"""ONNX files: initialisers and Constants as the onnx package reads them; hostile messages are refused."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from models.forge import EXAMPLE, scarce_memory
from models.test_fuzz import MASKS, changed_bytes, rearranged
from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused
from zktrace.models import Limits, ModelState, model_digest, open_model, save_model
from zktrace.models.onnx_file import read_onnx
from zktrace.models.protobuf import Fuel, count_numbers, fields, numbers

LIMITS = Limits()


def nowhere(file: str) -> memoryview:
    raise Refused(f"no {file}")


def read(data: bytes, limits: Limits = LIMITS) -> ModelState:
    return read_onnx(memoryview(data), limits, nowhere)


def refusal(data: bytes, kind: type[Error] = MalformedModel, limits: Limits = LIMITS) -> str:
    with pytest.raises(kind) as caught, scarce_memory():
        read(data, limits)
    assert type(caught.value) is kind
    return str(caught.value)


def model(tensors: list[TensorProto], nodes: list[Any] | None = None) -> bytes:
    """A whole file as the package writes it."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    nodes = nodes or [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [value], [value], initializer=tensors)
    return helper.make_model(graph, producer_name="somebody").SerializeToString()


def example() -> list[TensorProto]:
    return [numpy_helper.from_array(array, name) for name, array in EXAMPLE.items()]


def test_initialisers_are_the_model(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(model(example()))
    assert open_model(tmp_path / "m") == ModelState.from_arrays(EXAMPLE)


NUMBERS = {
    TensorProto.FLOAT: [0.5, -1.25],
    TensorProto.DOUBLE: [0.1, -3.0],
    TensorProto.INT64: [-(1 << 63), 5],
    TensorProto.INT32: [-7, 1 << 30],
    TensorProto.INT16: [-300, 300],
    TensorProto.INT8: [-128, 127],
    TensorProto.UINT8: [0, 255],
    TensorProto.UINT16: [0, 65535],
    TensorProto.UINT32: [0, (1 << 32) - 1],
    TensorProto.UINT64: [1, (1 << 64) - 1],
    TensorProto.BOOL: [True, False],
    TensorProto.FLOAT16: [0.5, -2.0],
}


@pytest.mark.parametrize("kind", NUMBERS, ids=TensorProto.DataType.Name)
def test_elements_that_are_not_raw_are_what_the_package_reads(kind: int) -> None:
    tensor = helper.make_tensor("w", kind, [2], NUMBERS[kind])
    assert not tensor.raw_data
    theirs = numpy_helper.to_array(tensor)
    state = read(model([tensor]))
    assert state["w"].dtype == theirs.dtype
    assert np.array_equal(state["w"], theirs)
    assert model_digest(state) == model_digest(ModelState.from_arrays({"w": theirs}))


def test_bfloat16_is_read_by_its_bits() -> None:
    raw = TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[2], raw_data=b"\x80\x3f\x00\xc0")
    packed = TensorProto(name="w", data_type=TensorProto.BFLOAT16, dims=[2], int32_data=[0x3F80, 0xC000])
    for tensor in (raw, packed):
        assert read(model([tensor]))["w"].tolist() == [1.0, -2.0]


def test_constants_go_by_the_name_of_their_output() -> None:
    inside = numpy_helper.from_array(np.arange(6.0).reshape(2, 3), "ignored")
    words = helper.make_tensor("t", TensorProto.STRING, [1], [b"word"])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=inside),
        helper.make_node("Constant", [], ["f"], value_float=1.0),
        helper.make_node("Constant", [], ["s"], value=words),
        helper.make_node("ConstantOfShape", ["c"], ["z"], value=numpy_helper.from_array(np.zeros(1))),
    ]
    state = read(model(example(), nodes))
    assert set(state) == {*EXAMPLE, "c"}
    assert np.array_equal(state["c"], np.arange(6.0).reshape(2, 3))


def test_external_data_is_read_from_the_folder_only(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((40, 40)).astype(np.float32) for name in "ab"}
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    whole = onnx.load_from_string(model(tensors))
    path = tmp_path / "m.onnx"
    onnx.save(whole, path, save_as_external_data=True, location="weights.bin", size_threshold=1)
    assert (tmp_path / "weights.bin").stat().st_size >= 2 * 6400
    assert open_model(path) == ModelState.from_arrays(arrays)
    assert open_model(tmp_path) == ModelState.from_arrays(arrays)
    data = path.read_bytes()
    for place in (b"../weights.", b"/etc/passwd", b"sub/weights", b"..\\eights.b"):
        (tmp_path / "other").write_bytes(data.replace(b"weights.bin", place))
        with pytest.raises(MalformedModel, match="no plain name"):
            open_model(tmp_path / "other")
    (tmp_path / "weights.bin").rename(tmp_path / "moved")
    with pytest.raises(Refused, match="cannot be read"):
        open_model(path)
    (tmp_path / "weights.bin").symlink_to(tmp_path / "moved")
    with pytest.raises(Refused, match="is a link"):
        open_model(path)
    (tmp_path / "weights.bin").unlink()
    (tmp_path / "weights.bin").write_bytes(bytes(6400))
    with pytest.raises(MalformedModel, match=r"not in 'weights\.bin'"):
        open_model(path)


def changed(**fields: Any) -> bytes:
    values = {"name": "w", "data_type": TensorProto.FLOAT, "dims": [2], "raw_data": bytes(8)} | fields
    return model([TensorProto(**{key: value for key, value in values.items() if value is not None})])


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (changed(dims=[3]), MalformedModel, "8 bytes for shape (3)"),
        (changed(raw_data=None, float_data=[1.0]), MalformedModel, "4 bytes for"),
        (changed(float_data=[1.0, 2.0]), MalformedModel, "not one store"),
        (changed(raw_data=None, int64_data=[1, 2]), MalformedModel, "not one store"),
        (changed(raw_data=None), MalformedModel, "not one store"),
        (changed(raw_data=None, data_type=7, int64_data=[1]), MalformedModel, "not as many"),
        (changed(dims=[-1]), LimitExceeded, "beyond"),
        (changed(dims=[1 << 60]), LimitExceeded, "beyond"),
        (changed(dims=[0, 1 << 60]), LimitExceeded, "beyond"),
        (changed(dims=[1] * 9), LimitExceeded, "9 dimensions"),
        (changed(dims=[1] * 99), LimitExceeded, "too many dimensions"),
        (changed(data_type=TensorProto.COMPLEX64), MalformedModel, "ONNX type 14"),
        (changed(data_type=TensorProto.STRING, raw_data=None), MalformedModel, "ONNX type 8"),
        (changed(name=""), MalformedModel, "empty name"),
        (changed(name="a\nb"), MalformedModel, "control"),
        (changed(data_location=1), MalformedModel, "both in the file"),
        (changed(segment=TensorProto.Segment(begin=0)), MalformedModel, "segments"),
        (model([]), MalformedModel, "no tensors"),
        (model(example()) + b"\x3a\x00", MalformedModel, "2 fields of graph"),
        (b"\x08\x08\x12\x01x", MalformedModel, "0 fields of graph"),
        (b"\x08\x08\x3a\x7fx", MalformedModel, "ends inside"),
        (b"\x08" + b"\xff" * 10, MalformedModel, "does not end"),
        (b"\x0b\x0c", MalformedModel, "unknown kind"),
        (b"\x00\x00", MalformedModel, "without a number"),
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes, kind: type[Error], reason: str) -> None:
    assert reason in refusal(data, kind)


def test_a_bool_that_is_none_is_refused_when_it_is_read() -> None:
    state = read(changed(data_type=TensorProto.BOOL, raw_data=None, int32_data=[1, 2]))
    with pytest.raises(MalformedModel, match="neither 0 nor 1"):
        state["w"]


@pytest.mark.parametrize(
    "limits", [Limits(max_tensors=6), Limits(max_fields=20), Limits(max_total_bytes=100), Limits(max_dims=3)]
)
def test_limits_are_kept(limits: Limits) -> None:
    refusal(model(example()), LimitExceeded, limits)


def test_many_small_numbers_do_not_fill_the_memory() -> None:
    """The elements of a hostile file are counted, not made."""
    count = 40_000_000
    packed = b"\x3a" + varint(count) + bytes(count)
    tensor = b"\x08" + varint(count) + b"\x10\x07\x42\x01w" + packed
    graph = b"\x2a" + varint(len(tensor)) + tensor
    data = b"\x08\x08\x12\x01x\x3a" + varint(len(graph)) + graph
    with scarce_memory():
        state = read(data)
        assert state.nbytes == 8 * count
        assert sum(len(run) for run in state.tensors()[0].runs()) == count


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@settings(deadline=None)
@given(values=st.lists(st.integers(0, (1 << 64) - 1), max_size=50), part=st.sampled_from([10, 13, 1 << 18]))
def test_packed_numbers_are_read_part_by_part(values: list[int], part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zktrace.models.protobuf._PART", part)
        packed = memoryview(b"".join(map(varint, values)))
        assert count_numbers(packed) == len(values)
        assert [int(each) for some in numbers(packed) for each in some] == values


def test_fields_of_every_wire_type() -> None:
    data = b"\x08\x96\x01" + b"\x11" + struct.pack("<d", 1.5) + b"\x1a\x02hi" + b"\x25" + struct.pack("<f", 2)
    found = [
        (number, kind, value if isinstance(value, int) else bytes(value))
        for number, kind, value in fields(memoryview(data), Fuel(fields=4))
    ]
    assert found == [(1, 0, 150), (2, 1, struct.pack("<d", 1.5)), (3, 2, b"hi"), (4, 5, struct.pack("<f", 2))]
    with pytest.raises(LimitExceeded):
        list(fields(memoryview(data), Fuel(fields=3)))


def used(data: bytes) -> ModelState | None:
    try:
        state = read(data)
        assert sum(array.nbytes for array in state.values()) <= 8 * len(data)
    except Error as error:
        assert str(error).isprintable()
        assert len(str(error)) < 500
        return None
    return state


def small() -> bytes:
    tensors = [
        numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w"),
        helper.make_tensor("n", TensorProto.INT64, [3], [1, -1, 300]),
    ]
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.arange(2), "v"))
    return model(tensors, [constant])


def theirs(data: bytes) -> dict[str, Any] | None:
    """What the package finds, None if it refuses."""
    try:
        graph = onnx.load_from_string(data).graph
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    except Exception:
        return None


def test_every_byte_may_be_changed_and_what_opens_is_what_the_package_reads() -> None:
    data, same = small(), 0
    for changed_ in changed_bytes(data, MASKS):
        with scarce_memory():
            state = used(changed_)
        other = theirs(changed_) if state is not None else None
        if state is not None and other is not None:
            same += 1
            for name, array in other.items():
                assert np.array_equal(state[name], array, equal_nan=True)
    assert same > 100


def test_everything_may_be_rearranged() -> None:
    with scarce_memory():
        for changed_ in rearranged(small(), 1500, seed=5):
            used(changed_)


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=300))
def test_any_graph_opens_or_is_refused(data: bytes) -> None:
    used(b"\x08\x08\x3a" + varint(len(data)) + data)
    used(
        b"\x08\x08\x3a" + varint(len(data) + 1 + len(varint(len(data)))) + b"\x2a" + varint(len(data)) + data
    )


def test_a_file_of_the_package_keeps_its_digest_as_safetensors(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(small())
    state = open_model(tmp_path / "m")
    assert (
        save_model(tmp_path / "n", state) == model_digest(open_model(tmp_path / "n")) == model_digest(state)
    )
