"""What a suspect claims is bounded by its shapes, before anything of that size is made."""

import numpy as np
import pytest

from models.forge import scarce_memory
from readouts.making import output_reader, weight_reader
from zktrace.errors import InputError, LimitExceeded
from zktrace.models import ModelState, Tensor
from zktrace.readouts import directions
from zktrace.readouts.directions import BLOCK_BYTES, Directions
from zktrace.readouts.identity import IdentityCodebook, read_component
from zktrace.readouts.scales import MAX_LAYERS, MAX_SCALES, gather, layer_sizes
from zktrace.readouts.scores import SCORES_LIMIT, check_scores
from zktrace.readouts.suspects import plain


def wide(size: int, layers: int = 1, dtype: str = "bfloat16") -> ModelState:
    """A model of few and wide BatchNorm layers, whose bytes are all the same."""
    data = memoryview(bytes(2 * size))
    names = [f"bn{at}.{part}" for at in range(layers) for part in ("weight", "running_var")]
    return ModelState(Tensor(name=name, dtype=dtype, shape=(size,), data=data) for name in names)


def test_too_many_scales_are_refused_from_their_shapes() -> None:
    """64 layers of a million numbers each: half a gigabyte, if they were turned into real numbers."""
    model = wide(1 << 20, layers=64)
    reader = weight_reader(seed=bytes(32), length=16, layers=(8,), profile="paper")
    with scarce_memory(64 << 20):
        for read in (gather, layer_sizes, plain, reader.project):
            with pytest.raises(LimitExceeded, match=f"67108864 BatchNorm scales, at most {MAX_SCALES}"):
                read(model)  # type: ignore[operator]


def test_sizes_are_compared_before_scales_are_read() -> None:
    with scarce_memory(64 << 20), pytest.raises(InputError, match="in 1 layers, the codebook 8 in 1"):
        IdentityCodebook(stations=2, bits=8, layers=(8,)).read(wide(MAX_SCALES))


def test_too_many_layers_are_refused() -> None:
    with pytest.raises(LimitExceeded, match=f"{MAX_LAYERS + 1} BatchNorm layers"):
        layer_sizes(wide(1, layers=MAX_LAYERS + 1))
    assert layer_sizes(wide(1, layers=MAX_LAYERS)) == (1,) * MAX_LAYERS


def test_blocks_of_directions_are_bounded_in_bytes() -> None:
    family = Directions(label="test", seed=b"seed", dimension=MAX_SCALES, count=9)
    sizes = [block.nbytes for _, block in family.blocks()]
    assert len(sizes) == 3
    assert max(sizes) <= BLOCK_BYTES
    assert [len(block) for _, block in Directions(label="", seed=b"", dimension=3, count=300).blocks()] == [
        256,
        44,
    ]


def test_the_widest_suspect_is_read_in_little_memory() -> None:
    with scarce_memory(320 << 20):
        assert len(read_component(wide(MAX_SCALES), row=1, bits=16)) == 2


def test_the_size_of_a_block_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    model = {"bn.weight": rng.normal(size=200), "bn.running_var": np.ones(200)}
    whole = read_component(model, row=3, bits=40)
    book = IdentityCodebook(stations=4, bits=40, layers=(200,))
    assert whole == np.packbits(book.block(3) @ gather(model) > 0).tobytes()
    monkeypatch.setattr(directions, "BLOCK_BYTES", 8 * 200 * 3)
    assert read_component(model, row=3, bits=40) == whole


def test_scores_are_bounded_before_they_are_converted() -> None:
    many = np.broadcast_to(np.float16(1), (1 << 14, (SCORES_LIMIT >> 14) + 1))
    with scarce_memory(64 << 20):
        with pytest.raises(LimitExceeded, match="scores, at most 16777216"):
            check_scores(many)
        reader = output_reader(seed=bytes(32), length=4, classes=3, reference=np.arange(12.0))
        with pytest.raises(InputError, match="the release has 4 probes"):
            reader.read_answers(np.broadcast_to(np.float16(1), (1 << 12, 1 << 12)))
