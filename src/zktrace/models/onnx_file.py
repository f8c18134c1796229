"""ONNX files: the initialisers of the graph, and the tensors of its Constant nodes. No operator is run.

Read are ModelProto.graph, its `initializer` and of its nodes the Constants, whose tensor goes by the name of
the node's output. Bodies of loops and branches are left out. What stands twice where the format has it once
would be merged by some readers and replaced by others: it is refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models.dtypes import ALLOWED, BY_TAG, Dtype
from zktrace.models.limits import Limits, byte_size, check_count, check_name_length, check_total, shown_shape
from zktrace.models.protobuf import BYTES, VARINT, Fuel, count_numbers, fields, numbers
from zktrace.models.shards import check_plain
from zktrace.models.state import LazyTensor, ModelState, Tensor
from zktrace.primitives.text import shown

Beside = Callable[[str], memoryview]  # the bytes of a file in the model's folder

# Numbers of fields, by message.
_GRAPH = 7
_NODE, _INITIALIZER, _SPARSE = 1, 5, 15
_OUTPUT, _OP_TYPE, _ATTRIBUTE = 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_TENSOR = 1, 5
_DIMS, _TYPE, _SEGMENT, _NAME, _RAW, _EXTERNAL, _LOCATION = 1, 2, 3, 8, 9, 13, 14
_FLOATS, _INT32S, _INT64S, _DOUBLES, _UINT64S = 4, 5, 7, 10, 11
_STORES = (_FLOATS, _INT32S, _INT64S, _DOUBLES, _UINT64S, _RAW)

_TYPES = {  # element type, and the field that holds elements which are not raw
    1: ("float32", _FLOATS),
    2: ("uint8", _INT32S),
    3: ("int8", _INT32S),
    4: ("uint16", _INT32S),
    5: ("int16", _INT32S),
    6: ("int32", _INT32S),
    7: ("int64", _INT64S),
    9: ("bool", _INT32S),
    10: ("float16", _INT32S),
    11: ("float64", _DOUBLES),
    12: ("uint32", _UINT64S),
    13: ("uint64", _UINT64S),
    16: ("bfloat16", _INT32S),
}


def seems_onnx(data: memoryview) -> bool:
    """Whether the file begins as an ONNX model does: a small version number, then a field of ModelProto."""
    later = b"\x12\x1a\x22\x2a\x32\x3a\x42"  # fields 2 to 8
    return len(data) > 2 and data[0] == 0x08 and 0 < data[1] < 0x20 and data[2] in later


def read_onnx(data: memoryview, limits: Limits, beside: Beside) -> ModelState:
    """The state in the bytes of a whole ONNX file."""
    fuel = Fuel(fields=limits.max_fields)
    found = []
    for proto in _protos(data, fuel):
        found.append(proto)
        if len(found) > limits.max_tensors:
            break
    check_count(len(found), limits)
    tensors = [_tensor(proto, limits, beside) for proto in found]
    check_total(sum(tensor.nbytes for tensor in tensors), limits)
    return ModelState(tensors)


@dataclass(slots=True, kw_only=True)
class _Proto:
    """A TensorProto, taken apart."""

    name: str = ""
    dims: list[int] = field(default_factory=list)
    type: int = 0
    location: int = 0
    stores: dict[int, memoryview] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)


def _protos(model: memoryview, fuel: Fuel) -> Iterator[_Proto]:
    """Every tensor of the one graph."""
    for number, value in _messages(_one(model, _GRAPH, fuel, what="graph"), fuel):
        if number == _SPARSE:
            raise MalformedModel("a sparse initializer; store it dense")
        if number == _INITIALIZER:
            yield _proto(value, fuel)
        elif number == _NODE:
            yield from _constants(value, fuel)


def _messages(message: memoryview, fuel: Fuel) -> Iterator[tuple[int, memoryview]]:
    """Fields that have bytes, by number."""
    return ((number, value) for number, _, value in fields(message, fuel) if isinstance(value, memoryview))


def _one(message: memoryview, number: int, fuel: Fuel, *, what: str) -> memoryview:
    found = [value for each, value in _messages(message, fuel) if each == number]
    if len(found) != 1:
        raise MalformedModel(f"an ONNX file with {len(found)} fields of {what}, where one belongs")
    return found[0]


def _constants(node: memoryview, fuel: Fuel) -> Iterator[_Proto]:
    """The tensor of a Constant node, by the name of its output, if its elements can be read."""
    parts = list(_messages(node, fuel))
    if [bytes(value) for number, value in parts if number == _OP_TYPE] != [b"Constant"]:
        return
    outputs = [value for number, value in parts if number == _OUTPUT]
    for number, attribute in parts:
        if number != _ATTRIBUTE or len(outputs) != 1:
            continue
        inside = list(_messages(attribute, fuel))
        named = [bytes(value) for each, value in inside if each == _ATTRIBUTE_NAME]
        for each, value in inside:
            if each == _ATTRIBUTE_TENSOR and named == [b"value"]:
                proto = _proto(value, fuel)
                if proto.type in _TYPES:
                    proto.name = _text(outputs[0])
                    yield proto


def _proto(message: memoryview, fuel: Fuel) -> _Proto:
    proto, seen = _Proto(), set()
    for number, kind, value in fields(message, fuel):
        if number == _DIMS:
            _add_dims(proto.dims, value)
            continue
        if number == _EXTERNAL and isinstance(value, memoryview):
            _add_external(proto.external, value, fuel)
            continue
        if number in seen:
            raise MalformedModel("a tensor has a field twice")
        seen.add(number)
        if number in (_TYPE, _LOCATION):
            if kind != VARINT or not isinstance(value, int):
                raise MalformedModel("a tensor whose type is no number")
            setattr(proto, "type" if number == _TYPE else "location", value)
        elif number in (_NAME, *_STORES):
            if kind != BYTES or not isinstance(value, memoryview):
                raise MalformedModel("a tensor whose elements are not packed")
            if number == _NAME:
                proto.name = _text(value)
            elif len(value):
                proto.stores[number] = value
        elif number == _SEGMENT:
            raise MalformedModel("a tensor in segments")
    return proto


def _add_dims(dims: list[int], value: int | memoryview) -> None:
    """Packed or one by one: a reader takes both. More than numpy can have are refused at once."""
    if isinstance(value, memoryview):
        if len(value) > 640:
            raise LimitExceeded("a tensor of too many dimensions")
        dims.extend(int(each) for part in numbers(value) for each in part)
    else:
        dims.append(value)
    if len(dims) > 64:
        raise LimitExceeded("a tensor of too many dimensions")


def _add_external(external: dict[str, str], entry: memoryview, fuel: Fuel) -> None:
    found = dict(_messages(entry, fuel))
    key, value = _text(found.get(1, memoryview(b""))), _text(found.get(2, memoryview(b"")))
    if key in external:
        raise MalformedModel(f"external data with {shown(key)} twice")
    external[key] = value


def _text(data: memoryview) -> str:
    if len(data) > 65_535:
        raise LimitExceeded("a name of more than 65535 bytes")
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise MalformedModel("a name that is not UTF-8") from error


def _tensor(proto: _Proto, limits: Limits, beside: Beside) -> Tensor:
    check_name_length(proto.name, limits)
    tag, store = _TYPES.get(proto.type, ("", 0))
    if not tag:
        raise MalformedModel(f"tensor {shown(proto.name)}: ONNX type {proto.type} is not one of {ALLOWED}")
    shape = tuple(proto.dims)
    dtype = BY_TAG[tag]
    size = byte_size(proto.name, dtype, shape, limits)
    if proto.location or proto.external:
        if proto.stores:
            raise MalformedModel(f"tensor {shown(proto.name)}: elements both in the file and beside it")
        data = _outside(proto, size, beside)
    elif not size and not proto.stores:
        data = memoryview(b"")
    elif len(proto.stores) != 1 or not proto.stores.keys() <= {store, _RAW}:
        raise MalformedModel(f"tensor {shown(proto.name)}: not one store of elements that fits {tag}")
    elif store in (_FLOATS, _DOUBLES) or _RAW in proto.stores:
        (data,) = proto.stores.values()
    else:
        return _unpacked(proto, dtype, proto.stores[store])
    if len(data) != size:
        raise MalformedModel(f"tensor {shown(proto.name)}: {len(data)} bytes for shape {shown_shape(shape)}")
    return Tensor(name=proto.name, dtype=tag, shape=shape, data=data)


def _outside(proto: _Proto, size: int, beside: Beside) -> memoryview:
    """The bytes of a tensor in another file of the folder."""
    where = proto.external
    try:
        offset, length = int(where.get("offset", "0")), int(where.get("length", str(size)))
    except ValueError as error:
        raise MalformedModel(f"tensor {shown(proto.name)}: external data at no place") from error
    file = where.get("location", "")
    check_plain(file)
    data = beside(file)
    if offset < 0 or length != size or offset + length > len(data):
        raise MalformedModel(f"tensor {shown(proto.name)}: external data that is not in {shown(file)}")
    return data[offset : offset + length]


def _unpacked(proto: _Proto, dtype: Dtype, packed: memoryview) -> Tensor:
    """Elements that are stored as numbers of varying length: made when they are asked for."""
    shape = tuple(proto.dims)
    if count_numbers(packed) != prod(shape):
        raise MalformedModel(f"tensor {shown(proto.name)}: not as many elements as {shown_shape(shape)} has")
    whole = "i" if dtype.numpy == "i" else "u"  # the bits of a half, or a bool
    make = partial(_narrowed, packed, f"<{whole}{dtype.size}")
    return LazyTensor(name=proto.name, dtype=dtype.tag, shape=shape, make=make)


def _narrowed(packed: memoryview, kind: str) -> Iterator[NDArray[np.integer]]:
    return (part.astype(kind) for part in numbers(packed))
