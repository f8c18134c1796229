"""GGUF files: quantised blocks mean what ggml says, plain tensors are views, hostile headers are refused."""

import struct
from pathlib import Path

import gguf as library
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forge import scarce_memory
from models.gguf_forge import ELEMENTS, entry, gguf, text
from models.test_fuzz import MASKS, changed_bytes, rearranged
from zktrace.errors import Error, LimitExceeded, MalformedModel
from zktrace.models import LazyTensor, Limits, ModelState, gguf_blocks, model_digest, open_model, save_model
from zktrace.models.gguf_blocks import QUANTISED
from zktrace.models.gguf_file import read_gguf

LIMITS = Limits()
KINDS = sorted(QUANTISED)


def read(data: bytes, limits: Limits = LIMITS) -> ModelState:
    return read_gguf(memoryview(data), limits)


def refusal(data: bytes, kind: type[Error] = MalformedModel, limits: Limits = LIMITS) -> str:
    with pytest.raises(kind) as caught, scarce_memory():
        read(data, limits)
    assert type(caught.value) is kind
    return str(caught.value)


def random_blocks(kind: int, count: int, seed: int) -> bytes:
    """Blocks of any bits, whose float16 scales are finite (exponents below the highest)."""
    blocks = np.random.default_rng(seed).integers(0, 256, (count, QUANTISED[kind].size), dtype=np.uint8)
    for at in {"Q2_K": (81, 83), "Q3_K": (109,), "Q6_K": (209,), "Q8_K": (3,)}.get(
        QUANTISED[kind].name, (1, 3)
    ):
        blocks[:, at] &= 0xBB if at != 3 or kind in (3, 7, 12, 13, 15) else 0xFF
    return blocks.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_equal_the_loop_and_the_library(kind: int) -> None:
    blocks = QUANTISED[kind]
    data = random_blocks(kind, 7, seed=kind)
    made = np.concatenate(list(gguf_blocks.pieces(blocks, memoryview(data))))
    assert made.dtype == np.float32
    slow = [
        ELEMENTS[blocks.name](data[at : at + blocks.size], i)
        for at in range(0, len(data), blocks.size)
        for i in range(blocks.count)
    ]
    assert np.array_equal(made, np.array(slow, dtype=np.float32))
    if blocks.name == "Q8_K":
        return  # the library does not read it
    quantised = np.frombuffer(data, np.uint8).reshape(1, -1)
    theirs = library.dequantize(quantised, library.GGMLQuantizationType[blocks.name])
    assert np.array_equal(made, theirs.reshape(-1))


def test_the_table_of_types_is_the_librarys() -> None:
    for number, blocks in QUANTISED.items():
        kind = library.GGMLQuantizationType[blocks.name]
        assert (number, (blocks.count, blocks.size)) == (kind.value, library.GGML_QUANT_SIZES[kind])


def test_every_element_is_made_whatever_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = memoryview(random_blocks(12, 9, seed=1))
    whole = list(gguf_blocks.pieces(QUANTISED[12], data))
    monkeypatch.setattr(gguf_blocks, "_ELEMENTS", 512)
    parts = list(gguf_blocks.pieces(QUANTISED[12], data))
    assert [len(part) for part in parts] == [512, 512, 512, 512, 256]
    assert np.array_equal(np.concatenate(parts), np.concatenate(whole))


def written(path: Path, arrays: dict[str, np.ndarray], kinds: dict[str, str]) -> None:
    """A file by the library's own writer and quantiser, with a vocabulary in its metadata."""
    writer = library.GGUFWriter(path, "llama")
    writer.add_token_list(["<s>", "über", "zwei Wörter"] * 50)
    writer.add_block_count(3)
    writer.add_bool("some.flag", True)
    for name, array in arrays.items():
        kind = library.GGMLQuantizationType[kinds.get(name, "F32")]
        made = array if name not in kinds else library.quantize(array, kind)
        writer.add_tensor(name, made, raw_dtype=kind if name in kinds else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F16"])
def test_what_the_library_wrote_is_read(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "blk.0.attn_q.weight": rng.standard_normal((6, 64)).astype(np.float32),
        "norm": rng.standard_normal(5).astype(np.float32),
        "double": rng.standard_normal((2, 3)),
        "half": rng.standard_normal((3, 1, 2)).astype(np.float16),
        "count": np.arange(4, dtype=np.int32),
    }
    written(tmp_path / "m", arrays, {"blk.0.attn_q.weight": kind})
    state = open_model(tmp_path / "m")
    assert list(state) == sorted(arrays)
    for name, array in arrays.items():
        assert state[name].shape == array.shape
        if name != "blk.0.attn_q.weight":
            assert state[name].dtype == array.dtype
            assert np.array_equal(state[name], array)
    found, given_ = state["blk.0.attn_q.weight"], arrays["blk.0.attn_q.weight"]
    cosine = np.vdot(found, given_) / np.linalg.norm(found) / np.linalg.norm(given_)
    assert cosine > 0.99
    digest = save_model(tmp_path / "again", state)
    assert digest == model_digest(state) == model_digest(open_model(tmp_path / "again"))


def test_quantised_tensors_are_lazy_and_others_are_views() -> None:
    state = read(gguf({"q": (8, (2, 32), bytes(68)), "f": (0, (3,), bytes(12))}))
    lazy = {tensor.name: isinstance(tensor, LazyTensor) for tensor in state.tensors()}
    assert lazy == {"q": True, "f": False}
    assert state.nbytes == 4 * 64 + 12


def example(alignment: int = 32) -> bytes:
    metadata = [
        entry("general.alignment", 4, struct.pack("<I", alignment)),
        entry("name", 8, text("model")),
        entry("list", 9, struct.pack("<IQ", 8, 2) + text("a") + text("bc")),
        entry("numbers", 9, struct.pack("<IQ", 6, 3) + bytes(12)),
        entry("small", 0, b"\x07"),
    ]
    tensors = {"w": (2, (2, 32), bytes(range(36))), "b": (0, (2,), bytes(8)), "h": (1, (1, 3), bytes(6))}
    return gguf(tensors, metadata, alignment=alignment)


def test_the_alignment_is_taken_from_the_metadata() -> None:
    states = [read(example(alignment)) for alignment in (8, 32, 64)]
    assert states[0] == states[1] == states[2]


@pytest.mark.parametrize(
    ("data", "kind", "reason"),
    [
        (gguf({}, version=1), MalformedModel, "version 0x1"),
        (gguf({}, version=3 << 24), MalformedModel, "little-endian"),
        (gguf({}), MalformedModel, "no tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), LimitExceeded, "tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1 << 60), LimitExceeded, "metadata entries"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 1, 1, 1 << 60), LimitExceeded, "name of"),
        (gguf({"w": (0, (1,), bytes(4))}, [entry("a", 13, b"")]), MalformedModel, "unknown type"),
        (gguf({"w": (0, (1,), bytes(4))}, [entry("a", 9, struct.pack("<IQ", 9, 1))]), MalformedModel, "type"),
        (
            gguf({"w": (0, (1,), bytes(4))}, [entry("a", 9, struct.pack("<IQ", 8, 1 << 61))]),
            MalformedModel,
            "ends",
        ),
        (
            gguf({"w": (0, (1,), bytes(4))}, [entry("a", 9, struct.pack("<IQ", 6, 1 << 61))]),
            MalformedModel,
            "en",
        ),
        (gguf({"w": (0, (1,), bytes(4))}, [entry("a", 0, b"1")] * 2), MalformedModel, "'a' twice"),
        (
            gguf({"w": (0, (1,), bytes(4))}, [entry("general.alignment", 4, struct.pack("<I", 3))]),
            MalformedModel,
            "alignment",
        ),
        (gguf({"w": (16, (256,), bytes(66))}), MalformedModel, "type 16"),
        (gguf({"w": (2, (33,), bytes(18))}), MalformedModel, "whole blocks"),
        (gguf({"w": (2, (), bytes(18))}), MalformedModel, "whole blocks"),
        (gguf({"w": (0, (1,) * 9, bytes(4))}), LimitExceeded, "9 dimensions"),
        (gguf({"w": (0, (1 << 60,), bytes(4))}), LimitExceeded, "beyond"),
        (gguf({"w": (0, (1 << 60, 0), bytes(4))}), LimitExceeded, "beyond"),
        (gguf({"w": (0, (64,), bytes(4))}), MalformedModel, "take 256 bytes"),
        (gguf({"w": (0, (1,), bytes(100))}), MalformedModel, "has 128"),
        (gguf({"w": (0, (20,), bytes(4)), "v": (0, (1,), bytes(4))}), MalformedModel, "predecessor"),
        (gguf({"": (0, (1,), bytes(4))}), MalformedModel, "empty name"),
        (gguf({"w": (0, (1,), bytes(4))})[:-40], MalformedModel, "ends inside"),
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes, kind: type[Error], reason: str) -> None:
    assert reason in refusal(data, kind)


def test_a_name_twice_and_a_bad_name_are_refused() -> None:
    one = gguf({"a": (0, (1,), bytes(4)), "b": (0, (1,), bytes(4))})
    assert "same name" in refusal(one.replace(text("b"), text("a")))
    assert "UTF-8" in refusal(one.replace(b"b", b"\xff"))


@pytest.mark.parametrize(
    "limits", [Limits(max_metadata_bytes=100), Limits(max_tensors=2), Limits(max_total_bytes=49)]
)
def test_limits_are_kept(limits: Limits) -> None:
    refusal(example(), LimitExceeded, limits)


def used(data: bytes) -> bool:
    """Whether the file opens; then every tensor is read as well."""
    try:
        state = read(data)
        assert sum(array.nbytes for array in state.values()) <= 16 * len(data)
    except Error as error:
        assert str(error).isprintable()
        assert len(str(error)) < 500
        return False
    return True


def test_every_byte_may_be_changed_and_every_prefix_is_refused() -> None:
    data = example(8)
    with scarce_memory():
        for changed in changed_bytes(data, MASKS):
            used(changed)
        assert not any(used(data[:size]) for size in range(len(data) - 2))  # the last two are padding


def test_everything_may_be_rearranged() -> None:
    with scarce_memory():
        for changed in rearranged(example(), 1500, seed=3):
            used(changed)


@settings(deadline=None, max_examples=200)
@given(tail=st.binary(max_size=200), version=st.sampled_from([2, 3]), tensors=st.integers(1, 3))
def test_any_header_opens_or_is_refused(tail: bytes, version: int, tensors: int) -> None:
    used(b"GGUF" + struct.pack("<IQQ", version, tensors, len(tail) % 3) + tail)
