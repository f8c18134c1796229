"""safetensors files: what is accepted, what is refused, how they are written."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.forge import EXAMPLE, entry, safetensors, scarce_memory
from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused
from zktrace.models import Limits, ModelState, open_model, safetensors_file, save_model
from zktrace.models.safetensors_file import read_safetensors

LIMITS = Limits()


def read(data: bytes, limits: Limits = LIMITS) -> ModelState:
    return read_safetensors(memoryview(data), limits)


def refusal(data: bytes, kind: type[Error] = MalformedModel, limits: Limits = LIMITS) -> str:
    with pytest.raises(kind) as caught, scarce_memory():
        read(data, limits)
    assert type(caught.value) is kind
    return str(caught.value)


def test_a_state_is_a_view_of_the_file(tmp_path: Path) -> None:
    save_model(tmp_path / "m", EXAMPLE)
    state = open_model(tmp_path / "m")
    (tmp_path / "m").unlink()  # the mapping outlives the name
    assert state == ModelState.from_arrays(EXAMPLE)
    for tensor in state.tensors():
        if tensor.data.nbytes and tensor.dtype != "bfloat16":
            assert np.shares_memory(tensor.array(), np.frombuffer(tensor.data, np.uint8))
            assert tensor.array().flags.aligned


def test_metadata_is_allowed_and_ignored() -> None:
    header = {"__metadata__": {"a": "b"}, "w": entry("U8", [1], 0, 1)}
    assert list(read(safetensors(header, b"x"))) == ["w"]


def test_every_allowed_element_type_is_read(tmp_path: Path) -> None:
    codes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1}
    codes |= {"U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
    for code, size in codes.items():
        (tmp_path / code).write_bytes(safetensors({"w": entry(code, [1], 0, size)}, bytes(size)))
        assert open_model(tmp_path / code)["w"] == 0


@pytest.mark.parametrize("code", ["C64", "F8_E4M3", "F8_E5M2", "F4", "f32", "", "O", 7, None, ["F32"]])
def test_other_element_types_are_refused_by_name(code: Any) -> None:
    reason = refusal(safetensors({"layer.w": entry(code, [1], 0, 4)}, bytes(4)))
    assert "'layer.w'" in reason
    assert (repr(code) if isinstance(code, str) else "not text") in reason


@pytest.mark.parametrize("size", [1 << 60, (1 << 64) - 1, (16 << 20) + 1])
def test_an_absurd_header_length_is_refused_at_once(size: int) -> None:
    assert str(size) in refusal(safetensors({}, size=size), LimitExceeded)


@pytest.mark.parametrize("size", [0, 1, 3, 1000])
def test_a_wrong_header_length_is_refused(size: int) -> None:
    refusal(safetensors({"w": entry("U8", [1], 0, 1)}, b"x", size=size))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"w":1,"w":1}', "'w' twice"),
        (b'{"w":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}', "'shape' twice"),
        (b'{"__metadata__":{},"__metadata__":{}}', "twice"),
        (b"[]", "begin"),
        (b' {"w":1}', "begin"),
        (b"{", "JSON"),
        (b'{"w":1}}', "JSON"),
        (b'{"w\xff":1}', "JSON"),
        (b'{"w":' + b"[" * 100_000, "JSON"),
        (b'{"w":' + b"1" * 100_000 + b"}", "JSON"),
        (b'{"w":NaN}', "needs exactly"),
        (b'{"__metadata__":7}', "__metadata__"),
        (b'{"__metadata__":{"a":1}}', "__metadata__"),
        (b"{}", "no tensors"),
        (b'{"__metadata__":{"a":"b"}}', "no tensors"),
        (b'{"\\ud800":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', "Unicode"),
        (b'{"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', "empty name"),
        (b'{"a\\nb":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', "control"),
    ],
)
def test_a_header_that_is_not_one_is_refused(text: bytes, reason: str) -> None:
    assert reason in refusal(safetensors(text, b"x"))


@pytest.mark.parametrize(
    "line",
    [
        7,
        [],
        {},
        {"dtype": "U8", "shape": [1]},
        entry("U8", [1], 0, 1) | {"more": 1},
        entry("U8", [-1], 0, 1),
        entry("U8", [1.0], 0, 1),
        entry("U8", [True], 0, 1),
        entry("U8", ["1"], 0, 1),
        entry("U8", [1], 1, 0),
        entry("U8", [1], -1, 0),
        entry("U8", [2], 0, 1),
        entry("U16", [1], 0, 1),
        {"dtype": "U8", "shape": 1, "data_offsets": [0, 1]},
        {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]},
        {"dtype": "U8", "shape": [1], "data_offsets": None},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_by_name(line: object) -> None:
    assert "'layer.w'" in refusal(safetensors({"layer.w": line}, b"x"))


@pytest.mark.parametrize(
    ("places", "size", "reason"),
    [
        ([(0, 2), (1, 3)], 3, "overlaps"),
        ([(0, 2), (0, 2)], 2, "overlaps"),
        ([(0, 1), (2, 3)], 3, "hole"),
        ([(1, 2)], 2, "hole"),
        ([(0, 1)], 2, "data of the file has 2"),
        ([(0, 2)], 1, "data of the file has 1"),
        ([(0, 0), (1, 2)], 2, "hole"),
    ],
)
def test_tensors_must_tile_the_data(places: list[tuple[int, int]], size: int, reason: str) -> None:
    header = {f"t{at}": entry("U8", [b - a], a, b) for at, (a, b) in enumerate(places)}
    assert reason in refusal(safetensors(header, bytes(size)))


@pytest.mark.parametrize(
    "shape", [[0, 1 << 60], [1 << 60, 0], [0, 1 << 40, 1 << 40], [1 << 60], [1 << 63, 2], [10**400, 0]]
)
def test_an_absurd_shape_is_refused_even_if_it_is_empty(shape: list[int]) -> None:
    assert "'w'" in refusal(safetensors({"w": entry("U8", shape, 0, 0)}), LimitExceeded)


@pytest.mark.parametrize(
    ("limits", "header", "size"),
    [
        (Limits(max_dims=2), {"w": entry("U8", [1, 1, 1], 0, 1)}, 1),
        (Limits(max_name_bytes=3), {"wörd"[:3]: entry("U8", [1], 0, 1)}, 1),
        (Limits(max_tensors=1), {"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 1, 2)}, 2),
        (Limits(max_total_bytes=3), {"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 2, 4)}, 4),
        (Limits(max_header_bytes=8), {"a": entry("U8", [2], 0, 2)}, 2),
        (Limits(max_tensors=1), b'{"a":[' + b"1," * 99 + b"1]}", 0),
    ],
    ids=["dims", "name", "tensors", "bytes", "header", "commas"],
)
def test_limits_are_kept(limits: Limits, header: object, size: int) -> None:
    refusal(safetensors(header, bytes(size)), LimitExceeded, limits)


def test_a_file_beyond_the_limit_is_not_even_mapped(tmp_path: Path) -> None:
    save_model(tmp_path / "m", EXAMPLE)
    with pytest.raises(LimitExceeded, match="the limit is 100"):
        open_model(tmp_path / "m", Limits(max_file_bytes=100))


def test_a_header_full_of_small_things_does_not_fill_the_memory() -> None:
    refusal(safetensors(b'{"w":[' + b"[]," * 5_000_000 + b"[]]}"), LimitExceeded)
    refusal(safetensors(b"{" + b",".join(b'"%06d":0' % at for at in range(900_000)) + b"}"), LimitExceeded)


def test_the_library_has_a_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise safetensors_file.SafetensorError("no \x1b[31m")

    save_model(tmp_path / "m", EXAMPLE)
    monkeypatch.setattr(safetensors_file, "safe_open", refuse)
    with pytest.raises(MalformedModel, match="library refuses") as caught:
        open_model(tmp_path / "m")
    assert str(caught.value).isprintable()


def test_the_library_must_find_the_same_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tmp_path / "m", EXAMPLE)
    save_model(tmp_path / "other", {"w": np.zeros(1)})
    real = safetensors_file.safe_open
    monkeypatch.setattr(safetensors_file, "safe_open", lambda _, **more: real(tmp_path / "other", **more))
    with pytest.raises(MalformedModel, match="other tensors"):
        open_model(tmp_path / "m")


def test_saving_is_deterministic_private_to_nobody_and_readable_by_the_library(tmp_path: Path) -> None:
    save_model(tmp_path / "a", EXAMPLE, metadata={"k": "v"})
    save_model(tmp_path / "b", dict(reversed(EXAMPLE.items())), metadata={"k": "v"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
    loaded = pytest.importorskip("safetensors.numpy").load_file(tmp_path / "a")
    assert ModelState.from_arrays(loaded) == ModelState.from_arrays(EXAMPLE)
    size = int.from_bytes((tmp_path / "a").read_bytes()[:8], "little")
    assert json.loads((tmp_path / "a").read_bytes()[8 : 8 + size])["__metadata__"] == {"k": "v"}


def test_saving_replaces_only_when_told_to(tmp_path: Path) -> None:
    save_model(tmp_path / "m", EXAMPLE)
    with pytest.raises(Refused, match="exists"):
        save_model(tmp_path / "m", {"w": np.zeros(1)})
    assert open_model(tmp_path / "m") == ModelState.from_arrays(EXAMPLE)
    save_model(tmp_path / "m", {"w": np.zeros(1)}, replace=True)
    assert list(open_model(tmp_path / "m")) == ["w"]
