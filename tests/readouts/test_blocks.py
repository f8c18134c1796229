"""The directions of the spread carrier: orthogonal, exact, and the rule which tensors carry."""

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.models import ModelState, Tensor
from zktrace.primitives.hadamard import matrix
from zktrace.readouts import blocks
from zktrace.readouts.blocks import Blocks, Part, carrying, check_length, deviation_of, longest, usual

SEED = b"d" * 32


def slow_signs(name: str, use: str, count: int, length: int) -> np.ndarray:
    """Bit after bit of the key stream, most significant first: a one is minus."""
    words = Stream(f"spread/{use}", SEED, name.encode()).words(count * length // 64)
    data = b"".join(int(each).to_bytes(8, "little") for each in words)
    bits = [(byte >> (7 - at)) & 1 for byte in data for at in range(8)]
    return np.array([1.0 - 2.0 * bit for bit in bits]).reshape(count, length)


def slow_move(part: Part, values: np.ndarray) -> np.ndarray:
    """sigma-free move of every block, by its definition in float64."""
    length = len(values)
    outer, inner = (slow_signs(part.name, use, part.blocks, length) for use in ("outer", "inner"))
    rows = [s * (matrix(length).astype(np.float64) @ (r * values)) for s, r in zip(outer, inner, strict=True)]
    return np.concatenate(rows) / math.sqrt(length)


@pytest.mark.parametrize(
    ("chunk", "cached"), [(1 << 18, 1 << 15), (300, 1 << 15), (1 << 18, 300), (600, 128)]
)
def test_moves_and_readings_are_those_of_the_definition(
    chunk: int, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "CHUNK", chunk)
    monkeypatch.setattr(blocks, "_READ", cached)
    monkeypatch.setattr(blocks, "_MOVED", cached)
    part, length = Part(name="a.weight", blocks=7, deviation=0.5), 128
    rng = np.random.default_rng(1)
    values = rng.normal(size=length)
    made = Blocks(seed=SEED, length=length)
    moved = np.concatenate(list(made.moves(part, values)))
    assert np.abs(moved - slow_move(part, values)).max() < 1e-5
    noise = rng.normal(size=part.blocks * length).astype(np.float32)
    taken = iter(range(0, len(noise), 1))

    def differences(count: int) -> Callable[[slice], np.ndarray]:
        at = next(taken)
        for _ in range(count - 1):
            next(taken)
        return lambda place: noise[at : at + count][place]

    found = made.readings([(part, differences)])[part.name]
    wanted = [
        slow_move(part, np.eye(length)[b]) @ noise / part.blocks for b in range(0, length, 17)
    ]  # a reading is the product with the move of one position
    assert np.abs(found[::17] - wanted).max() < 1e-5


def test_the_directions_are_orthogonal_and_a_move_reads_as_itself() -> None:
    part, length = Part(name="w", blocks=4, deviation=1.0), 128
    family = np.array([slow_move(part, np.eye(length)[b]) for b in range(length)])
    assert np.abs(family @ family.T / part.blocks - np.eye(length)).max() < 1e-12


def test_the_mark_of_a_weight_is_nearly_gaussian() -> None:
    part, length = Part(name="w", blocks=64, deviation=1.0), 512
    signs = 2.0 * np.random.default_rng(3).integers(0, 2, length) - 1.0
    moved = np.concatenate(list(Blocks(seed=SEED, length=length).moves(part, signs)))
    assert abs(moved.mean()) < 0.03
    assert abs(moved.std() - 1.0) < 0.02
    assert abs((moved**4).mean() - 3.0) < 0.15  # of a sum of 512 signs: 3 - 2/512
    assert abs((np.abs(moved) < 1.0).mean() - 0.6827) < 0.05  # a lattice of steps of 2/sqrt(512)


@pytest.mark.parametrize("length", [128, 1024, 4096])
@pytest.mark.parametrize("cached", [1 << 17, 3 * 4096])
def test_moves_by_signs_are_whole_numbers_times_their_unit(
    length: int, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_READ", cached)
    monkeypatch.setattr(blocks, "_MOVED", cached)
    part = Part(name="w", blocks=9, deviation=1.0)
    signs = 2.0 * np.random.default_rng(3).integers(0, 2, length) - 1.0
    unit = 0.0123
    moved = np.concatenate(list(Blocks(seed=SEED, length=length).moves(part, signs, unit)))
    whole = np.rint(slow_move(part, signs) * math.sqrt(length)).astype(np.float32)
    wanted = whole * np.float32(unit / math.sqrt(length))
    assert (moved.view(np.uint32) == wanted.view(np.uint32)).all()  # also the sign of a zero


def test_moves_of_some_blocks_are_a_part_of_the_whole() -> None:
    part, made = Part(name="w", blocks=9, deviation=1.0), Blocks(seed=SEED, length=128)
    rng = np.random.default_rng(3)
    for values in (rng.normal(size=128), 2.0 * rng.integers(0, 2, 128) - 1.0):
        (whole,) = made.moves(part, values)
        some = np.concatenate([each.copy() for _, each in made.move(part, (4, 3), values, 1.0)])
        assert np.allclose(some, whole[4 * 128 : 7 * 128], rtol=0, atol=1e-5)


def test_what_is_not_finite_makes_all_readings_so() -> None:
    part, made = Part(name="w", blocks=9, deviation=1.0), Blocks(seed=SEED, length=128)
    for wrong in (np.nan, np.inf, -np.inf):
        given = np.zeros(9 * 128, dtype=np.float32)
        given[500] = wrong
        found = made.readings([(part, lambda _count, given=given: given.__getitem__)])
        assert not np.isfinite(found["w"]).any()


def test_tensors_are_read_together_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CHUNK", 3 * 128)  # several pieces of each
    rng, made = np.random.default_rng(5), Blocks(seed=SEED, length=128)
    parts = [Part(name=name, blocks=count, deviation=1.0) for name, count in (("a", 7), ("b", 20), ("c", 1))]
    noise = {part.name: rng.normal(size=part.blocks * 128).astype(np.float32) for part in parts}

    def differences(name: str) -> Callable[[int], Callable[[slice], np.ndarray]]:
        flow = blocks.Flow(noise, name)

        def taken(count: int) -> Callable[[slice], np.ndarray]:
            return flow.take(count).__getitem__

        return taken

    together = made.readings((part, differences(part.name)) for part in parts)
    assert list(together) == ["a", "b", "c"]
    for part in parts:
        alone = made.readings([(part, differences(part.name))])
        assert (together[part.name] == alone[part.name]).all()


def test_signs_of_tensors_and_uses_have_nothing_in_common() -> None:
    one, two, three = (
        slow_signs(name, use, 64, 128) for name, use in (("a", "outer"), ("a", "inner"), ("b", "outer"))
    )
    for left, right in ((one, two), (one, three)):
        assert abs(float((left * right).mean())) < 5 / math.sqrt(left.size)


def test_the_key_stream_is_aes_in_counter_mode_under_a_key_of_seed_use_and_name() -> None:
    signs = []
    for use in (b"outer", b"inner"):
        fields = [b"zkt-stream-v1/spread/" + use, SEED, b"x"]
        encoded = b"".join(len(each).to_bytes(8, "big") + each for each in fields)
        key = hashlib.shake_256(encoded).digest(32)
        stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(16))
        signs.append(1.0 - 2.0 * np.unpackbits(np.frombuffer(stream, dtype=np.uint8)))
    (moved,) = Blocks(seed=SEED, length=128).moves(Part(name="x", blocks=1, deviation=1.0), signs[1])
    assert np.abs(moved - signs[0] * (matrix(128) @ np.ones(128)) / math.sqrt(128)).max() < 1e-5


def model(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_matrices_of_sixteen_blocks_carry_and_nothing_else_does() -> None:
    arrays = model(large=(64, 64), kernel=(16, 16, 3, 3), small=(4, 4), scale=(5000,), bias=(64,))
    arrays["whole"] = np.ones((64, 64), dtype=np.int8)
    arrays["flat"] = np.full((64, 64), 0.25, dtype=np.float32)
    arrays["wild"] = np.full((64, 64), np.nan, dtype=np.float32)
    found = carrying(arrays, 128)
    assert [(each.name, each.blocks) for each in found] == [("kernel", 18), ("large", 32)]
    assert found[1].deviation == pytest.approx(float(arrays["large"].std()), rel=1e-6)


def test_half_types_carry_and_the_largest_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = model(a=(64, 64), b=(64, 70), c=(64, 80))
    state = ModelState(
        [
            Tensor.from_array("a", arrays["a"].astype(np.float16)),
            Tensor.from_array("b", arrays["b"].astype(np.float64)),
            Tensor(
                name="c",
                dtype="bfloat16",
                shape=(64, 80),
                data=(arrays["c"].view(np.uint32) >> 16).astype(np.uint16).data,
            ),
        ]
    )
    assert [each.name for each in carrying(state, 128)] == ["a", "b", "c"]
    monkeypatch.setattr(blocks, "TENSORS", 2)
    assert [each.name for each in carrying(state, 128)] == ["b", "c"]


def test_a_model_is_told_the_longest_code_it_bears() -> None:
    arrays = model(w=(100, 64))  # 6,400 weights: 25 blocks of 256, 12 of 512
    assert longest(arrays) == usual(arrays) == 256
    for wrong in (512, 200, 64, 1):
        with pytest.raises(InputError, match="a power of two from 128 to 256"):
            check_length(wrong, arrays)
    with pytest.raises(InputError, match="too small"):
        check_length(128, model(w=(40, 40), b=(90000,)))
    assert carrying(arrays, 256)[0].blocks == 25


@pytest.mark.parametrize(
    ("weights", "length"),
    [(1 << 17, 256), (1 << 19, 512), (3 << 20, 2048), (11 << 20, 4096), (1 << 26, 4096)],
)
def test_the_usual_length_has_about_a_thousand_weights_a_position(weights: int, length: int) -> None:
    shape = (weights // 64, 64)
    big = np.lib.stride_tricks.as_strided(np.zeros(1, dtype=np.float32), shape, (0, 0))
    assert usual({"w": big}) == length


@given(st.integers(1, 3000), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_the_deviation_is_that_of_numpy_in_one_piece_or_many(size: int, seed: int) -> None:
    array = (5 + np.random.default_rng(seed).normal(size=(size, 2))).astype(np.float32)
    state = ModelState.from_arrays({"w": array})
    assert deviation_of(state, "w") == deviation_of({"w": array}, "w")
    assert deviation_of(state, "w") == pytest.approx(float(array.astype(np.float64).std()), rel=1e-5)


def test_what_has_no_deviation_carries_nothing() -> None:
    with pytest.raises(InputError, match="nothing can carry"):
        carrying({"w": np.full((64, 64), 3.0, dtype=np.float32)}, 128)
    with pytest.raises(InputError, match="carry nothing"):
        Part(name="w", blocks=3, deviation=0.0)
    huge = np.array([[1e200, -1e200] * 2000] * 2)
    assert deviation_of({"w": huge}, "w") == 0.0
