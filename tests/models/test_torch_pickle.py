"""Checkpoints read in this process, without a child: what the pickle may say, and what it may not."""

import io
import pickle
import zipfile

import numpy as np
import pytest

from models.forge import (
    ORDERED_DICT,
    checkpoint,
    glob,
    integer,
    mapping,
    pickle_of,
    scarce_memory,
    simple_checkpoint,
    storage,
    stored_zip,
    tensor,
    text,
    tup,
)
from zktrace.errors import Error, LimitExceeded, MalformedModel
from zktrace.models import Limits, ModelState
from zktrace.models.safetensors_file import read_safetensors
from zktrace.models.torch_zip import convert

LIMITS = Limits()
SIX = np.arange(6, dtype="<f4").tobytes()
GOOD = tensor(storage("0", 6), (6,), (1,))


def read(data: bytes, limits: Limits = LIMITS) -> ModelState:
    out = io.BytesIO()
    convert(memoryview(data), out, limits)
    return read_safetensors(memoryview(out.getvalue()), limits)


def read_pickle(value: bytes) -> ModelState:
    return read(checkpoint(pickle_of(value), {"0": SIX}))


def refusal(data: bytes, kind: type[Error] = MalformedModel, limits: Limits = LIMITS) -> str:
    with pytest.raises(kind) as caught, scarce_memory():
        read(data, limits)
    assert type(caught.value) is kind
    assert str(caught.value).isprintable()
    return str(caught.value)


def refused_pickle(value: bytes, kind: type[Error] = MalformedModel) -> str:
    return refusal(checkpoint(value, {"0": SIX}), kind)


def test_a_checkpoint_made_by_hand_is_read() -> None:
    assert read(simple_checkpoint())["w"].tolist() == [0, 1, 2, 3, 4, 5]


# -- which values are models


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_a_state_dict_may_be_wrapped_once(key: str) -> None:
    wrapped = mapping({"epoch": integer(7), key: mapping({"w": GOOD}), "lr": b"G" + bytes(8), "notes": b"N"})
    assert list(read_pickle(wrapped)) == ["w"]


def test_other_things_may_stand_beside_a_wrapped_state_dict() -> None:
    optimizer = mapping(
        {"state": b"}K\x00" + mapping({"m": GOOD}) + b"s", "groups": b"](K\x01K\x02e" + b"N" + b"a"}
    )
    model = mapping({"config": text("resnet")})
    value = mapping({"state_dict": mapping({"w": GOOD}), "optimizer": optimizer, "model": model})
    assert list(read_pickle(value)) == ["w"]


def test_a_flat_state_dict_may_have_a_tensor_called_model() -> None:
    assert list(read_pickle(mapping({"model": GOOD, "state_dict": GOOD}))) == ["model", "state_dict"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (GOOD, "not a mapping"),
        (b"]" + GOOD + b"a", "not a mapping"),
        (b"N", "not a mapping"),
        (b"}", "no tensors"),
        (ORDERED_DICT, "no tensors"),
        (mapping({"state_dict": mapping({"w": GOOD}), "model": mapping({"w": GOOD})}), "several"),
        (mapping({"w": GOOD, "n": integer(3)}), "'n' is of type int"),
        (mapping({"w": mapping({"w": GOOD})}), "'w' is of type dict"),
        (mapping({"state_dict": mapping({"w": GOOD, "extra": b"N"})}), "'extra' is of type NoneType"),
        (b"}K\x07" + GOOD + b"s", "'7' is a tensor"),
        (mapping({"net": mapping({"state_dict": mapping({"w": GOOD})})}), "'net'"),
    ],
)
def test_anything_else_is_refused_with_a_reason(value: bytes, reason: str) -> None:
    assert reason in refused_pickle(pickle_of(value))


def test_a_mapping_that_contains_itself_is_refused() -> None:
    assert "'model' is of type dict" in refused_pickle(pickle_of(b"}q\x00" + text("model") + b"h\x00s"))


# -- what a pickle may say


class Evil:
    """Unpickling it would call a function."""

    def __init__(self, *call: object) -> None:
        self._call = call

    def __reduce__(self) -> tuple:
        function, *arguments = self._call
        return function, tuple(arguments)


@pytest.mark.parametrize("protocol", range(6))
def test_a_function_is_refused_by_name_and_not_called(protocol: int) -> None:
    called: list[int] = []
    assert refused_pickle(pickle.dumps({"w": Evil(print, called.append)}, protocol))
    reason = refused_pickle(pickle.dumps(Evil(eval, "1"), max(protocol, 2)))
    assert "'__builtin__.eval'" in reason or "'builtins.eval'" in reason


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("torch", "load"),
        ("torch", "hub.load"),
        ("torch._utils", "_rebuild_qtensor"),
        ("torch._utils", "__builtins__"),
        ("torch.nn.modules.linear", "Linear"),
        ("collections", "Counter"),
        ("collections.OrderedDict", ""),
        ("", ""),
        ("a\x1b[31m", "b"),
        ("x" * 200, "y" * 200),
    ],
)
def test_other_globals_are_refused_by_name(module: str, name: str) -> None:
    lines = refused_pickle(pickle_of(glob(module, name) + tup(text("true")) + b"R"))
    stack = refused_pickle(pickle_of(text(module) + text(name) + b"\x93" + b")R"))
    assert lines == stack
    assert ascii(f"{module}.{name}")[1:60] in lines


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (b"ios\nsystem\n", "INST"),
        (b"o", "OBJ"),
        (b"\x81", "NEWOBJ"),
        (b"\x92", "NEWOBJ_EX"),
        (b"\x82\x01", "EXT1"),
        (b"P0\n", "PERSID"),
        (b"I1\n", "INT"),
        (b"L1L\n", "LONG"),
        (b"S'a'\n", "STRING"),
        (b"S'\\q'\n", "STRING"),
        (b"C\x01a", "SHORT_BINBYTES"),
        (b"\x97", "NEXT_BUFFER"),
        (b"2", "DUP"),
        (b"0", "POP"),
        (b"\x8b\xff\xff\xff\x7f", "LONG4"),
        (b"\xff", "unknown (0xff)"),
    ],
)
def test_other_opcodes_are_refused_by_name(code: bytes, name: str) -> None:
    assert name in refused_pickle(pickle_of(code))


@pytest.mark.parametrize(
    "value",
    [
        b"",  # nothing at the end
        b"NN",  # too much at the end
        b"(N",  # an open mark
        b"t",
        b"(t(",
        b"R",
        b"NNR",
        b"N)R",
        b"](R",
        b"\x85",
        b"(\x85t",
        b"Na",
        b"}Na",
        b"]Ns",
        b"}NNs",
        b"}(Nu",
        b"})Ns",
        b"}]Ns",
        b"}K\x01NsK\x01Ns",
        b"}(K\x01NK\x01Nu",
        b"h\x00",
        b"j\xff\xff\xff\xff",
        b"q\x00",
        b"Q",
        b"NQ",
        b"]b",
        b"}}b",
        b"}NNb",
        b"NN\x93",
        b"X\xff\xff\xff\xffabc",
        b"\x8d" + b"\xff" * 8,
        b"X\x01\x00\x00\x00\xff",
        b"X\x03\x00\x00\x00\xed\xa0\x80",
        b"\x8a\xff",
        b"G",
        b"c" + b"a" * 1000,
        b"ca\nb",
        b"\x80\x06N",
    ],
)
def test_a_pickle_that_makes_no_sense_is_refused(value: bytes) -> None:
    refused_pickle(pickle_of(value))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x02", b"\x80\x02}", b"\x80\x02}.."])
def test_a_pickle_without_a_clean_end_is_refused(data: bytes) -> None:
    refused_pickle(data)


@pytest.mark.parametrize(
    ("pickle", "reason"),
    [
        (pickle_of(b"(" + mapping({"w": GOOD})), "left over"),
        (pickle_of(b"N" + mapping({"w": GOOD})), "left over"),
        (pickle_of(mapping({"w": GOOD})) + b"N.", "left over"),
        (pickle_of(b"}(" + (text("w") + GOOD) * 2 + b"u"), "'w' twice"),
        (pickle_of(mapping({"w": GOOD}) + text("w") + GOOD + b"s"), "'w' twice"),
        (pickle_of(mapping({"w": GOOD}) + mapping({"__class__": b"N"}) + b"b"), "attributes"),
        (pickle_of(mapping({"w": GOOD}) + b"Nb"), "attributes"),
        (pickle_of(mapping({"w": tensor(storage("x", 6), (6,), (1,))})), "wrong key"),
    ],
)
def test_a_good_state_does_not_excuse_the_rest_of_the_pickle(pickle: bytes, reason: str) -> None:
    assert reason in refusal(checkpoint(pickle, {"0": SIX}))


def test_the_versions_of_a_state_dict_are_ignored() -> None:
    value = (
        mapping({"w": GOOD}) + mapping({"_metadata": mapping({"": mapping({"version": integer(1)})})}) + b"b"
    )
    assert list(read_pickle(value)) == ["w"]


def test_a_huge_memo_index_costs_nothing() -> None:
    value = mapping(
        {"w": tensor(storage("0", 6), (6,), (1,)) + b"r\xff\xff\xff\xff", "v": b"j\xff\xff\xff\xff"}
    )
    assert list(read_pickle(value)) == ["v", "w"]


def test_depth_costs_nothing() -> None:
    refused_pickle(pickle_of(b")" + b"\x85" * 1_000_000))
    refused_pickle(pickle_of(b"(" * 1_000_000))


def test_steps_and_bytes_of_a_pickle_are_bounded() -> None:
    small = checkpoint(pickle_of(b"N" * 2000), {"0": SIX})
    assert "1000 steps" in refusal(small, LimitExceeded, Limits(max_pickle_steps=1000))
    big = checkpoint(pickle_of(b"N" * 20_000), {"0": SIX})
    assert "pickle of 20003 bytes" in refusal(big, LimitExceeded, Limits(max_header_bytes=20_000))


# -- tensors and storages


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "expected"),
    [
        ((6,), (1,), 0, [0, 1, 2, 3, 4, 5]),
        ((), (), 3, 3),
        ((2, 3), (3, 1), 0, [[0, 1, 2], [3, 4, 5]]),
        ((3, 2), (1, 3), 0, [[0, 3], [1, 4], [2, 5]]),
        ((2, 2), (2, 2), 1, [[1, 3], [3, 5]]),
        ((1, 2, 1), (77, 4, 0), 1, [[[1], [5]]]),
        ((2, 1, 3), (3, 0, 1), 0, [[[0, 1, 2]], [[3, 4, 5]]]),
        ((0, 5), (5, 1), 0, []),
        ((0,), (1,), 1000, []),
        ((3,), (2,), 1, [1, 3, 5]),
    ],
)
def test_strides_are_followed(shape: tuple, strides: tuple, offset: int, expected: list) -> None:
    state = read_pickle(mapping({"w": tensor(storage("0", 6), shape, strides, offset=offset)}))
    assert state["w"].shape == shape
    assert state["w"].tolist() == expected


def test_strides_are_followed_as_numpy_follows_them() -> None:
    rng = np.random.default_rng(0)
    kinds = [
        ("DoubleStorage", "<f8"),
        ("FloatStorage", "<f4"),
        ("ShortStorage", "<i2"),
        ("CharStorage", "i1"),
    ]
    for _ in range(200):
        shape = tuple(int(n) for n in rng.integers(1, 5, size=rng.integers(1, 5)))
        kind, dtype = kinds[rng.integers(4)]
        array = rng.integers(-99, 99, size=shape).astype(dtype)
        turned = array.transpose(rng.permutation(len(shape)))[tuple(slice(None, None, 2) for _ in shape)]
        strides = tuple(step // array.itemsize for step in turned.strides)
        view = tensor(storage("0", array.size, kind), turned.shape, strides)
        state = read(checkpoint(pickle_of(mapping({"w": view})), {"0": array.tobytes()}))
        assert state == ModelState.from_arrays({"w": turned})


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((7,), (1,), 0),
        ((6,), (1,), 1),
        ((2,), (6,), 0),
        ((1,), (1,), 6),
        ((2, 3), (3, 2), 0),
        ((3, 3), (1, 1), 0),  # inside, but more elements than there are
        ((1 << 20,), (0,), 0),
        ((10**6, 10**6), (0, 0), 0),
        ((10**9,), (1,), 0),
    ],
)
def test_a_tensor_that_reaches_outside_its_storage_is_refused(
    shape: tuple, strides: tuple, offset: int
) -> None:
    data = checkpoint(
        pickle_of(mapping({"layer.w": tensor(storage("0", 6), shape, strides, offset=offset)})), {"0": SIX}
    )
    assert "'layer.w'" in refusal(data, MalformedModel, Limits(max_total_bytes=1 << 45))


def test_ten_to_the_twelve_elements_of_stride_zero_are_refused() -> None:
    view = tensor(storage("0", 6), (10**12,), (0,))
    assert "'w'" in refused_pickle(pickle_of(mapping({"w": view})), LimitExceeded)


@pytest.mark.parametrize("shape", [(1 << 62,), (0, 1 << 60), (1 << 31, 1 << 31)])
def test_an_absurd_shape_is_refused(shape: tuple[int, ...]) -> None:
    view = tensor(storage("0", 6), shape, (1,) * len(shape))
    refused_pickle(pickle_of(mapping({"w": view})), LimitExceeded)


def test_an_expanded_tensor_is_refused_with_the_remedy() -> None:
    value = mapping({"w": tensor(storage("0", 6), (2, 3), (0, 1))})
    assert "contiguous()" in refused_pickle(pickle_of(value))


def test_many_tensors_over_one_storage_are_bounded_together() -> None:
    value = pickle_of(mapping({f"w{at}": GOOD for at in range(100)}))
    assert len(read(checkpoint(value, {"0": SIX}))) == 100
    out = io.BytesIO()
    with pytest.raises(LimitExceeded, match="2400 bytes"):
        convert(memoryview(checkpoint(value, {"0": SIX})), out, Limits(max_total_bytes=2399))
    assert out.getvalue() == b""  # refused before the first byte


@pytest.mark.parametrize(
    "view",
    [
        tensor(storage("0", 6), (6,), ()),
        tensor(storage("0", 6), (-1,), (1,)),
        tensor(storage("0", 6), (6,), (-1,), offset=5),
        tensor(storage("0", 6), (6,), (1,), offset=-1),
        tensor(storage("0", 6), (1 << 70,), (1,)),
        tensor(b"N", (6,), (1,)),
        tensor(integer(0), (6,), (1,)),
        tensor(storage("0", 6, "UntypedStorage", "torch.storage"), (6,), (1,)),
        tensor(storage("0", 6), (6,), (1,), hooks=mapping({"a": b"N"})),
        tensor(storage("0", 7), (6,), (1,)),
        tensor(storage("0", 5), (5,), (1,)),
        tensor(storage("0", -1), (0,), (1,)),
        tensor(storage("0", 6, "DoubleStorage"), (3,), (1,)),
        tensor(storage("1", 6), (6,), (1,)),
        tensor(storage("../data.pkl", 6), (6,), (1,)),
        tensor(storage("", 6), (6,), (1,)),
        tensor(storage("\u0660", 6), (6,), (1,)),
        glob("torch._utils", "_rebuild_tensor_v2") + b")R",
        glob("torch._utils", "_rebuild_parameter") + tup(b"N", b"\x88", ORDERED_DICT) + b"R",
        glob("torch", "FloatStorage") + b")R",
        glob("torch", "float32") + b")R",
        glob("collections", "OrderedDict") + tup(b"]") + b"R",
        tup(text("storage"), glob("torch", "float32"), text("0"), text("cpu"), integer(6)) + b"Q",
        tup(text("module"), glob("torch", "FloatStorage"), text("0"), text("cpu"), integer(6)) + b"Q",
        GOOD + mapping({"a": b"N"}) + b"b",
        b"}" + mapping({"__class__": b"N"}) + b"b",
    ],
)
def test_tensors_and_storages_that_make_no_sense_are_refused(view: bytes) -> None:
    refused_pickle(pickle_of(mapping({"w": view})))


def test_a_storage_cannot_be_two_things() -> None:
    second = tensor(storage("0", 3, "DoubleStorage"), (3,), (1,))
    assert "two ways" in refused_pickle(pickle_of(mapping({"a": GOOD, "b": second})))


@pytest.mark.parametrize(
    ("kind", "tag"), [("ComplexFloatStorage", "complex64"), ("ComplexDoubleStorage", "complex128")]
)
def test_other_element_types_are_refused_by_name(kind: str, tag: str) -> None:
    reason = refused_pickle(pickle_of(mapping({"layer.w": tensor(storage("0", 1, kind), (1,), (1,))})))
    assert "'layer.w'" in reason
    assert tag in reason


# -- the archive


def test_compressed_members_are_refused_and_not_inflated() -> None:
    members = {"a/data.pkl": pickle_of(mapping({"w": GOOD})), "a/data/0": bytes(320 << 20)}
    bomb = stored_zip(members, method=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1 << 20
    assert "re-save with torch.save" in refusal(bomb)


@pytest.mark.parametrize("order", [b"big", b"little ", b"", b"LITTLE"])
def test_only_little_endian_checkpoints_are_read(order: bytes) -> None:
    members = {"a/data.pkl": pickle_of(mapping({"w": GOOD})), "a/byteorder": order, "a/data/0": SIX}
    members |= {"a/version": b"3\n"}
    assert "little-endian" in refusal(stored_zip(members))
    members["a/byteorder"] = b"little"
    assert read(stored_zip(members)) == read(simple_checkpoint())


@pytest.mark.parametrize(
    "more",
    [
        {"b/data/1": b""},
        {"a/DATA/0": b"other"},
        {"a/Data.pkl": b"other"},
        {"loose": b""},
        {"a/BYTEORDER": b"big"},
        {"a/ByteOrder": b"little"},
        {"a/data/00": SIX},
        {"a/data/x": SIX},
        {"a/.data/version": b"3"},
        {"a/extra/notes": b""},
        {"a/.format_version": b"one"},
        {"a/.storage_alignment": b""},
    ],
)
def test_members_that_torch_might_take_for_others_are_refused(more: dict[str, bytes]) -> None:
    members = {"a/data.pkl": pickle_of(mapping({"w": GOOD})), "a/data/0": SIX, "a/version": b"3\n"}
    assert read(stored_zip(members)) == read(simple_checkpoint())
    refusal(stored_zip(members | more))


@pytest.mark.parametrize("version", [None, b"", b"0", b"11", b"3 ", b"+3", b"3\n\n", b"three", b"3" * 99])
def test_a_version_that_torch_does_not_read_is_refused(version: bytes | None) -> None:
    members = {"a/data.pkl": pickle_of(mapping({"w": GOOD})), "a/data/0": SIX}
    refusal(stored_zip(members if version is None else members | {"a/version": version}))


def test_views_of_one_storage_are_bounded_by_the_file() -> None:
    """A few bytes of pickle a view, a megabyte each: what the file says small must not become large."""
    names = [f"bn{at}.weight" for at in range(64)]
    view = tensor(storage("0", 1 << 18), (1 << 18,), (1,))
    data = checkpoint(pickle_of(mapping(dict.fromkeys(names, view))), {"0": bytes(1 << 20)})
    assert "save each tensor as a clone" in refusal(data, LimitExceeded)
    twice = checkpoint(pickle_of(mapping(dict.fromkeys(names[:2], view))), {"0": bytes(1 << 20)})
    assert len(read(twice)) == 2


def test_a_storage_whose_crc_is_wrong_is_refused() -> None:
    assert "CRC-32" in refusal(simple_checkpoint().replace(SIX, SIX[::-1]))


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        (Limits(max_tensors=1), ["a", "b"]),
        (Limits(max_name_bytes=3), ["abcd"]),
        (Limits(max_total_bytes=23), ["a"]),
    ],
    ids=["tensors", "name", "bytes"],
)
def test_limits_are_kept(limits: Limits, names: list[str]) -> None:
    refusal(checkpoint(pickle_of(mapping(dict.fromkeys(names, GOOD))), {"0": SIX}), LimitExceeded, limits)


@pytest.mark.parametrize("name", ["", "a\nb", "\x7f", "__metadata__"])
def test_names_that_cannot_be_kept_are_refused(name: str) -> None:
    refused_pickle(pickle_of(mapping({name: GOOD})))
