"""The digest of a state: pinned, equal to its definition, the same in every container."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forge import EXAMPLE, entry, npz, safetensors, scarce_memory
from zktrace.models import ModelState, Tensor, model_digest, open_model, save_model

PINNED = "42596b1290ec7678bd16f36cb7e648d723b684a7cc208b452dae72fc91c1cbdc"


def slow_digest(state: ModelState) -> bytes:
    """docs/spec/model-state.md, word by word."""
    octets = bytearray()

    def number(value: int) -> None:
        octets.extend(value.to_bytes(8, "big"))

    def field(data: bytes) -> None:
        number(len(data))
        octets.extend(data)

    field(b"zkt-model-state-v1")
    number(len(state))
    for tensor in sorted(state.tensors(), key=lambda each: each.name.encode("utf-8")):
        field(tensor.name.encode("utf-8"))
        field(tensor.dtype.encode("ascii"))
        number(len(tensor.shape))
        for size in tensor.shape:
            number(size)
        field(bytes(tensor.data))
    return hashlib.sha256(octets).digest()


def bfloat16(name: str, bits: list[int]) -> Tensor:
    data = np.array(bits, dtype="<u2").tobytes()
    return Tensor(name=name, dtype="bfloat16", shape=(len(bits),), data=memoryview(data))


def test_the_digest_of_the_example_is_pinned() -> None:
    state = ModelState([*ModelState.from_arrays(EXAMPLE).tensors(), bfloat16("tail", [0x3F80, 0xC000])])
    assert model_digest(state).hex() == PINNED
    assert slow_digest(state).hex() == PINNED


def test_the_digest_of_the_empty_state_is_the_hash_of_its_two_fields() -> None:
    expected = hashlib.sha256((18).to_bytes(8, "big") + b"zkt-model-state-v1" + bytes(8)).digest()
    assert model_digest(ModelState([])) == expected


@settings(deadline=None)
@given(
    names=st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1), unique=True
    ).filter(lambda names: "__metadata__" not in names),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_digest_equals_its_definition(names: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = ["float32", "int64", "bool", "uint8"]
    arrays = {}
    for name in names:
        shape = tuple(rng.integers(0, 4, size=rng.integers(0, 4)))
        arrays[name] = rng.integers(0, 2, size=shape).astype(rng.choice(kinds))
    state = ModelState.from_arrays(arrays)
    assert model_digest(state) == slow_digest(state)


def test_every_container_and_every_order_gives_the_same_digest(tmp_path: Path) -> None:
    expected = model_digest(ModelState.from_arrays(EXAMPLE))
    backwards = dict(reversed(EXAMPLE.items()))
    assert model_digest(ModelState.from_arrays(backwards)) == expected
    save_model(tmp_path / "a", EXAMPLE)
    save_model(tmp_path / "b", EXAMPLE, metadata={"written by": "somebody"})
    (tmp_path / "c").write_bytes(npz(EXAMPLE))
    (tmp_path / "d").write_bytes(npz({name: np.array(array, order="F") for name, array in backwards.items()}))
    by_library = pytest.importorskip("safetensors.numpy").save_file
    by_library(EXAMPLE, tmp_path / "e")
    for name in "abcde":
        assert model_digest(open_model(tmp_path / name)) == expected, name


def test_the_order_of_the_data_in_a_file_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(
        safetensors({"a": entry("U8", [2], 0, 2), "b": entry("U8", [1], 2, 3)}, b"\x01\x02\x03")
    )
    (tmp_path / "b").write_bytes(
        safetensors({"a": entry("U8", [2], 1, 3), "b": entry("U8", [1], 0, 1)}, b"\x03\x01\x02")
    )
    assert model_digest(open_model(tmp_path / "a")) == model_digest(open_model(tmp_path / "b"))


def test_every_single_byte_counts() -> None:
    base = np.arange(8, dtype=np.uint8)
    seen = {model_digest(ModelState.from_arrays({"w": base}))}
    for at in range(8):
        changed = base.copy()
        changed[at] ^= 1
        seen.add(model_digest(ModelState.from_arrays({"w": changed})))
    assert len(seen) == 9


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {"v": arrays["w"]},
        lambda arrays: {"w": arrays["w"].view(np.uint32)},
        lambda arrays: {"w": arrays["w"].reshape(3, 2)},
        lambda arrays: {"w": arrays["w"].reshape(2, 3, 1)},
        lambda arrays: {"w": arrays["w"].T},
        lambda arrays: arrays | {"x": np.zeros(0, np.float32)},
        lambda arrays: {"w": arrays["w"][:1], "x": arrays["w"][1:]},
    ],
    ids=["name", "type", "shape", "rank", "transposed", "one more", "cut in two"],
)
def test_name_type_shape_and_number_count(change: Callable[[dict], dict]) -> None:
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}
    changed = ModelState.from_arrays(change(arrays))
    assert model_digest(changed) != model_digest(ModelState.from_arrays(arrays))


def test_bfloat16_is_not_the_float32_that_it_widens_to() -> None:
    narrow = ModelState([bfloat16("w", [0x3F80])])
    wide = ModelState.from_arrays({"w": narrow["w"]})
    assert model_digest(narrow) != model_digest(wide)
    assert model_digest(narrow) != model_digest(ModelState.from_arrays({"w": np.array([0x3F80], np.uint16)}))


def test_a_large_file_is_hashed_without_a_copy_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large"
    size = 96 << 20
    path.write_bytes(safetensors({"w": entry("U8", [size], 0, size)}))
    with path.open("r+b") as handle:
        handle.truncate(path.stat().st_size + size)
    with scarce_memory(
        2 * size + (48 << 20)
    ):  # two mappings of the file (ours, the library's) and little else
        assert len(model_digest(open_model(path))) == 32
