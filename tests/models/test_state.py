"""Tensors and states: immutable, exact, in one order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from models.forge import EXAMPLE
from zktrace.errors import InputError, MalformedModel
from zktrace.models import Limits, ModelState, Tensor, open_model, save_model


def test_a_state_maps_names_to_the_arrays_it_was_made_of() -> None:
    state = ModelState.from_arrays(EXAMPLE)
    assert len(state) == len(EXAMPLE)
    assert state.nbytes == sum(array.nbytes for array in EXAMPLE.values())
    for name, array in EXAMPLE.items():
        assert state[name].dtype == array.dtype
        assert state[name].shape == array.shape
        assert np.array_equal(state[name], array)


def test_names_are_in_the_order_of_their_utf8_bytes() -> None:
    names = [
        "z",
        "a.b",
        "a",
        "\U0001f600",
        "\uffff",
        "\u00e9",
        "B",
    ]  # UTF-16 would order the last but two otherwise
    state = ModelState.from_arrays({name: np.zeros(1) for name in names})
    assert list(state) == sorted(names, key=lambda name: name.encode())
    assert [tensor.name for tensor in state.tensors()] == list(state)


def test_a_state_does_not_follow_the_arrays_it_was_made_of() -> None:
    array = np.zeros(3)
    state = ModelState.from_arrays({"w": array})
    array[:] = 1
    assert not state["w"].any()


def test_arrays_are_read_only() -> None:
    state = ModelState([*ModelState.from_arrays(EXAMPLE).tensors(), _bfloat16("b", [0x3F80])])
    for name in state:
        with pytest.raises(ValueError, match="read-only"):
            state[name][...] = 0


def test_big_endian_and_fortran_arrays_become_little_endian_and_c_order() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    odd = ModelState.from_arrays({"w": np.asfortranarray(array.astype(">f4"))})
    assert odd == ModelState.from_arrays({"w": array})
    assert bytes(odd.tensors()[0].data) == array.astype("<f4").tobytes()


@pytest.mark.parametrize(
    ("bits", "value"),
    [(0x3F80, 1.0), (0xBF80, -1.0), (0x0000, 0.0), (0x7F80, np.inf), (0x0001, 2.0**-133), (0x4049, 3.140625)],
)
def test_bfloat16_is_widened_exactly(bits: int, value: float) -> None:
    array = _bfloat16("b", [bits]).array()
    assert array.dtype == np.float32
    assert array[0] == value


def test_two_states_are_equal_when_every_byte_is() -> None:
    state = ModelState.from_arrays({"w": np.array([0.0])})
    assert state == ModelState.from_arrays({"w": np.array([0.0])})
    assert state != ModelState.from_arrays({"w": np.array([-0.0])})
    assert state != {"w": np.array([0.0])}


@pytest.mark.parametrize(
    "array",
    [np.zeros(1, complex), np.array(["a"]), np.array([None]), np.zeros(1, "M8[s]"), np.zeros(1, "V2"), [1.0]],
    ids=["complex", "text", "object", "time", "void", "list"],
)
def test_other_element_types_are_refused_by_name(array: np.ndarray) -> None:
    with pytest.raises(MalformedModel, match=r"'layer\.w'"):
        ModelState.from_arrays({"layer.w": array})


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "a\x7f", "\udc80", "\x85", "__metadata__"])
def test_a_tensor_cannot_have_an_unprintable_or_reserved_name(name: str) -> None:
    with pytest.raises(MalformedModel) as caught:
        Tensor(name=name, dtype="uint8", shape=(), data=memoryview(b"a"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("shape", [(2,), (0,), (-1, -1), (0, 1 << 62), (1,) * 65])
def test_a_tensor_cannot_have_a_shape_that_its_bytes_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(MalformedModel, match="'w'"):
        Tensor(name="w", dtype="uint8", shape=shape, data=memoryview(b"a"))


def test_a_tensor_cannot_have_an_unknown_type_or_a_third_truth_value() -> None:
    with pytest.raises(MalformedModel, match="'float8'"):
        Tensor(name="w", dtype="float8", shape=(1,), data=memoryview(b"a"))
    with pytest.raises(MalformedModel, match="neither 0 nor 1"):
        Tensor(name="w", dtype="bool", shape=(2,), data=memoryview(b"\x01\x02"))


def test_a_state_cannot_have_a_name_twice() -> None:
    tensor = _bfloat16("w", [0])
    with pytest.raises(MalformedModel, match="same name"):
        ModelState([tensor, tensor])


@pytest.mark.parametrize("value", [0, -1, 2.5, True])
def test_a_limit_is_a_positive_integer(value: int) -> None:
    with pytest.raises(InputError, match="max_tensors"):
        Limits(max_tensors=value)


_NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20
).filter(lambda name: name != "__metadata__")
_ARRAYS = hnp.arrays(
    dtype=st.sampled_from(
        ["f8", "f4", ">f4", "f2", "i8", ">i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
    ),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


@settings(deadline=None)
@given(arrays=st.dictionaries(_NAMES, _ARRAYS, min_size=1, max_size=6))
def test_what_was_saved_is_what_is_opened(tmp_path_factory: pytest.TempPathFactory, arrays: dict) -> None:
    path = tmp_path_factory.mktemp("any") / "m.safetensors"
    save_model(path, arrays)
    assert open_model(path) == ModelState.from_arrays(arrays)


def _bfloat16(name: str, bits: list[int]) -> Tensor:
    data = np.array(bits, dtype="<u2").tobytes()
    return Tensor(name=name, dtype="bfloat16", shape=(len(bits),), data=memoryview(data))
